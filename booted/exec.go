package booted

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unsafe"

	"kprobelab/errno"
	"kprobelab/internal/mailbox"
	"kprobelab/kimage/vmcore"
	"kprobelab/x86"
)

// Program is a program to run on a booted kernel, from the files that the kernel has (Put gives it others).
type Program struct {
	// Args are its arguments; the first is its path.
	Args []string
	// Env is its environment, Dir its working directory: / if empty.
	Env []string
	Dir string
	// Stdin holds the bytes that the program reads from standard input.
	Stdin []byte
	// Stdout and Stderr get its output as it comes; nil discards it.
	Stdout, Stderr io.Writer
}

// ErrNoInit: the dump's init is not the one of kprobelab boot.
var ErrNoInit = errors.New("programs can be run on a dump of kprobelab boot only")

// hostCalls is the upper half of the numbers of init's calls (internal/mailbox).
const hostCalls = 0x6b70

// Exec runs a program from its execve to its exit, and returns its exit code: 128 and
// the signal for one that a signal ended. An errno.Errno in the error says why it
// could not be started; other errors are the machine's, which then has to be
// restored.
func (k *Kernel) Exec(p *Program) (code int, err error) {
	stop, err := k.toInit()
	if err != nil {
		return 0, err
	}
	command := mailbox.Command{Kind: mailbox.Exec, Args: p.Args, Env: p.Env, Dir: p.dir(), Input: p.Stdin}
	out, err := k.command(command, nil, p.Stdout, p.Stderr)
	if err != nil {
		return 0, err
	}
	if err := k.comeBack(stop); err != nil {
		return 0, err
	}
	if hit := k.kprobes.ClearErr(); hit != nil {
		return out.Code(), hit
	}
	if out.Errno != 0 {
		return 0, fmt.Errorf("%s: %w", p.Args[0], out.Errno)
	}
	return out.Code(), nil
}

// toInit brings the machine to where init waits for work, and returns the address of its stop point.
func (k *Kernel) toInit() (x86.Addr, error) {
	stopPoint := k.image.SystemCallFunction(mailbox.StopCall)
	stop := k.image.Lookup(stopPoint)
	if len(stop) != 1 {
		return 0, fmt.Errorf("%w: it has no %s", ErrNoInit, stopPoint)
	}
	if err := k.home(stop[0].Addr); err != nil {
		return 0, err
	}
	var header [mailbox.HeaderSize]byte
	if err := k.machine.ReadUser(mailbox.Addr, header[:]); err != nil {
		if filtered := (*vmcore.FilteredError)(nil); errors.As(err, &filtered) {
			return 0, err // it may well be that init
		}
		return 0, fmt.Errorf("%w: %w", ErrNoInit, err)
	}
	call, err := mailbox.Site(header[:])
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNoInit, err)
	}
	k.init = initTask{k.machine.RunningTask(), call}
	return stop[0].Addr, nil
}

// command lets init do a command, up to its end. Calls of the host's group that are not init's go to others, if that is not nil.
func (k *Kernel) command(c mailbox.Command, others func(*x86.PtRegs) (bool, error), stdout, stderr io.Writer) (*mailbox.Outcome, error) {
	pieces, err := c.Pieces()
	if err != nil {
		return nil, err
	}
	for _, w := range pieces {
		if err := k.machine.WriteUser(w.At, w.Bytes); err != nil {
			return nil, err
		}
	}
	return k.listen(others, mailbox.To(stdout, stderr))
}

// initTask is the init of a booted kernel: its task, and where it makes its calls. A program in the guest can make the same
// calls; they are answered as the kernel answers a number that it does not know.
type initTask struct {
	task, call x86.Addr
}

// initCalls reports whether init makes the system call at an address.
func (k *Kernel) initCalls(at x86.Addr) bool {
	return at == k.init.call && k.machine.RunningTask() == k.init.task
}

// listen lets the guest run until init says that the program has ended.
func (k *Kernel) listen(others func(*x86.PtRegs) (bool, error), output func(int, []byte) error) (out *mailbox.Outcome, err error) {
	var failed error
	k.machine.OnHostCall(hostCalls, func(regs *x86.PtRegs) bool {
		if out != nil || failed != nil {
			return true // a program that traces the supervisor or init has let it go on: a trap came before the stop
		}
		op, ok := mailbox.IsCall(regs.AX)
		if ok && k.initCalls(x86.Addr(regs.IP)) {
			regs.AX = 0
			out, failed = mailbox.Take(op, regs.DI, regs.SI, regs.DX, userMemory{k}, output)
			return out != nil || failed != nil
		}
		if others != nil {
			if ok, failed = others(regs); ok {
				return failed != nil
			}
		}
		e := errno.ENOSYS
		regs.AX = uint64(-int64(e))
		return false
	})
	defer k.machine.OnHostCall(0, nil)
	k.waits.program, k.hasRun = true, true
	_, err = k.machine.Resume(0)
	k.waits.program, k.waits.open, k.super = false, false, 0
	if err != nil {
		return nil, err
	}
	return out, failed
}

// userMemory reads the user memory of init, where the pointers of its calls lead.
type userMemory struct{ k *Kernel }

func (u userMemory) ReadUser(at x86.Addr, b []byte) error { return u.k.machine.ReadUser(at, b) }

// offDI is the offset of di in pt_regs.
const offDI = x86.Addr(unsafe.Offsetof(x86.PtRegs{}.DI))

// comeBack lets init ask for work again: there calls and programs begin.
func (k *Kernel) comeBack(stop x86.Addr) error {
	for {
		if _, err := k.machine.Resume(stop); err != nil {
			return err
		}
		// The system call's own registers are where the first argument points to; before 4.17
		// the argument is the program's own.
		regs := k.machine.Stopped()
		if k.init.task != 0 && k.machine.RunningTask() != k.init.task {
			continue // another program asks as init does
		}
		if regs.DI == mailbox.Magic {
			return nil
		}
		var di [8]byte
		if err := k.machine.ReadMem(x86.Addr(regs.DI)+offDI, di[:]); err == nil && binary.LittleEndian.Uint64(di[:]) == mailbox.Magic {
			return nil
		}
	}
}
