package userprobes

import (
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/engine"
	"kprobelab/internal/process"
	"kprobelab/internal/transparent"
	"kprobelab/profile"
)

// natively runs a program on the host, whose kernel has no probes in it.
func natively(t *testing.T, program string, args ...string) transparent.Outcome {
	var out, bad strings.Builder
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &out, &bad
	err := cmd.Run()
	var exit *exec.ExitError
	o := transparent.Outcome{Stdout: out.String(), Stderr: bad.String()}
	if errors.As(err, &exit) {
		status := exit.Sys().(syscall.WaitStatus)
		if status.Signaled() {
			o.Signal = process.Signal(status.Signal())
		} else {
			o.Code = status.ExitStatus()
		}
	} else {
		require.NoError(t, err)
	}
	return o
}

// outside returns an outcome without the facts that only the sandbox has.
func outside(o transparent.Outcome) transparent.Outcome {
	o.Memory = transparent.Outcome{}.Memory
	return o
}

// Rule: signals act as on the host's kernel, with probes on every instruction of the program, and
// of the functions of libc that send and handle signals.
func TestSignals(t *testing.T) {
	f, native := compiled(t, "signals.c")
	c, _ := profile.Named("6.1")
	want := natively(t, native, "full")
	require.Equal(t, process.SIGSEGV, want.Signal)
	for _, name := range engine.Names() {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t, c, f, name, "full")
			require.Equal(t, want, outside(r.run(nil, nil)))
			r.Args = nil
			plain := r.run(nil, nil)
			places, _ := placesOf(t, c, f, "signals.c", libcOfSignals)
			hits := map[uint64]uint64{}
			require.Equal(t, outside(plain), outside(r.run(places, hits)))
			require.Greater(t, len(hits), 500)
		})
	}
}

// libcOfSignals are functions of libc with signals.
var libcOfSignals = map[string]bool{
	"raise": true, "__pthread_kill_implementation": true, "pthread_kill": true, "kill": true, "sigqueue": true, "__sigsuspend": true, "__libc_sigaction": true,
	"__sigsetjmp": true, "siglongjmp": true, "__libc_siglongjmp": true, "_longjmp_unwind": true, "__longjmp": true, "sigaltstack": true,
	"__pthread_sigmask": true, "sigprocmask": true, "__sigprocmask": true,
}

// Rule: threads behave as on the host, in whatever order they run, also with probes on every
// instruction of the program and on the returns of the functions that the threads call.
func TestThreads(t *testing.T) {
	f, native := compiled(t, "threads.c")
	c, _ := profile.Named("6.12")
	want := natively(t, native)
	require.Equal(t, 5, want.Code)
	places, returns := placesOf(t, c, f, "threads.c", libcOfThreads, "fib", "handler")
	require.Len(t, returns, 2)
	for _, name := range engine.Names() {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t, c, f, name)
			for r.Seed = range int64(2) {
				require.Equal(t, want, outside(r.run(nil, nil)))
			}
			r.Returns = returns
			hits := map[uint64]uint64{}
			require.Equal(t, want, outside(r.run(places, hits)))
			require.Greater(t, len(hits), 300)
		})
	}
}

// libcOfThreads are functions of libc with threads.
var libcOfThreads = map[string]bool{
	"pthread_mutex_lock": true, "___pthread_mutex_lock": true, "___pthread_mutex_unlock": true, "__pthread_mutex_unlock_usercnt": true, "___pthread_cond_wait": true,
	"__pthread_cond_wait": true, "___pthread_cond_signal": true, "__sched_yield": true, "___pthread_barrier_wait": true, "__new_sem_wait": true, "__new_sem_post": true,
	"__futex_abstimed_wait_common": true, "__pthread_clockjoin_ex": true,
}

// Rule: processes behave as on the host, with an address space each, also with probes on every
// instruction of the program, which a forked process inherits.
func TestProcesses(t *testing.T) {
	f, native := compiled(t, "processes.c")
	want := natively(t, native)
	require.Equal(t, 6, want.Code, "%s%s", want.Stdout, want.Stderr)
	releases := []string{"6.12", "6.1"}
	if testing.Short() {
		releases = releases[:1]
	}
	for _, release := range releases {
		c, _ := profile.Named(release)
		places, entries := placesOf(t, c, f, "processes.c", libcOfProcesses, "deeper", "ended")
		require.Len(t, entries, 2)
		for _, name := range engine.Names() {
			t.Run(release+"/"+name, func(t *testing.T) {
				r := newRunner(t, c, f, name)
				require.Equal(t, want, outside(r.run(nil, nil)))
				r.Returns = entries
				hits := map[uint64]uint64{}
				require.Equal(t, want, outside(r.run(places, hits)))
				require.Greater(t, len(hits), 300)
			})
		}
	}
}

// libcOfProcesses are functions of libc that make processes and wait.
var libcOfProcesses = map[string]bool{"__libc_fork": true, "__wait4": true, "__waitpid": true, "__spawni_child": true, "__spawnix": true}
