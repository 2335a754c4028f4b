//go:build linux

package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/outfile"
)

// A disk that is full is one sentence and exit code 3, whatever is written: here a device that is always full.
func TestOutputsOnAFullDevice(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full here")
	}
	for name, write := range map[string]func(string) error{
		"trace_output": func(name string) error { return outfile.Write(name, []byte("a trace")) },
		"append":       func(name string) error { return outfile.Append(name, "a row\n") },
	} {
		err := write("/dev/full")
		require.EqualError(t, err, "write /dev/full: no space left on device", name)
		require.Equal(t, exitImage, exitCode(err), name)
	}
}
