package running

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/dumps"
	"kprobelab/internal/integration/dumps/runs"
)

var update = flag.Bool("update", false, "record testdata/breakpoints.txt anew on this machine's processor")

const (
	breakpointsELF = "../../../testdata/breakpoints.elf"
	recorded       = "testdata/breakpoints.txt"
)

// TestBreakpointsOfTheGuests: what a program's own hardware breakpoints do, by perf_event_open and by
// ptrace, is what they did on a processor (an AMD EPYC, Linux 6.18): which fire, at which ip, in
// which order, by which signals. QUESTIONS is how many random ones, of all kernels.
func TestBreakpointsOfTheGuests(t *testing.T) {
	if *update {
		out, err := exec.Command(breakpointsELF, "60", "1").Output()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(recorded, out, 0o644))
	}
	want, err := os.ReadFile(recorded)
	require.NoError(t, err)
	program, err := os.ReadFile(breakpointsELF)
	require.NoError(t, err)
	for _, name := range dumps.Running {
		t.Run(name, func(t *testing.T) {
			runs.File(t, name)
			k := boot(t, name)
			k.put("/breakpoints", program)
			k.breakpoints(name, string(want), "60", "1")
		})
	}
}

// TestBreakpointsBesideThisProcessor is the same with others each time, where this machine lets the
// program run by itself.
func TestBreakpointsBesideThisProcessor(t *testing.T) {
	program, err := os.ReadFile(breakpointsELF)
	require.NoError(t, err)
	count, seed := os.Getenv("QUESTIONS"), fmt.Sprint(rand.Uint32())
	names := dumps.Running
	if count == "" {
		count, names = "40", []string{"6.1"}
	}
	want, err := exec.Command(breakpointsELF, count, seed).Output()
	if err != nil || strings.Contains(string(want), "!-") || strings.Contains(string(want), "fails with") {
		t.Skip("this machine does not let the program set hardware breakpoints")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			k := boot(t, name)
			k.put("/breakpoints", program)
			k.breakpoints(name, string(want), count, seed)
		})
	}
}

// breakpoints compares what the program prints here with what it printed elsewhere.
func (k *kernel) breakpoints(name, want string, args ...string) {
	end := k.program(append([]string{"/breakpoints"}, args...)...)
	require.Zero(k.t, end.code)
	require.Equal(k.t, signalsOf(name, want), signalsOf(name, end.out), "arguments %v", args)
}

// signalsOf leaves out the signals that perf events send since 5.13.
func signalsOf(name, text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		if name != "5.10" || !strings.HasPrefix(line, "SIGTRAP:") {
			list = append(list, line)
		}
	}
	return list
}
