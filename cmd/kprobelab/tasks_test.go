package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTooManyTasks: one task more than there can be is wrong use, and told
// before anything runs.
func TestTooManyTasks(t *testing.T) {
	args := []string{"kprobelab", "run", "--cpus", "2"}
	for range 255 {
		args = append(args, "--task", "gcd(12, 18)")
	}
	var out, err bytes.Buffer
	require.Equal(t, exitOK, execute(args, &out, &err), err.String())
	require.Equal(t, 255, bytes.Count(out.Bytes(), []byte(": gcd(12, 18) = 6\n")))
	out.Reset()
	require.Equal(t, exitUsage, execute(append(args, "--task", "gcd(1, 2)"), &out, &err))
	require.Empty(t, out.String())
	require.Equal(t, "kprobelab: --task: there can be 255 tasks, not 256\n", err.String())
}
