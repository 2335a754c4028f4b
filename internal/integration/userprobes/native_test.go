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
	"kprobelab/profile"
)

// natively runs a program on the host, whose kernel has no probes in it.
func natively(t *testing.T, program string, args ...string) outcome {
	var out, bad strings.Builder
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &out, &bad
	err := cmd.Run()
	var exit *exec.ExitError
	o := outcome{stdout: out.String(), stderr: bad.String()}
	if errors.As(err, &exit) {
		status := exit.Sys().(syscall.WaitStatus)
		if status.Signaled() {
			o.signal = process.Signal(status.Signal())
		} else {
			o.code = status.ExitStatus()
		}
	} else {
		require.NoError(t, err)
	}
	return o
}

// shown is an outcome without what only the sandbox tells.
func (o outcome) shown() outcome {
	o.memory = outcome{}.memory
	return o
}

// Rule: signals are what the host's kernel makes of them; with probes on every instruction
// of the program, and of what of libc sends and handles signals, it does the same.
func TestSignals(t *testing.T) {
	f, native := compiled(t, "signals.c")
	c, _ := profile.Named("6.1")
	want := natively(t, native, "full")
	require.Equal(t, process.SIGSEGV, want.signal)
	for _, name := range engine.Names() {
		t.Run(name, func(t *testing.T) {
			r := &runner{t: t, c: c, file: f, name: name, args: []string{"full"}}
			require.Equal(t, want, r.run(nil, nil).shown())
			r.args = nil
			plain := r.run(nil, nil)
			var places []uint64
			for _, fn := range functionsOf(t, f, c) {
				if fn.own || libcOfSignals[fn.name] {
					places = append(places, fn.instructions...)
				}
			}
			places, _, _ = r.probable(places)
			hits := map[uint64]uint64{}
			require.Equal(t, plain.shown(), r.run(places, hits).shown())
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

// Rule: threads do what they do on the host, in whatever order they run, also with probes on
// every instruction of the program and on the returns of what the threads call.
func TestThreads(t *testing.T) {
	f, native := compiled(t, "threads.c")
	c, _ := profile.Named("6.12")
	want := natively(t, native)
	require.Equal(t, 5, want.code)
	var places, returns []uint64
	for _, fn := range functionsOf(t, f, c) {
		if fn.own || libcOfThreads[fn.name] {
			places = append(places, fn.instructions...)
		}
		if fn.name == "fib" || fn.name == "handler" {
			returns = append(returns, fn.entry)
		}
	}
	require.Len(t, returns, 2)
	for _, name := range engine.Names() {
		t.Run(name, func(t *testing.T) {
			r := &runner{t: t, c: c, file: f, name: name}
			for r.seed = range int64(2) {
				require.Equal(t, want, r.run(nil, nil).shown())
			}
			at, _, _ := r.probable(places)
			r.returns = returns
			hits := map[uint64]uint64{}
			require.Equal(t, want, r.run(at, hits).shown())
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

// Rule: processes do what they do on the host, with an address space each, also with probes on
// every instruction of the program, which a forked process inherits.
func TestProcesses(t *testing.T) {
	f, native := compiled(t, "processes.c")
	want := natively(t, native)
	require.Equal(t, 6, want.code, "%s%s", want.stdout, want.stderr)
	releases := []string{"6.12", "6.1"}
	if testing.Short() {
		releases = releases[:1]
	}
	for _, release := range releases {
		c, _ := profile.Named(release)
		var places []uint64
		returns := map[string]bool{"deeper": true, "ended": true}
		var entries []uint64
		for _, fn := range functionsOf(t, f, c) {
			if fn.own || libcOfProcesses[fn.name] {
				places = append(places, fn.instructions...)
			}
			if returns[fn.name] {
				entries = append(entries, fn.entry)
			}
		}
		require.Len(t, entries, 2)
		for _, name := range engine.Names() {
			t.Run(release+"/"+name, func(t *testing.T) {
				r := &runner{t: t, c: c, file: f, name: name}
				require.Equal(t, want, r.run(nil, nil).shown())
				at, _, _ := r.probable(places)
				r.returns = entries
				hits := map[uint64]uint64{}
				require.Equal(t, want, r.run(at, hits).shown())
				require.Greater(t, len(hits), 300)
			})
		}
	}
}

// libcOfProcesses are functions of libc that make processes and wait.
var libcOfProcesses = map[string]bool{"__libc_fork": true, "__wait4": true, "__waitpid": true, "__spawni_child": true, "__spawnix": true}
