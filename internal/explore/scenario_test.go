package explore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

func TestBadScenarios(t *testing.T) {
	const good = "scenario a\ntext f: mov add ret\nprobe p: f+3\nsite s: f+3 -> 7\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty":             {"", `a scenario has a line "scenario NAME"`},
		"no_text":           {"scenario a\n", `a scenario has a line "text NAME: INSTRUCTION…"`},
		"no_table":          {"scenario a\ntext f: ret\n", "a table of 1 to 12 columns"},
		"unknown_line":      {"what\n", `line 1: "what" begins no line of a scenario`},
		"bad_name":          {"scenario A B\n", `line 1: "A B" is no name`},
		"bad_insn":          {"scenario a\ntext f: xyz\ncpu0\n", `text f: "xyz" is no instruction`},
		"unknown_insn":      {"scenario a\ntext f: 0fa2 ret\ncpu0\n", "not among the instructions"},
		"bad_probe":         {"scenario a\ntext f: ret\nprobe p: \ncpu0\n", "line 3: probe takes NAME"},
		"probe_word":        {"scenario a\ntext f: ret\nprobe p: f soon\ncpu0\n", `"soon" is no word of a probe`},
		"active_alone":      {"scenario a\ntext f: ret\nprobe p: f active=2\ncpu0\n", "a return probe has no post handler"},
		"too_many_active":   {"scenario a\ntext f: ret\nprobe p: f return active=99\ncpu0\n", `"active=99" is no word of a probe`},
		"probe_outside":     {"scenario a\ntext f: ret\nprobe p: f+200\ncpu0\n", "probe p is after the end of the text"},
		"probe_nowhere":     {"scenario a\ntext f: ret\nprobe p: g\ncpu0\n", `there is no function "g"`},
		"site_without_nop5": {strings.Replace(good, "add", "add", 1) + "cpu0\n", "site s: there is no nop5"},
		"site_inside":       {"scenario a\ntext f: nop5 mov ret\nsite s: f -> 6\ncpu0\n", "leads inside an instruction"},
		"bad_column":        {good + "cpu9\n", `"cpu9" is no column`},
		"column_twice":      {good + "cpu0 | cpu0\n", "column cpu0 is there twice"},
		"irq_alone":         {good + "cpu0.irq\ncall f\n", "there is no column cpu0"},
		"irq_registers":     {good + "cpu0 | cpu0.irq\ncall f | register p\n", "an interrupt can only call"},
		"settle_in_table":   {good + "cpu0\nsettle\n", "settle is for the setup"},
		"long_row":          {good + "cpu0\ncall f | call f\n", "more cells than the table has columns"},
		"two_tables":        {good + "cpu0\n\ncpu1\n", "one table"},
		"bad_action":        {good + "cpu0\njump f\n", `"jump f" is no action`},
		"refused_call":      {good + "cpu0\nrefused call f\n", `"refused call f" is no action`},
		"unknown_profile":   {good + "expect 9.9 ok\ncpu0\n", `expect: there is no profile "9.9"`},
		"no_expectation":    {good + "expect\ncpu0\n", "expect takes a verdict"},
		"module_of_nothing": {good + "module m: g\ncpu0\n", "its functions are not there, or do not follow each other"},
		"module_with_a_gap": {"scenario a\ntext f: ret\ntext g: ret\ntext h: ret\nmodule m: f h\ncpu0\n", "do not follow each other"},
		"bad_module":        {good + "module m\ncpu0\n", "module takes NAME"},
		"no_argument":       {good + "cpu0\ncall\n", `"call" is no action`},
		"names_nothing":     {good + "cpu0\ncall g\n", `call g: there is no function "g"`},
		"wrong_kind":        {good + "cpu0\nregister f\n", `register f: there is no probe "f"`},
		"two_of_a_name":     {good + "probe f: f\ncpu0\n", "f is the name of two things"},
		"bad_verdict":       {good + "expect nice\ncpu0\n", `"nice" is no verdict`},
		"bad_condition":     {good + "exists p\ncpu0\n", `"p" is no condition`},
		"counts_nothing":    {good + "exists p.size=1\ncpu0\n", "p.size is nothing that a run counts"},
		"too_long":          {strings.Repeat("#", MaxFile+1), "at most 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(c.text)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestBadSchedules(t *testing.T) {
	for _, text := range []string{"", "schedule a\n", "profile 6.1\nscenario\n", strings.Repeat("a", MaxSchedule+1)} {
		_, err := ParseSchedule(text)
		require.Error(t, err)
	}
	const head, body = "schedule a\n#", "\nscenario\n"
	long := func(n int) string { return head + strings.Repeat("a", n-len(head)-len(body)) + body }
	_, err := ParseSchedule(long(bounded.ScheduleFile))
	require.NoError(t, err)
	_, err = ParseSchedule(long(bounded.ScheduleFile + 1))
	require.EqualError(t, err, "a schedule is at most 1048576 bytes long")
}

// Whatever a file says, it is read or refused.
func FuzzCompile(f *testing.F) {
	for _, name := range Library() {
		p, err := FromLibrary(name)
		require.NoError(f, err)
		f.Add(p.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Compile(text)
		if err != nil {
			return
		}
		// One run ends, whatever the scenario is.
		s, err := p.Replay(kernel(t, "6.1"), nil)
		if err == nil {
			_, err = ParseSchedule(s.String())
			require.NoError(t, err)
		}
	})
}

// The table ends with a blank line, or with a line that begins with a word of the scenario's own.
func TestTableEndsWithoutABlankLine(t *testing.T) {
	const head, table, rest = "scenario a\ntext f: mov ret\nprobe p: f\n", "cpu0 | cpu1\ncall f | register p\n", "expect ok\nexists p.hits=0\n"
	want, err := Parse(head + table + "\n" + rest)
	require.NoError(t, err)
	for _, text := range []string{head + table + rest, head + table + "# said\n" + rest, table + head + rest} {
		got, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	_, err = Parse(head + table + "exists p.hits=0\ncall f\n")
	require.ErrorContains(t, err, `line 7: "call" begins no line of a scenario`)
}
