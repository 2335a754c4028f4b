package boot

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kprobelab/internal/bounded"
	"kprobelab/internal/mailbox"
	"kprobelab/internal/qemu"
	"kprobelab/x86"
)

// Options select the machine and the kernel to boot.
type Options struct {
	// QEMU is the program qemu-system-x86_64.
	QEMU string
	// Kernel is booted; KASLR lets it choose its address.
	Kernel *Kernel
	KASLR  bool
	// CPU is the model as QEMU writes it, CPUs how many there are, and Megabytes how
	// much memory the guest has.
	CPU       string
	CPUs      int
	Megabytes int
	// Append are more words for the kernel's command line.
	Append string
	// Files are files of the initramfs besides init.
	Files []File
	// Console gets the kernel's console output as it comes; may be nil.
	Console io.Writer
	// Limit is the longest time from power-on to the end of follow.
	Limit time.Duration
}

// ParseMegabytes reads a size of memory, such as 128M or 1G.
func ParseMegabytes(text string) (int, error) {
	var n int
	var unit string
	if _, err := fmt.Sscanf(text, "%d%s", &n, &unit); err != nil || n > MaxMegabytes {
		n, unit = 0, ""
	}
	switch strings.ToUpper(unit) {
	case "G", "GB", "GIB":
		n *= 1024
	case "M", "MB", "MIB":
	default:
		n = 0
	}
	if n < MinMegabytes || n > MaxMegabytes {
		return 0, fmt.Errorf("%q is not from %dM to %dG, such as 256M", text, MinMegabytes, MaxMegabytes/1024)
	}
	return n, nil
}

// Limits of a machine.
const (
	MaxCPUs      = bounded.BootCPUs
	MinMegabytes = 64
	MaxMegabytes = bounded.BootMemory
)

// baseLine is the kernel's command line before Append. A machine that is halted or
// resets itself would hang the caller: a panic ends it at once. The time-stamp counter
// is the clock: it needs no device.
const baseLine = "console=ttyS0 panic=-1 nokaslr tsc=reliable"

// kaslrLine is baseLine with KASLR.
var kaslrLine = strings.Replace(baseLine, " nokaslr", "", 1)

// CommandLine returns the kernel's command line.
func (o *Options) CommandLine() string {
	line := baseLine
	if o.KASLR {
		line = kaslrLine
	}
	return strings.TrimSpace(line + " " + o.Append)
}

// Check fails if the kernel lacks a feature that the options need: the error is ErrKernel.
func (o *Options) Check() error {
	if o.KASLR && o.Kernel.gate == 0 {
		return fmt.Errorf("%w: it has no %s, by which a kernel with KASLR is found in memory", ErrKernel, gateSymbols[0])
	}
	return nil
}

// Guest is a booted kernel at the stop point.
type Guest struct {
	o        *Options
	running  *qemu.Running
	debugger *qemu.Debugger
	stop     x86.Addr
	// Slide is the distance in bytes between the kernel's address and its link address.
	Slide int64
	// call is the instruction of init's calls.
	call x86.Addr
	// space is init's address space.
	space uint64
}

