package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/bpf/answer"
	"kprobelab/internal/bounded"
	"kprobelab/kprobes/hazard"
	"kprobelab/kprobes/rule"
)

// gated makes a matrix: three probes on two kernels. The first is refused on the second kernel, the second does harm there, the
// third is optional and refused on both.
func gated() *Check {
	bad := CheckCell{Errno: -2, Reason: rule.UnknownSymbol, Detail: "no such symbol"}
	good := CheckCell{Attaches: true, Runs: RunsInt3}
	harm := good
	harm.Hazards = []hazard.Finding{{ID: "CALL_PREFIX", Effect: hazard.Oops, Says: "it lands in a wrong place"}}
	return &Check{
		Images: []CheckImage{{Name: "a.elf", Release: "5.10.1"}, {Name: "b.elf", Release: "6.1.2", Asked: "6.1"}},
		Probes: []CheckRow{
			{Probe: Probe{Text: "kprobe/vfs_read", Program: "reads", File: "/src/tool.bpf.c", Line: 7}, Cells: []CheckCell{good, bad}},
			{Probe: Probe{Text: "gcd+0x5"}, Cells: []CheckCell{good, harm}},
			{Probe: Probe{Text: "?kprobe/x", Program: "x", Optional: true}, Cells: []CheckCell{bad, bad}},
		},
	}
}

func passes(c *Check) (list []string) {
	for i := range c.Probes {
		for j := range c.Probes[i].Cells {
			cell := &c.Probes[i].Cells[j]
			text := strings.Join(cell.Faults, ",")
			if cell.Passes != "" {
				text += ":" + cell.Passes
			}
			list = append(list, text)
		}
	}
	return list
}

// TestWaivers: a waiver lets pass what it names, until its date; waivers that do nothing are told.
func TestWaivers(t *testing.T) {
	none := []string{"", "attach", "", "hazard CALL_PREFIX", "attach:optional", "attach:optional"}
	for name, c := range map[string]struct {
		waivers string
		want    []string
		notes   []string
		bad     []string
	}{
		"none": {"", none, nil, []string{"1 probe does not attach", "1 probe does harm (--allow HAZARD lets it pass)"}},
		"section_and_release": {
			"kprobe/* 6.1.* 2027-01-31 it has another name there\n", []string{"", "attach:waived", "", "hazard CALL_PREFIX", "attach:optional", "attach:optional"},
			nil, []string{"1 probe does harm (--allow HAZARD lets it pass)"},
		},
		"program_and_word": {"reads 6.1 2027-01-31 x\ngcd* * 2027-01-31 y\n", []string{"", "attach:waived", "", "hazard CALL_PREFIX:waived", "attach:optional", "attach:optional"}, nil, nil},
		"last_day":         {"reads 6.1 2026-11-27 x\n", []string{"", "attach:waived", "", "hazard CALL_PREFIX", "attach:optional", "attach:optional"}, nil, []string{"1 probe does harm (--allow HAZARD lets it pass)"}},
		"expired":          {"# why\n\nreads 6.1 2026-11-26 x\n", none, []string{"w:3: the waiver of reads expired on 2026-11-26"}, nil},
		"unused":           {"reads 5.10.1 2027-01-31 x\n", none, []string{"w:1: the waiver is unused: reads does not fail on 5.10.1"}, nil},
		"of_another_kernel": {
			"reads 5.4* 2027-01-31 x\nvfs_read * 2027-01-31 x", none,
			[]string{"w:1: the waiver is unused: reads on 5.4* was not asked", "w:2: the waiver is unused: vfs_read on * was not asked"}, nil,
		},
		"optional_needs_none": {"x 5.10.1 2027-01-31 x\n", none, []string{"w:1: the waiver is unused: x does not fail on 5.10.1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := ReadWaivers("w", []byte(c.waivers))
			require.NoError(t, err)
			m := gated()
			m.Judge(&Gate{Waivers: list}, "2026-11-27")
			require.Equal(t, c.want, passes(m))
			require.Equal(t, c.notes, m.Notes())
			if c.bad != nil {
				require.Equal(t, c.bad, m.Bad())
			}
		})
	}
}

func TestWaiversThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"reads 6.1 2027-01-31":     "w:1: a waiver is PROBE KERNEL DATE REASON",
		"\nreads":                  "w:2: a waiver is PROBE KERNEL DATE REASON",
		"reads 6.1 tomorrow x":     `w:1: "tomorrow" is no date such as 2027-01-31`,
		"reads 6.1 2027-02-31 x":   `w:1: "2027-02-31" is no date such as 2027-01-31`,
		"reads 6.1 2027-1-1 \x1bx": `w:1: "2027-1-1" is no date such as 2027-01-31`,
	} {
		_, err := ReadWaivers("w", []byte(text))
		require.EqualError(t, err, want)
	}
	file := filepath.Join(t.TempDir(), "w")
	require.NoError(t, os.WriteFile(file, make([]byte, bounded.Waivers+1), 0o600))
	_, err := OpenGate(nil, file, "")
	require.ErrorIs(t, err, bounded.ErrTooLong)
	_, err = OpenGate(nil, "", file)
	require.ErrorContains(t, err, "it is no output of check --json")
	_, err = OpenGate([]string{"nosuch"}, "", "")
	require.ErrorIs(t, err, hazard.ErrUnknown)
}

func TestPatternsOfWaivers(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true}, {"", "", true}, {"a", "a", true}, {"a", "ab", false}, {"a*", "a/b", true}, {"*b", "a/b", true}, {"a*b", "ab", true}, {"a*b", "a", false},
		{"a*a", "a", false}, {"*a*a*", "xaya", true}, {"*a*a*", "xay", false}, {"a**b", "axb", true}, {"[a]", "a", false},
	} {
		require.Equal(t, c.want, starMatches(c.pattern, c.text), c)
	}
}

// TestOnlyWhatIsNewFails: failures of an earlier check pass, by release, then by the word for a kernel that is newer now.
func TestOnlyWhatIsNewFails(t *testing.T) {
	old := func(edit func(*Check)) *Since {
		m := gated()
		edit(m)
		m.Judge(&Gate{}, "")
		var out bytes.Buffer
		require.NoError(t, m.WriteJSON(&out))
		s, err := ReadSince(out.Bytes())
		require.NoError(t, err)
		return s
	}
	const optional = "attach:optional"
	for name, c := range map[string]struct {
		edit func(*Check)
		want []string
	}{
		"the_same":        {func(*Check) {}, []string{"", "attach:known", "", "hazard CALL_PREFIX:known", optional, optional}},
		"good_before":     {func(c *Check) { c.Probes[0].Cells[1] = c.Probes[0].Cells[0] }, []string{"", "attach", "", "hazard CALL_PREFIX:known", optional, optional}},
		"other_fault":     {func(c *Check) { c.Probes[1].Cells[1] = c.Probes[0].Cells[1] }, []string{"", "attach:known", "", "hazard CALL_PREFIX", optional, optional}},
		"by_word":         {func(c *Check) { c.Images[1].Release = "6.1.1" }, []string{"", "attach:known", "", "hazard CALL_PREFIX:known", optional, optional}},
		"release_first":   {func(c *Check) { c.Images[0].Asked, c.Images[1] = "6.1", CheckImage{Release: "6.1.1"} }, []string{"", "attach", "", "hazard CALL_PREFIX", optional, optional}},
		"other_kernel":    {func(c *Check) { c.Images[1] = CheckImage{Release: "6.1.1"} }, []string{"", "attach", "", "hazard CALL_PREFIX", optional, optional}},
		"other_program":   {func(c *Check) { c.Probes[0].Program = "writes" }, []string{"", "attach", "", "hazard CALL_PREFIX:known", optional, optional}},
		"waived_is_known": {func(c *Check) {}, []string{"", "attach:known", "", "hazard CALL_PREFIX:known", optional, optional}},
	} {
		t.Run(name, func(t *testing.T) {
			m := gated()
			m.Judge(&Gate{Since: old(c.edit)}, "")
			require.Equal(t, c.want, passes(m))
		})
	}
	for _, text := range []string{"", "{}", "[]", `{"images":[{}],"probes":[{"images":[]}]}`, `{"images":1}`} {
		_, err := ReadSince([]byte(text))
		require.ErrorContains(t, err, "it is no output of check --json", text)
	}
}

