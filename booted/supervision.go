package booted

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"kprobelab/errno"
	"kprobelab/internal/mailbox"
	"kprobelab/internal/supervisor"
	"kprobelab/x86"
)

// supervisorELF is the supervisor, which make guest builds of testdata/init/supervise.c.
//
//go:embed supervisor.elf
var supervisorELF []byte

// progress is the state of a program of a session.
type progress int

const (
	notStarted progress = iota
	running
	ended
)

// supervision is a session that runs.
type supervision struct {
	k        *Kernel
	s        *Session
	ctx      context.Context
	result   *Result
	programs []*Program
	jobs     [][]byte
	state    []progress
	// from is the supervisor: its task, and where it makes its calls.
	from initTask
	// spared: a full memory does not make the kernel kill the supervisor.
	spared bool
	// err is the errno with which the program could not be started, 0 if it was.
	err errno.Errno

	input inputs
	ready readiness
	// interruptAt and killAt are the times at which the program gets SIGINT and SIGKILL, 0 without one.
	interruptAt, killAt uint64
	// signals holds the signals that are to be sent to the program.
	signals []syscall.Signal
	// gone: ctx has ended, and that is known.
	gone bool
	// begun is the host's and the guest's time when the program began.
	begun   time.Time
	begunAt uint64
}

// run starts the supervisor, and lets the guest run until it has ended.
func (v *supervision) run() error {
	stop, err := v.k.toInit()
	if err != nil {
		return err
	}
	fd, err := v.k.asks("memfd_create", "kprobelab", 1) // MFD_CLOEXEC
	if err != nil {
		return fmt.Errorf("the supervisor of programs: %w", err)
	}
	if err := v.k.write(fd, supervisorELF); err != nil {
		return err
	}
	if v.s.supervisor {
		args := append([]string{fmt.Sprintf("/proc/1/fd/%d", fd)}, v.s.Args...)
		if v.jobs[0], err = supervisor.Job(args, nil, "/", &supervisor.Rights{}); err != nil {
			return err
		}
	}
	defer v.input.close()
	v.input.start(v.s)
	command := mailbox.Command{Kind: mailbox.Exec, Args: []string{fmt.Sprintf("/proc/self/fd/%d", fd)}, Dir: "/"}
	named := asked{k: v.k, dir: v.s.dir()}
	named.begin()
	out, err := v.k.command(command, v.hostCall, nil, nil)
	named.end()
	v.result.Asked = slices.Sorted(maps.Keys(named.names))
	if err != nil {
		return err
	}
	if err := v.k.comeBack(stop); err != nil {
		return err
	}
	if _, err := v.k.asks("close", fd); err != nil {
		return err
	}
	switch {
	case out.Errno != 0:
		return fmt.Errorf("the supervisor of programs: %w", out.Errno)
	case v.err != 0:
		return fmt.Errorf("%s: %w", v.s.Args[0], v.err)
	case v.state[0] != ended:
		return ErrSupervisor
	}
	return v.k.kprobes.ClearErr()
}

// hostCall answers a call of the supervisor. Another program that makes such a call gets what a kernel says of a
// number that it does not know.
func (v *supervision) hostCall(regs *x86.PtRegs) (mine bool, err error) {
	op, ok := supervisor.IsCall(regs.AX)
	if !ok {
		return false, nil
	}
	caller := initTask{v.k.machine.RunningTask(), x86.Addr(regs.IP)}
	if op == supervisor.Begin && v.from.task == 0 && regs.DI == supervisor.Version {
		v.from = caller
		v.k.super = caller.task
	}
	if caller != v.from {
		return false, nil
	}
	switch regs.AX = 0; op {
	case supervisor.Ask:
		regs.AX, err = v.ask(regs.DI, regs.SI, regs.DX != 0)
	case supervisor.Out:
		err = v.output(regs.DI, regs.SI, regs.DX)
	case supervisor.Ended:
		err = v.hasEnded(regs.DI, uint32(regs.SI), errno.Errno(regs.DX))
	}
	return true, err
}

// output hands over what a program has written.
func (v *supervision) output(rdi, at, size uint64) error {
	n, fd, ok := supervisor.Stream(rdi)
	if !ok || n >= len(v.programs) || size > supervisor.PieceSize || at >= uint64(x86.UserEnd) || at+size > uint64(x86.UserEnd) {
		return fmt.Errorf("%w: it hands over %d bytes of %#x", ErrSupervisor, size, rdi)
	}
	b := make([]byte, size)
	if err := v.k.machine.ReadUser(x86.Addr(at), b); err != nil {
		return fmt.Errorf("%w: %w", ErrSupervisor, err)
	}
	if n == 0 {
		v.ready.sees(v.s.Ready, fd, b)
	}
	return mailbox.To(v.programs[n].Stdout, v.programs[n].Stderr)(fd, b)
}

