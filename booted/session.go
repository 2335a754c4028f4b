package booted

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"syscall"
	"time"

	"kprobelab/internal/supervisor"
)

// Session is a program on a booted kernel as one of the user's own: a child of a supervisor, not of init, with its
// standard streams as bytes, with signals, and with other programs beside it.
type Session struct {
	Program
	// Rights limit the program, not the workloads.
	Rights Rights
	// Input delivers the bytes that the program reads after Stdin. Until it ends, virtual time does not pass faster
	// than the host's. nil: the input ends with Stdin.
	Input io.Reader
	// Signals are sent to the program's process group as they come.
	Signals <-chan syscall.Signal
	// Workloads run beside the program, all at once, from when it is ready on. When all have ended, the program gets
	// SIGINT a moment later.
	Workloads []*Program
	// Ready says when the program is ready: when a line of its output matches. nil: when it and its children sleep.
	Ready *regexp.Regexp
	// For is the virtual time after which the program gets SIGINT. It begins when the program starts or, with a
	// Ready, when the program is ready. 0: no SIGINT.
	For time.Duration

	// supervisor: the program is the supervisor's own file, and Args are the arguments after its name.
	supervisor bool
}

// Exit is the end of a program.
type Exit struct {
	// Code is the exit code as a shell has it: 128 and the signal for a program that a signal has ended. Signal is
	// that one, or 0.
	Code, Signal int
}

// Result is the end of a session.
type Result struct {
	// Exit is the end of the program, Workloads are the ends of the workloads.
	Exit
	Workloads []Exit
	// Unstarted says why a workload did not run, by its number; nil if it did.
	Unstarted []error
	// NeverReady: the program ended before it was ready.
	NeverReady bool
	// Killed: the program did not end by SIGINT, and was killed.
	Killed bool
	// Asked are the paths that the programs named in system calls, sorted, whether there was a file or not.
	Asked []string
	// Trouble holds the kernel's log lines of the session, from the first warning, bug or oops on.
	Trouble []string
}

// ErrSupervisor: the supervisor of the programs has ended before them, or a message is not one of its own.
var ErrSupervisor = errors.New("a program of the guest has ended or changed the supervisor of the programs")

// Times of a session, in nanoseconds of virtual time.
const (
	// patience is the time between SIGINT and SIGKILL, for a program that does not end by SIGINT.
	patience = 10 * uint64(time.Second)
	// moment passes between the end of the workloads and SIGINT: tools look into their buffers ten times a second.
	moment = 300 * uint64(time.Millisecond)
	// readyStep is the time that all programs have to sleep before they count as ready.
	readyStep = 60 * uint64(time.Millisecond)
	// pollStep is the interval at which the supervisor asks for input and signals while the host may have some.
	pollStep = 100 * uint64(time.Millisecond)
)

// Run runs a session to the end of its program. If ctx ends, the program gets SIGINT, and is killed if that does not
// end it; the error is then nil all the same, and the result says how the program ended. An errno.Errno in the error
// says why the program could not be started, a *PanicError that the kernel panicked; after other errors than the first
// the machine has to be restored.
func (k *Kernel) Run(ctx context.Context, s *Session) (*Result, error) {
	if len(s.Workloads) >= supervisor.Programs {
		return nil, fmt.Errorf("%w: %d workloads; %d are possible", supervisor.ErrJob, len(s.Workloads), supervisor.Programs-1)
	}
	v := &supervision{k: k, s: s, ctx: ctx, result: &Result{Workloads: make([]Exit, len(s.Workloads)), Unstarted: make([]error, len(s.Workloads))}}
	for i, p := range append([]*Program{&s.Program}, s.Workloads...) {
		rights := &supervisor.Rights{}
		if i == 0 {
			rights = &s.Rights.of
		}
		job, err := supervisor.Job(p.Args, p.Env, p.dir(), rights)
		if err != nil {
			return nil, err
		}
		v.jobs = append(v.jobs, job)
		v.programs = append(v.programs, p)
		v.state = append(v.state, notStarted)
	}
	log := k.logged()
	err := v.run()
	v.result.Trouble = log.trouble()
	return v.result, panicOf(err, log)
}

// dir is the working directory.
func (p *Program) dir() string {
	if p.Dir == "" {
		return "/"
	}
	return p.Dir
}
