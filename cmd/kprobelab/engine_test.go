//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kprobelab/machine"
	"kprobelab/run"
)

func init() {
	commands["cramped-kprobelab"] = func() { cramp(); main() }
}

// cramp leaves this process 60 MiB of address space: enough for the program and
// not for a machine, whose heap alone has 64. Go reserves 64 MiB at a time, from an
// address that is drawn, and may be at the end of that when it begins: the program's own memory is
// reserved before. Threads that collect garbage would take 8 MiB each for their stacks.
func cramp() {
	runtime.KeepAlive(make([]byte, 32<<20))
	runtime.GC()
	debug.SetGCPercent(-1)
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
		failed, usagef("%w", failed), fail(exitRefused, fmt.Errorf("gcd: %w", failed)),
		run.OneLine(errors.Join(failed, errors.New("and more"))),
	} {
		require.Equal(t, exitEngine, exitCode(err))
	}
	require.Equal(t, exitRefused, exitCode(fail(exitRefused, &machine.Fault{})))
}