// hasEnded notes the end of a program.
func (v *supervision) hasEnded(program uint64, status uint32, err errno.Errno) error {
	if program >= uint64(len(v.programs)) || v.state[program] != running {
		return fmt.Errorf("%w: it says that program %d has ended", ErrSupervisor, program)
	}
	o := mailbox.Outcome{Status: status, Errno: err}
	exit := Exit{o.Code(), o.Signal()}
	v.state[program] = ended
	if program == 0 {
		v.result.Exit, v.err = exit, err
		v.result.NeverReady = len(v.s.Workloads) > 0 && v.state[1] == notStarted
		return nil
	}
	v.result.Workloads[program-1] = exit
	if err != 0 {
		v.result.Unstarted[program-1] = fmt.Errorf("%s: %w", v.programs[program].Args[0], err)
	}
	return nil
}

// ask says what the supervisor is to do.
func (v *supervision) ask(job, input uint64, free bool) (uint64, error) {
	if err := v.spare(true); err != nil {
		return 0, err
	}
	now := v.k.machine.Now()
	switch {
	case v.state[0] == notStarted:
		v.begun, v.begunAt = time.Now(), now
		if v.s.For > 0 && v.s.Ready == nil {
			v.interruptAt = now + uint64(v.s.For)
		}
		return v.start(0, job)
	case v.state[0] == ended:
		return v.end()
	}
	v.listen(now)
	if len(v.signals) > 0 {
		sig := v.signals[0]
		v.signals = v.signals[1:]
		if sig == syscall.SIGINT || sig == syscall.SIGTERM {
			v.killAt = now + patience
		}
		return supervisor.Answer(supervisor.Signal, 0, uint32(sig)), nil
	}
	if free {
		if b, more := v.input.next(); len(b) > 0 {
			return supervisor.Answer(supervisor.Input, 0, uint32(len(b))), v.k.machine.WriteUser(x86.Addr(input), b)
		} else if !more {
			return supervisor.Answer(supervisor.Close, 0, 0), nil
		}
	}
	if n, err := v.workload(now); n > 0 || err != nil {
		if err != nil {
			return 0, err
		}
		return v.start(n, job)
	}
	return v.wait(now), nil
}

// start lets the supervisor start a program.
func (v *supervision) start(n int, at uint64) (uint64, error) {
	if err := v.spare(false); err != nil {
		return 0, err
	}
	v.state[n] = running
	return supervisor.Answer(supervisor.Start, n, uint32(len(v.jobs[n]))), v.k.machine.WriteUser(x86.Addr(at), v.jobs[n])
}

// end ends the workloads that still run, then the supervisor.
func (v *supervision) end() (uint64, error) {
	for n := 1; n < len(v.state); n++ {
		if v.state[n] == running && !v.killed(n) {
			return supervisor.Answer(supervisor.Signal, n, uint32(syscall.SIGKILL)), nil
		}
	}
	for _, s := range v.state {
		if s == running {
			return supervisor.Answer(supervisor.Wait, 0, supervisor.Forever), nil
		}
	}
	return supervisor.Answer(supervisor.End, 0, 0), nil
}

// killed notes that a workload is killed, and reports whether it was before.
func (v *supervision) killed(n int) bool {
	was := v.result.Workloads[n-1].Signal != 0
	v.result.Workloads[n-1] = Exit{128 + int(syscall.SIGKILL), int(syscall.SIGKILL)}
	return was
}

// listen takes what the host has for the program, and what is due.
func (v *supervision) listen(now uint64) {
	for {
		select {
		case sig := <-v.s.Signals:
			if sig > 0 {
				v.signals = append(v.signals, sig)
				continue
			}
		default:
		}
		break
	}
	if v.ctx.Err() != nil && !v.gone {
		v.gone = true
		v.signals = append(v.signals, syscall.SIGINT)
	}
	if v.interruptAt != 0 && now >= v.interruptAt {
		v.interruptAt = 0
		v.signals = append(v.signals, syscall.SIGINT)
	}
	if v.killAt != 0 && now >= v.killAt {
		v.killAt = 0
		v.result.Killed = true
		v.signals = append(v.signals, syscall.SIGKILL)
	}
}