// TestABootedKernelsAnswerCounts: what a verifier refuses fails; what a kernel attaches does not, whatever is computed.
func TestABootedKernelsAnswerCounts(t *testing.T) {
	yes, no := true, false
	refused := answer.Program{Name: "reads", Error: "R2 !read_ok", Errno: "EACCES", Log: "0: (95) exit", Blame: &answer.Place{Instruction: 1, File: "/src/tool.bpf.c", Line: 9, Text: "return x;"}}
	for name, c := range map[string]struct {
		load answer.Program
		want string
		text string
	}{
		"refused":      {refused, "load", "refused; computed: int3"},
		"not_attached": {answer.Program{Name: "reads", Loads: true, Attaches: &no, AttachError: "ENOENT: no such file or directory"}, "attach", "not attached; computed: int3"},
		"loads":        {answer.Program{Name: "reads", Loads: true}, "", "loads; computed: int3"},
		"attaches":     {answer.Program{Name: "reads", Loads: true, Attaches: &yes}, "", "attaches; computed: int3"},
	} {
		t.Run(name, func(t *testing.T) {
			m := gated()
			m.Images = m.Images[:1]
			m.Probes = m.Probes[:1]
			m.Probes[0].Cells = m.Probes[0].Cells[:1]
			m.Loaded([]answer.Program{c.load, {Name: "of no row"}})
			m.Judge(&Gate{}, "")
			cell := &m.Probes[0].Cells[0]
			require.Equal(t, c.want, strings.Join(cell.Faults, ","))
			require.Contains(t, m.Probes[0].shown(0), c.text)
			require.Empty(t, cell.Load.Log)
		})
	}
	m := gated()
	m.Probes = m.Probes[:1]
	m.Probes[0].Cells[1].Load = &answer.Program{Name: "reads", Loads: true, Attaches: &yes}
	m.Judge(&Gate{}, "")
	require.Empty(t, m.Bad(), "the kernel has attached it")

	m.Probes[0].Cells[0].Load = &refused
	m.LoadAsked, m.NotLoaded, m.Refused = true, 1, 1
	m.Judge(&Gate{}, "")
	require.Equal(t, []string{"1 program does not load"}, m.Bad())
	var out bytes.Buffer
	require.NoError(t, m.WriteAnnotations(&out, "tool.bpf.o"))
	require.Equal(t, "::error file=/src/tool.bpf.c,line=9,title=kprobe/vfs_read reads does not load::5.10.1: R2 !read_ok (EACCES) at instruction 1, tool.bpf.c:9: return x;\n", out.String())
	out.Reset()
	require.NoError(t, m.WriteText(&out))
	require.Contains(t, out.String(), "refused by the kernel: R2 !read_ok (EACCES)\n      at instruction 1, tool.bpf.c:9: return x;\n    kprobe/vfs_read (5.10.1)\n")
	require.Contains(t, out.String(), "\n1 of 2 attach by what is computed; 1 of 2 load by the kernels' verifiers\n")
	out.Reset()
	require.NoError(t, m.WriteJUnit(&out))
	require.Contains(t, out.String(), `<failure message="refused; computed: int3, return too" type="refused">R2 !read_ok (EACCES)`)
}

// TestWhatIsNotAskedIsNull: in JSON, attaches of a cell without an answer is null, and is read again.
func TestWhatIsNotAskedIsNull(t *testing.T) {
	for want, cell := range map[string]CheckCell{"null": {NotAsked: true}, "true": {Attaches: true}, "false": {Errno: -2}} {
		b, err := json.Marshal(cell)
		require.NoError(t, err)
		require.Contains(t, string(b), `"attaches":`+want+",")
		require.Equal(t, 1, strings.Count(string(b), `"attaches"`))
		var again CheckCell
		require.NoError(t, json.Unmarshal(b, &again))
		require.Equal(t, cell, again)
	}
	m := gated()
	m.Judge(&Gate{}, "")
	var out bytes.Buffer
	require.NoError(t, m.WriteText(&out))
	require.Contains(t, out.String(), "this is about attaching alone: --load asks whether the programs load; 2 failures pass\n")
	require.Contains(t, out.String(), "ENOENT UNKNOWN_SYMBOL [optional]")
	out.Reset()
	require.NoError(t, m.WriteAnnotations(&out, "tool.bpf.o"))
	require.Contains(t, out.String(), "::error file=/src/tool.bpf.c,line=7,title=kprobe/vfs_read reads does not attach::6.1.2: ENOENT")
	require.Contains(t, out.String(), "::error file=tool.bpf.o,title=gcd+0x5 does harm::")
	require.NotContains(t, out.String(), "kprobe/x")
	dir := t.TempDir()
	t.Chdir(dir)
	require.Equal(t, "src/tool.bpf.c", here(filepath.Join(dir, "src/tool.bpf.c")))
	require.Equal(t, "/src/tool.bpf.c", here("/src/tool.bpf.c"))
	require.Equal(t, "tool.bpf.c", here("tool.bpf.c"))
}
