package transparent

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: a run that differs is told with what differs, and answers that prove nothing are no proof.
func TestJudge(t *testing.T) {
	k := &known{Code: 9, Output: "hi\n", Places: []uint32{16, 18, 32}, Hits: []uint64{2, 3, 0}, SyscallBefore: []uint32{18}}
	const program, control, together = "program 2304 512 3 68690a\n", "control 8\n", "together 3 0\ncalls 0 0\n"
	const alone = "16 2 0\n18 3 0\n32 0 0\n"
	for name, test := range map[string]struct {
		answers, want string
		err           string // "" for a verdict
		differ        bool
	}{
		"the_same":            {program + control + together + alone, "3 places one at a time, 2 of them executed (2 also here) with 5 hits; 3 places all at once with 3 hits\n0 differ", "", false},
		"memory":              {program + control + together + "16 2 8\n18 3 0\n32 0 0\n", "0x10, alone, hit 2 times: a difference in memory", "", true},
		"status_and_output":   {program + control + "together 3 3\ncalls 0 0\n" + alone, "all at once: a difference in exit status and output", "", true},
		"hits_are_missing":    {program + control + "together 2 0\ncalls 0 0\n" + alone, "all at once: 2 hits, not 3", "", true},
		"other_program":       {"program 2304 512 3 68\n" + control + together + alone, "without probes: status 0x900", "", true},
		"blind":               {program + "control 0\n" + together + alone, "other random bytes make a difference in \"\"", "", true},
		"refused":             {program + control + "together 0 0\ncalls 0 0\n16 -22 0\n18 0 0\n32 0 0\n", "0x10: refused with errno 22", "", true},
		"none_is_hit":         {program + control + "together 0 0\ncalls 0 0\n16 0 0\n18 0 0\n32 0 0\n", "no probe was hit", "", true},
		"a_call_in_memory":    {program + control + "together 3 0\ncalls 1 8\n" + "16 2 0\n18 3 0\n32 0 0\n48 2 8\n", "1 nops that become calls, of which memory is not judged; all at once with 1 traps\n0 differ", "", false},
		"a_call_in_output":    {program + control + "together 3 0\ncalls 1 2\n" + "16 2 0\n18 3 0\n32 0 0\n48 2 2\n", "0x30, alone, hit 2 times: a difference in output\nall nops that become calls: a difference in output", "", true},
		"ends_early":          {program + control + together + "16 2 0\n", "", "1 answers to 3 places", false},
		"without_together":    {program + control + alone, "", `the answers end before the line "together"`, false},
		"nothing":             {"", "", `the answers end before the line "program"`, false},
		"another_place":       {program + control + together + "17 2 0\n18 3 0\n32 0 0\n", "", "an answer to 0x11 in place of 0x10", false},
		"not_a_number":        {program + control + together + "16 x 0\n", "", "is no answer", false},
		"a_word_too_few":      {program + control + together + "16 2\n", "", "is no answer", false},
		"an_empty_line":       {"\n", "", "is no answer", false},
		"output_is_no_number": {"program 2304 512 3 zz\n", "", "is no answer", false},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			k := *k
			if strings.Contains(test.answers, "\n48 ") {
				k.Places, k.Hits, k.AsCalls = append(slices.Clip(k.Places), 48), append(slices.Clip(k.Hits), 2), []uint32{48}
			}
			err := k.judge(strings.NewReader(test.answers), &out)
			switch {
			case test.err != "":
				require.ErrorContains(t, err, test.err)
				require.NotErrorIs(t, err, errDiffer)
			case test.differ:
				require.ErrorIs(t, err, errDiffer)
			default:
				require.NoError(t, err)
			}
			require.Contains(t, out.String(), test.want)
		})
	}
}