// workload is the next workload to start, 0 without one. It plans the program's end when all have ended.
func (v *supervision) workload(now uint64) (int, error) {
	if len(v.s.Workloads) == 0 && v.s.Ready == nil {
		return 0, nil
	}
	if ready, err := v.ready.is(v, now); !ready || err != nil {
		return 0, err
	}
	if v.s.Ready != nil && v.s.For > 0 && !v.ready.timed {
		v.ready.timed = true
		v.interruptAt = now + uint64(v.s.For)
	}
	done := len(v.s.Workloads) > 0
	for n := 1; n < len(v.state); n++ {
		if v.state[n] == notStarted {
			return n, nil
		}
		done = done && v.state[n] == ended
	}
	if done && !v.ready.over {
		v.ready.over = true
		if at := now + moment; v.interruptAt == 0 || at < v.interruptAt {
			v.interruptAt = at
		}
	}
	return 0, nil
}

// wait says how long the supervisor is to wait. While the host may have more for the program, the guest's time does
// not run ahead of the host's.
func (v *supervision) wait(now uint64) uint64 {
	due := uint64(0)
	at := func(t uint64) {
		if t != 0 && (due == 0 || t < due) {
			due = t
		}
	}
	at(v.interruptAt)
	at(v.killAt)
	at(v.ready.due)
	v.k.waits.open = due != 0 || v.input.open()
	if v.s.Signals != nil || v.ctx.Done() != nil || v.input.open() {
		at(now + pollStep)
	}
	if v.input.open() {
		if ahead := time.Duration(now-v.begunAt) - time.Since(v.begun); ahead > 0 {
			v.input.pause(ahead, v)
		}
	}
	if due == 0 {
		return supervisor.Answer(supervisor.Wait, 0, supervisor.Forever)
	}
	ms := uint64(1)
	if due > now {
		ms = min((due-now+1e6-1)/1e6, 1<<31-1)
	}
	return supervisor.Answer(supervisor.Wait, 0, uint32(ms))
}

// inputs is the standard input of the session's own program: Stdin, then the pieces of Input.
type inputs struct {
	pieces chan []byte
	stop   chan struct{}
	rest   []byte
	// ended: no more pieces come. told: the program knows.
	ended, told bool
}

// firstInput is the host's time that start waits for the first piece of input. Input from a file or a shell's pipe comes
// at once.
const firstInput = 50 * time.Millisecond

// start begins to read the input.
func (i *inputs) start(s *Session) {
	i.rest = s.Stdin
	if s.Input == nil {
		i.ended = true
		return
	}
	i.pieces, i.stop = make(chan []byte), make(chan struct{})
	pieces, stop := i.pieces, i.stop
	go func() {
		defer close(pieces)
		for b := make([]byte, supervisor.InputSize); ; {
			n, err := s.Input.Read(b)
			if n > 0 {
				select {
				case pieces <- append([]byte(nil), b[:n]...):
				case <-stop:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	i.comes(time.After(firstInput))
}

func (i *inputs) close() {
	if i.stop != nil {
		close(i.stop)
	}
}

// comes waits for a piece of the input until a time is up.
func (i *inputs) comes(limit <-chan time.Time) {
	select {
	case b, more := <-i.pieces:
		i.rest, i.ended = append(i.rest, b...), !more
	case <-limit:
	}
}

// open reports whether the host may have more input.
func (i *inputs) open() bool { return !i.ended }

// next takes the next piece; false once there is none and none comes.
func (i *inputs) next() (b []byte, more bool) {
	if len(i.rest) == 0 && !i.ended {
		select {
		case p, more := <-i.pieces:
			i.rest, i.ended = p, !more
		default:
		}
	}
	n := min(len(i.rest), supervisor.InputSize)
	b, i.rest = i.rest[:n], i.rest[n:]
	if n > 0 || !i.ended || i.told {
		return b, true
	}
	i.told = true
	return nil, false
}

// pause lets the host's time pass, until input or a signal comes.
func (i *inputs) pause(d time.Duration, v *supervision) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case b, more := <-i.pieces:
		i.rest, i.ended = append(i.rest, b...), !more
	case sig := <-v.s.Signals:
		if sig > 0 {
			v.signals = append(v.signals, sig)
		}
	case <-v.ctx.Done():
	case <-t.C:
	}
}
