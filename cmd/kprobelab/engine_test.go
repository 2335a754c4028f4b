//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kprobelab/machine"
)

func init() {
	commands["cramped-kprobelab"] = func() { cramp(); main() }
}

// cramp leaves this process 60 MiB of address space: enough for the program and
// not for a machine, whose heap alone has 64.
func cramp() {
	b, err := os.ReadFile("/proc/self/statm")
	var pages uint64
	if err == nil {
		_, err = fmt.Sscan(string(b), &pages)
	}
	limit := pages*uint64(os.Getpagesize()) + 60<<20
	if err = errors.Join(err, unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: limit, Max: limit})); err != nil {
		panic(err)
	}
}

// An engine that fails is no wrong use, and no refusal of the kernel's.
func TestEngineFailureHasItsOwnExitCode(t *testing.T) {
	failed := fmt.Errorf("%w: run at gcd+0x0/0x40: out of resources", machine.ErrEngine)
	for _, err := range []error{
		failed, usagef("%w", failed), &failure{exitRefused, fmt.Errorf("gcd: %w", failed)},
		oneLine(errors.Join(failed, errors.New("and more"))),
	} {
		require.Equal(t, exitEngine, exitCode(err))
	}
	require.Equal(t, exitRefused, exitCode(&failure{exitRefused, &machine.Fault{}}))
}
