package stap

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
	"kprobelab/internal/script"
)

// What -D asks for is given up to the bound.
func TestLimitsOfTheCommandLine(t *testing.T) {
	for name, c := range map[string]struct {
		limit string
		most  int
		of    func(l *script.Limits) int
	}{
		"StapString": {"MAXSTRINGLEN", bounded.StapString, func(l *script.Limits) int { return l.StringSize }},
		"StapArray":  {"MAXMAPENTRIES", bounded.StapArray, func(l *script.Limits) int { return l.Entries }},
		"StapCalls":  {"MAXNESTING", bounded.StapCalls, func(l *script.Limits) int { return l.Nesting }},
	} {
		t.Run(name, func(t *testing.T) {
			for asked, want := range map[int]int{c.most - 1: c.most - 1, c.most: c.most, c.most + 1: c.most, 1<<63 - 1: c.most} {
				s, err := Analyze("<input>", "probe begin { println(1) }", &Options{Limits: map[string]uint64{c.limit: uint64(asked)}}, nil)
				require.NoError(t, err)
				require.Equal(t, want, c.of(&s.Program.Limits), asked)
			}
		})
	}
}

// Arrays have no more elements, and take no more memory, than their bounds.
func TestArraysThatAreTooLarge(t *testing.T) {
	array := func(n int) string { return fmt.Sprintf("global a[%d]\nprobe begin { a[1] = 1; println(a[1]) }", n) }
	_, err := Analyze("<input>", array(bounded.StapArray), &Options{}, nil)
	require.NoError(t, err)
	_, err = Analyze("<input>", array(bounded.StapArray+1), &Options{}, nil)
	require.ErrorContains(t, err, "array size out of range")

	strings := func(n int, limit uint64) *Script {
		var text string
		for i := range n {
			text += fmt.Sprintf("global s%d\nprobe begin { s%[1]d[1] = \"a\"; println(s%[1]d[1]) }\n", i)
		}
		s, err := Analyze("<input>", text, &Options{Limits: map[string]uint64{"MAXMAPENTRIES": limit}}, nil)
		require.NoError(t, err)
		require.Equal(t, bounded.StapMemory, s.Program.Limits.Memory)
		return s
	}
	_, err = script.Compile(strings(4, 100_000).Program) // 212 MB
	require.NoError(t, err)
	_, err = script.Compile(strings(20, 100_000).Program)
	var large *script.ErrTooLarge
	require.ErrorAs(t, err, &large)
	require.EqualError(t, err, "the arrays take more than 512 MiB of memory")
}

// Only so many errors are said, whoever finds them.
func TestScriptsWithManyErrors(t *testing.T) {
	for name, line := range map[string]string{
		"parser":    "probe begin { x = }\n",
		"recovered": "global 1\n",
		"analysis":  "probe begin { println(nosuch()) }\n",
	} {
		t.Run(name, func(t *testing.T) {
			for n, want := range map[int]int{bounded.StapProblems - 1: bounded.StapProblems - 1, 3 * bounded.StapProblems: bounded.StapProblems} {
				_, err := Analyze("<input>", strings.Repeat(line, n), &Options{}, nil)
				var p Problems
				require.ErrorAs(t, err, &p)
				require.Len(t, p, want)
			}
		})
	}
}

// A width and a precision are no larger than the bound; a number that is longer than a machine's is neither.
func TestWidthsOfPrintf(t *testing.T) {
	for text, want := range map[string]int{
		fmt.Sprint(bounded.StapWidth - 1): bounded.StapWidth - 1, fmt.Sprint(bounded.StapWidth): bounded.StapWidth,
		fmt.Sprint(bounded.StapWidth + 1): bounded.StapWidth, strings.Repeat("9", 100): bounded.StapWidth,
	} {
		list, ok := directives("%" + text + "." + text + "d")
		require.True(t, ok)
		require.Equal(t, []int{want, want}, []int{list[0].width, list[0].precision}, text)
	}
}

// A return probe keeps only so many values of the entry.
func TestValuesOfTheEntry(t *testing.T) {
	script := func(n int) string {
		return "probe kernel.function(\"f\").return { println(0" + strings.Repeat(" + @entry(gettimeofday_ns())", n) + ") }"
	}
	_, err := Analyze("<input>", script(bounded.StapSaved), &Options{}, kernelWith("f"))
	require.NoError(t, err)
	_, err = Analyze("<input>", script(bounded.StapSaved+1), &Options{}, kernelWith("f"))
	require.ErrorContains(t, err, "more than 64 values of the entry")
}

// The text that arguments of the command line put into a script is bounded: of one long argument, of many uses of a short one, and of
// arguments that name themselves or each other.
func TestArgumentsThatAreLong(t *testing.T) {
	read := func(uses int, args ...string) error {
		_, err := Parse("<input>", "probe begin { "+strings.Repeat("println($1) ", uses)+"}", &Options{Args: args})
		return err
	}
	const want = "the arguments of the command line are too long"
	for name, length := range map[string]int{"one": bounded.StapInserted, "used_often": 1 << 12, "short_ones": 256} {
		t.Run(name, func(t *testing.T) {
			argument := "1" + strings.Repeat(" ", length-1)
			n := bounded.StapInserted / length
			require.NoError(t, read(n, argument))
			require.ErrorContains(t, read(n+1, argument), want)
		})
	}
	for name, args := range map[string][]string{
		"of_itself":       {"$1"},
		"twice_of_itself": {"$1+$1"},
		"of_each_other":   {"$2", "$1"},
		"of_all":          {"$*"},
		"in_a_comment":    {"/* */ $1"},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorContains(t, read(1, args...), want) })
	}
}
