package run

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/booted"
	"kprobelab/errno"
)

// TestCountsOfProbes: the counts of a module's probe are words.
func TestCountsOfProbes(t *testing.T) {
	for want, p := range map[string]booted.ModuleProbe{
		"1 hit, 0 missed": {Counted: true, Hits: 1},
		"5 hits, 1 return, 2 missed, 3 without an instance": {Counted: true, Hits: 5, Return: true, Returns: 1, Missed: 2, Exhausted: 3},
		"hits are not counted, 7 missed":                    {Missed: 7},
	} {
		require.Equal(t, want, counts(&p))
	}
	require.Equal(t, "return probe", kindOf(&booted.ModuleProbe{Return: true, Errno: errno.EINVAL}))
}

// TestModuleOfAFolder: a module of a folder is built for each kernel's release, with the parameters of the option.
func TestModuleOfAFolder(t *testing.T) {
	program := Job{Program: &booted.Program{Args: []string{os.Args[0]}}}
	o := &HostOptions{Build: " dir at=5 x=1", Builder: func(_ context.Context, release, folder string) (string, []byte, error) {
		if release == "5.4" {
			return "", nil, errors.New("no headers")
		}
		return folder + ".ko", []byte(release), nil
	}}
	job := program
	require.NoError(t, o.HostJob(&job))
	m := job.Host.Module
	require.Equal(t, "at=5 x=1", m.Parameters)
	for _, release := range []string{"5.10", "6.1"} {
		name, code, err := m.file(t.Context(), release)
		require.NoError(t, err)
		require.Equal(t, "dir.ko "+release, name+" "+string(code))
	}
	_, _, err := m.file(t.Context(), "5.4")
	require.EqualError(t, err, "no headers")

	job = program
	o.Module = "a.ko"
	require.ErrorContains(t, o.HostJob(&job), "a run has one module")
}
