package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// A number of the command line that is one more than the bound is a wrong use, in one sentence that names the bound.
func TestNumbersThatAreTooLarge(t *testing.T) {
	n := func(most int) (string, string) { return fmt.Sprint(most + 1), fmt.Sprint(most) }
	for name, c := range map[string]struct {
		most int
		args []string // the number goes to the end
	}{
		"CPUs":         {bounded.CPUs, []string{"run", "--call", "gcd(1, 2)", "--cpus"}},
		"CPUs_mount":   {bounded.CPUs, []string{"mount", "nosuch", "--cpus"}},
		"CheckPoints":  {bounded.CheckPoints, []string{"selfcheck", "--points"}},
		"SampleTasks":  {bounded.SampleTasks, []string{"sample", "kprobe", "--tasks"}},
		"SampleCalls":  {bounded.SampleCalls, []string{"sample", "kprobe", "--calls"}},
		"SampleActive": {bounded.SampleActive, []string{"sample", "kretprobe", "--maxactive"}},
		"BenchRounds":  {bounded.BenchRounds, []string{"bench", "--rounds"}},
		"BenchHits":    {bounded.BenchHits, []string{"bench", "--hits"}},
		"BenchOthers":  {bounded.BenchOthers, []string{"bench", "--others"}},
		"BootCPUs":     {bounded.BootCPUs, []string{"boot", "vmlinuz", "-o", "x.core", "--cpus"}},
	} {
		t.Run(name, func(t *testing.T) {
			one, most := n(c.most)
			var out, errs strings.Builder
			require.Equal(t, exitUsage, execute(append(append([]string{"kprobelab"}, c.args...), one), &out, &errs), errs.String())
			require.Contains(t, errs.String(), most)
			require.Equal(t, 1, strings.Count(errs.String(), "\n"), errs.String())
		})
	}
	var out, errs strings.Builder // which has a unit
	require.Equal(t, exitUsage, execute([]string{"kprobelab", "boot", "vmlinuz", "-o", "x.core", "--memory", fmt.Sprintf("%dM", bounded.BootMemory+1)}, &out, &errs))
	require.Contains(t, errs.String(), fmt.Sprintf("%dG", bounded.BootMemory>>10))
}

// A file of the command line that is longer than the bound is an error that names the file and the bound; nothing past it is read.
func TestFilesThatAreTooLong(t *testing.T) {
	for name, c := range map[string]struct {
		most int64
		args func(file string) []string
	}{
		"BenchFile":       {bounded.BenchFile, func(f string) []string { return []string{"bench", "--against", f} }},
		"Script_bpftrace": {bounded.Script, func(f string) []string { return []string{"bpftrace", f} }},
		"Script_stap":     {bounded.Script, func(f string) []string { return []string{"stap", f} }},
		"CheckInput":      {bounded.CheckInput, func(f string) []string { return []string{"check", f, "-"} }},
		"BPFObject":       {bounded.BPFObject, func(f string) []string { return []string{"bpf", f} }},
		"RawCode":         {bounded.RawCode, func(f string) []string { return []string{"decode", "corpus", "--raw", f} }},
		"TracingFile": {bounded.TracingFile, func(f string) []string {
			return []string{"boot", "vmlinuz", "--exec", "/bin/x", "--file", f + ":/bin/x", "--tracing", f}
		}},
		"Readme":      {bounded.Readme, func(f string) []string { return []string{"probe", "--readme", f, "-D", "gcd"} }},
		"PageFile":    {bounded.PageFile, func(f string) []string { return []string{"serve", "--page", f} }},
		"ProgramFile": {bounded.ProgramFile, func(f string) []string { return []string{"uprobe", f} }},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && c.most > 64<<20 {
				t.Skip("it reads half a gigabyte")
			}
			file := filepath.Join(t.TempDir(), "long")
			require.NoError(t, os.WriteFile(file, nil, 0o700))
			require.NoError(t, os.Truncate(file, c.most+1))
			var out, errs strings.Builder
			require.Equal(t, exitImage, execute(append([]string{"kprobelab"}, c.args(file)...), &out, &errs), errs.String())
			require.Contains(t, errs.String(), said(c.most))
			require.Equal(t, 1, strings.Count(errs.String(), "\n"), errs.String())
		})
	}
}

// said is a bound of bytes in the words of an error.
func said(most int64) string {
	if most%(1<<30) == 0 {
		return fmt.Sprintf("more than %d GiB", most>>30)
	}
	return fmt.Sprintf("more than %d MiB", most>>20)
}

// The output of a guest's program that is kept for --json has a bound.
func TestOutputThatIsTooMuch(t *testing.T) {
	var k kept
	_, err := k.Write(make([]byte, bounded.GuestOutput))
	require.NoError(t, err)
	_, err = k.Write([]byte("x"))
	require.EqualError(t, err, "the program writes more than 64 MiB")
	require.Equal(t, bounded.GuestOutput, k.Len())
}

// The object that an assembler makes has a bound.
func TestObjectsThatAreTooLarge(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("gcc is not here")
	}
	file := filepath.Join(t.TempDir(), "a.s")
	require.NoError(t, os.WriteFile(file, []byte(fmt.Sprintf("f: ret\n.data\n.zero %d\n", bounded.Object)), 0o600))
	var out, errs strings.Builder
	require.Equal(t, exitImage, execute([]string{"kprobelab", "explain", "--asm", file, "f"}, &out, &errs), errs.String())
	require.Contains(t, errs.String(), said(bounded.Object))
	require.Equal(t, 1, strings.Count(errs.String(), "\n"), errs.String())
}

// A file of a booted kernel may take more instructions than one of the guest kernel, and both have a bound.
func TestMountsHaveABudget(t *testing.T) {
	require.EqualValues(t, bounded.MountBudget, mountBudget(true, 1000))
	require.EqualValues(t, 1000, mountBudget(false, 1000))
}