// Boot boots the kernel up to the stop point, and ends it when follow returns. The error
// is follow's, or an *Error.
func Boot(ctx context.Context, o *Options, follow func(*Guest) error) error {
	if err := o.Check(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kprobelab-boot")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	kernel := filepath.Join(dir, "vmlinuz")
	if err := os.WriteFile(kernel, o.Kernel.BzImage, 0o600); err != nil {
		return err
	}
	m := &qemu.Machine{
		QEMU: o.QEMU, Kernel: kernel, CPU: o.CPU, CPUs: o.CPUs, Megabytes: o.Megabytes,
		Counted: true, Debugged: true, NoFrames: true, Init: Init, Tree: folders(o.Files), Line: o.CommandLine(),
		Console: o.Console, Limit: o.Limit,
	}
	arrived, follows := false, error(nil)
	err = m.BootContext(ctx, func(r *qemu.Running) error {
		d, err := r.Debug()
		if err != nil {
			return err
		}
		defer d.Close()
		g := &Guest{o: o, running: r, debugger: d, stop: o.Kernel.StopPoint}
		if o.KASLR {
			if err := g.findKernel(o.Kernel.gate); err != nil {
				return err
			}
			g.stop = o.Kernel.StopPoint.Add(g.Slide)
		}
		if err := g.arrive(); err != nil {
			return err
		}
		arrived = true
		follows = follow(g)
		return follows
	})
	var ended *qemu.Ended
	if !errors.As(err, &ended) {
		return err
	}
	return explain(ended, o, arrived, follows)
}

// arrive waits for init's first call, and finds its mailbox.
func (g *Guest) arrive() error {
	if err := g.debugger.BreakAt(g.stop); err != nil {
		return err
	}
	if err := g.debugger.Go(); err != nil {
		return err
	}
	if err := g.toStop(); err != nil {
		return err
	}
	var err error
	if g.space, err = g.debugger.Space(); err != nil {
		return err
	}
	header := make([]byte, mailbox.HeaderSize)
	if err := g.debugger.ReadMemory(mailbox.Addr, header); err != nil {
		return err
	}
	if g.call, err = mailbox.Site(header); err != nil {
		return err
	}
	return g.debugger.BreakAt(g.call)
}

// toStop waits until init is at the stop point: other programs may call getppid, too.
func (g *Guest) toStop() error {
	for {
		at, err := g.debugger.Stopped(0)
		if err != nil {
			return err
		}
		if at != g.stop {
			return fmt.Errorf("the machine stopped at %#x, where boot has no breakpoint", uint64(at))
		}
		ours, err := g.atStop()
		if ours || err != nil {
			return err
		}
		if err := g.debugger.Pass(g.stop); err != nil {
			return err
		}
	}
}

// diOffset is the offset of di in pt_regs (arch/x86/include/asm/ptrace.h).
const diOffset = 112

// atStop reports whether the call of getppid is init's: rdi points to the registers of user mode,
// or, before 4.17, is user mode's rdi.
func (g *Guest) atStop() (bool, error) {
	r, err := g.debugger.Registers()
	if err != nil {
		return false, err
	}
	if ours, err := g.inInit(); err != nil || !ours {
		return false, err
	}
	di := r.Arg(0)
	if di == mailbox.Magic {
		return true, nil
	}
	var b [8]byte
	if err := g.debugger.ReadMemory(x86.Addr(di+diOffset), b[:]); err != nil {
		return false, err
	}
	return binary.LittleEndian.Uint64(b[:]) == mailbox.Magic, nil
}

// inInit reports whether the machine is in init. It returns true before init has been seen.
func (g *Guest) inInit() (bool, error) {
	if g.space == 0 {
		return true, nil
	}
	at, err := g.debugger.Space()
	return at == g.space, err
}

// Do makes init execute a command, and waits until it is at the stop point again. The command's
// output goes to out, with 1 or 2 for stdout and stderr.
func (g *Guest) Do(c mailbox.Command, out func(fd int, b []byte) error) (*mailbox.Outcome, error) {
	pieces, err := c.Pieces()
	if err != nil {
		return nil, err
	}
	for _, p := range pieces {
		if err := g.debugger.WriteMemory(p.At, p.Bytes); err != nil {
			return nil, err
		}
	}
	if err := g.debugger.Pass(g.stop); err != nil {
		return nil, err
	}
	outcome, err := g.listen(out)
	if err != nil {
		return nil, err
	}
	return outcome, g.toStop()
}

// Site is the address of the instruction by which init makes its calls.
func (g *Guest) Site() x86.Addr { return g.call }

// listen answers init's calls up to the last one of a command.
func (g *Guest) listen(out func(int, []byte) error) (*mailbox.Outcome, error) {
	for {
		at, err := g.debugger.Stopped(0)
		if err != nil {
			return nil, err
		}
		switch at {
		case g.call:
			ours, err := g.inInit()
			if err != nil {
				return nil, err
			}
			if !ours { // another program has code there
				if err := g.debugger.Pass(g.call); err != nil {
					return nil, err
				}
				continue
			}
			outcome, err := g.answer(out)
			if err == nil {
				err = g.debugger.Go()
			}
			if err != nil || outcome != nil {
				return outcome, err
			}
		case g.stop:
			ours, err := g.atStop()
			if err == nil && ours {
				err = errors.New("init came back without an answer")
			}
			if err == nil {
				err = g.debugger.Pass(g.stop)
			}
			if err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("the machine stopped at %#x, where boot has no breakpoint", uint64(at))
		}
	}
}

// syscallSize is the length of the instruction syscall.
const syscallSize = 2

// answer takes the call at which the machine stands, and goes over it with 0 in rax.
func (g *Guest) answer(out func(int, []byte) error) (*mailbox.Outcome, error) {
	r, err := g.debugger.Registers()
	if err != nil {
		return nil, err
	}
	op, ok := mailbox.IsCall(r.AX())
	if !ok {
		return nil, fmt.Errorf("init makes the system call %#x where its own calls are", r.AX())
	}
	outcome, err := mailbox.Take(op, r.Arg(0), r.Arg(1), r.Arg(2), userMemory{g.debugger}, out)
	if err != nil {
		return nil, err
	}
	r.SetAX(0)
	r.SetIP(r.IP() + syscallSize)
	return outcome, g.debugger.SetRegisters(&r)
}

type userMemory struct{ d *qemu.Debugger }

func (m userMemory) ReadUser(at x86.Addr, p []byte) error { return m.d.ReadMemory(at, p) }
