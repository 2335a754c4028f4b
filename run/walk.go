package run

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/internal/colour"
	"kprobelab/internal/steptext"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/kprobes/probepoint"
	"kprobelab/x86"
)

// walkCPUs is the number of CPUs of the walk's machine: one patches the text, and
// the other has to see the change.
const walkCPUs = 2

// Walk registers a probe at an address of the image on a machine, lets it be optimized, and undoes it,
// and shows after each step what changed: the text, the optimizer's list that
// the probe is on, and what a CPU does that comes to the probe then.
func Walk(out io.Writer, style colour.Style, img *kimage.Image, at x86.Addr, heading string) error {
	l, err := kprobelab.New(img, &kprobelab.Options{CPUs: walkCPUs, Optimize: true})
	if err != nil {
		return MachineError(img, err)
	}
	defer l.Close()
	w := &optWalk{Writer: bufio.NewWriter(out), style: style, l: l, at: at}
	fmt.Fprintf(w, "%s\n\n%s\n", heading, w.style.Bold("before"))
	w.state()
	l.Kprobes.ObserveOptimizer(w.step)
	p := &kprobes.Kprobe{Addr: at, PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { return 0 }}
	w.call("register_kprobe")
	err = l.Kprobes.RegisterKprobe(p)
	w.returned(err)
	if err == nil {
		err = w.whole(p)
	}
	return errors.Join(err, w.Flush())
}

// optWalk shows a walk.
type optWalk struct {
	*bufio.Writer
	style colour.Style
	l     *kprobelab.Lab
	at    x86.Addr
	// announced: a CPU that meets the int3 is sent on as if the change were
	// done; undoing: the probe is being removed.
	announced, undoing bool
	last               string
}

// whole lets the worker optimize the registered probe, unregisters it, and lets the worker undo the jump.
func (w *optWalk) whole(p *kprobes.Kprobe) error {
	w.call("the worker, 5 jiffies later")
	if err := w.settle(); err != nil {
		return err
	}
	switch _, ok := w.l.Kprobes.Detour(w.at); {
	case ok:
	case p.OnFtrace():
		fmt.Fprintln(w, "  (the function tracer goes on to call the probe)")
	default:
		fmt.Fprintln(w, "  (the probe keeps its int3)")
	}
	w.undoing = true
	w.call("unregister_kprobe")
	w.l.Kprobes.UnregisterKprobe(p)
	w.returned(nil)
	w.call("the worker")
	return w.settle()
}

func (w *optWalk) settle() error {
	if _, due := w.l.Kprobes.WorkerDue(); !due {
		fmt.Fprintln(w, "  (nothing is queued)")
		return nil
	}
	return w.l.Settle()
}

func (w *optWalk) call(name string) { fmt.Fprintf(w, "\n%s\n", w.style.Bold(name)) }

func (w *optWalk) returned(err error) {
	if err != nil {
		fmt.Fprintf(w, "  returned -%d: %v\n", int(errno.Of(err)), err)
		return
	}
	w.state()
}

// step shows one step of the optimizer, and the state after it.
func (w *optWalk) step(e kprobes.OptEvent) {
	switch e.Kind {
	case kprobes.OptPokeInt3:
		// Undoing announces nothing from 5.8 on: the int3 is the probe's own.
		w.announced = !w.undoing || w.l.Kprobes.Config().Optimize.ThreeStepUnoptimize
	case kprobes.OptPokeDone, kprobes.OptOptimized, kprobes.OptUndone:
		w.announced = false
	}
	fmt.Fprintf(w, "  %2d. %-11s %s\n", e.Step, e.Kind, steptext.Optimizer(&e))
	w.state()
}

// state shows what is there now, if anything has changed.
func (w *optWalk) state() {
	var b [x86.Rel32Size]byte
	if err := w.l.Machine.ReadMem(w.at, b[:]); err != nil {
		return
	}
	list := w.l.Kprobes.Queue(w.at)
	if list == "" {
		list = "none"
	}
	now := fmt.Sprintf("      text % x   list %s\n      a CPU that comes here %s\n", b, list, w.arrives(b[0]))
	if now != w.last {
		fmt.Fprint(w, now)
	}
	w.last = now
}

// arrives says what a CPU does that now executes the probed address.
func (w *optWalk) arrives(first byte) string {
	p := w.l.Kprobes.Find(w.at)
	switch {
	case p == nil:
		return "runs the original instruction"
	case p.OnFtrace():
		return "is sent to the probe by the function tracer"
	case first == x86.Jmp32 && w.jumps() && p.Disabled():
		return "jumps to the detour buffer, where no handler runs: the probe is disabled"
	case first == x86.Jmp32 && w.jumps():
		return "jumps to the detour buffer"
	case first != x86.Int3:
		return "runs the original instruction"
	case w.announced:
		return "takes the int3, and the text poker sends it to the detour buffer"
	case p.Optimized() && p.Disabled():
		return "takes the int3: no handler runs, and then the copy in the detour buffer"
	case p.Optimized():
		return "takes the int3: the handlers run, and then the copy in the detour buffer"
	}
	return "takes the int3: the handlers run, and " + w.goesOn(p)
}

// goesOn says what runs after the handlers of a probe that is not a jump.
func (w *optWalk) goesOn(p *kprobes.Kprobe) string {
	s, _ := p.Slot()
	switch probepoint.HowOf(&s, w.l.Kprobes.Config()) {
	case probepoint.Emulated:
		return fmt.Sprintf("kprobes does to the registers what the instruction would (%s)", s.Emulation)
	case probepoint.Boosted:
		return "then the copy in the slot, which jumps back"
	default:
		return "then the copy in the slot"
	}
}

// jumps: the jump at the probe is the optimizer's, not the original.
func (w *optWalk) jumps() bool {
	d, ok := w.l.Kprobes.Detour(w.at)
	var b [x86.Rel32Size]byte
	return ok && w.l.Machine.ReadMem(w.at, b[:]) == nil && b == d.Jump
}
