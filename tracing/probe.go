package tracing

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/tracing/definition"
	"kprobelab/internal/tracing/fetch"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// probe is one definition, planted (struct trace_kprobe).
type probe struct {
	t     *Tracing
	def   *definition.Definition
	event *probeEvent
	// kp or rp is the probe in the kprobes package; neither for a uprobe.
	kp *kprobes.Kprobe
	rp *kprobes.Kretprobe
	// planted is false while its module is not there.
	planted bool
	// code are the arguments' programs, with the addresses of symbols in them.
	code [][]definition.Op
	// entryArgs are the function's arguments that a return probe keeps.
	entryArgs []int
	// hits counts every call of the handler.
	hits uint64
}

func (t *Tracing) newProbe(d *definition.Definition) *probe {
	tp := &probe{t: t, def: d}
	for _, a := range d.Args {
		for _, op := range a.Code {
			if op.Code == definition.OpEntryData && !slices.Contains(tp.entryArgs, op.Param) {
				tp.entryArgs = append(tp.entryArgs, op.Param)
			}
		}
	}
	return tp
}

// plantOrWait plants the probe, or keeps it for when its module comes. A
// refusal is a *definition.Error at the place.
func (t *Tracing) plantOrWait(tp *probe) error {
	if tp.user() {
		return nil // it is put into programs when it is enabled
	}
	err := t.plant(tp)
	no := errno.Of(err)
	if no == errno.ENOENT && t.mayComeWithModule(tp.def) {
		t.printk("This probe might be able to register after target module is loaded. Continue.")
		return nil
	}
	id := definition.FailRegProbe
	switch no {
	case 0:
		return nil
	case errno.EILSEQ:
		id = definition.BadInsnBndry
	case errno.ENOENT:
		id = definition.BadProbeAddr
	case errno.ENOMEM, errno.EEXIST:
		id = definition.NotLogged
	}
	refusal := tp.def.Line.Refuse(1, 0, id, no)
	refusal.Cause = err
	return refusal
}

// plant registers the probe with kprobes (__register_trace_kprobe).
func (t *Tracing) plant(tp *probe) error {
	d := tp.def
	if t.unprobed(d) {
		name := d.Symbol
		if name == "" {
			name = "unknown"
		}
		t.printk("Could not probe notrace function " + name)
		return fmt.Errorf("%s has no ftrace site, and events cannot probe such functions: %w", d.Place(), errno.EINVAL)
	}
	if err := t.resolve(tp); err != nil {
		return err
	}
	kp := kprobes.Kprobe{SymbolName: d.Symbol, Addr: d.Addr, Offset: d.Offset}
	if !tp.event.enabled() {
		kp.Flags = kprobes.FlagDisabled
	}
	var err error
	if d.Return {
		rp := &kprobes.Kretprobe{KP: kp, MaxActive: d.MaxActive, Handler: tp.returned, DataSize: 8 * len(tp.entryArgs)}
		if len(tp.entryArgs) > 0 {
			rp.EntryHandler = tp.entered
		}
		tp.kp, tp.rp, err = &rp.KP, rp, t.k.RegisterKretprobe(rp)
	} else {
		kp.PreHandler = tp.hit
		tp.kp, err = &kp, t.k.RegisterKprobe(&kp)
	}
	tp.planted = err == nil
	if t.c.BoundaryEINVAL && errors.Is(err, errno.EILSEQ) {
		t.printk(fmt.Sprintf("Probing address(0x%016x) is not an instruction boundary.", uint64(tp.kp.Addr)))
		return fmt.Errorf("%s is not an instruction boundary: %w", d.Place(), errno.EINVAL)
	}
	return err
}

// resolve puts the addresses of symbols into the programs
// (traceprobe_update_arg).
func (t *Tracing) resolve(tp *probe) error {
	tp.code = make([][]definition.Op, len(tp.def.Args))
	for i, a := range tp.def.Args {
		code := slices.Clone(a.Code)
		for j := range code {
			if code[j].Code != definition.OpSymbol {
				continue
			}
			name, off, err := definition.SymbolOffset(code[j].Data)
			if err != nil {
				return err
			}
			found := t.k.View().Lookup(name)
			switch {
			case len(found) > 0:
				code[j+1].Imm = uint64(found[0].Addr.Add(off))
			case !t.c.UnknownSymbolZero:
				return errno.ENOENT
			}
		}
		// The symbol itself is no operation.
		tp.code[i] = slices.DeleteFunc(code, func(op definition.Op) bool { return op.Code == definition.OpSymbol })
	}
	return nil
}

// unplant unregisters the probe.
func (tp *probe) unplant() {
	switch {
	case !tp.planted:
	case tp.rp != nil:
		tp.t.k.UnregisterKretprobe(tp.rp)
	default:
		tp.t.k.UnregisterKprobe(tp.kp)
	}
	tp.planted = false
}

// gone reports that the probed code has gone with its module.
func (tp *probe) gone() bool { return tp.planted && tp.kp.Gone() }

func (tp *probe) enable() error {
	switch {
	case tp.user():
		return tp.enableUser()
	case !tp.planted || tp.gone():
		return nil
	case tp.rp != nil:
		return tp.t.k.EnableKretprobe(tp.rp)
	}
	return tp.t.k.EnableKprobe(tp.kp)
}

func (tp *probe) disable() {
	var err error
	switch {
	case !tp.planted || tp.gone():
	case tp.rp != nil:
		err = tp.t.k.DisableKretprobe(tp.rp)
	default:
		err = tp.t.k.DisableKprobe(tp.kp)
	}
	if err != nil {
		tp.t.printk("kprobe event: " + err.Error())
	}
}

// enableProbes enables all of the event, or none (enable_trace_kprobe).
func (e *probeEvent) enableProbes() error {
	for i, tp := range e.probes {
		if err := tp.enable(); err != nil {
			for _, done := range e.probes[:i] {
				done.disable()
			}
			return err
		}
	}
	return nil
}

func (e *probeEvent) disableProbes() {
	for _, tp := range e.probes {
		tp.disable()
	}
}

// missed returns the number of misses in kprobe_profile.
func (tp *probe) missed() uint64 {
	switch {
	case tp.kp == nil:
		return 0
	case tp.rp != nil:
		return tp.kp.Nmissed + tp.rp.Nmissed
	}
	return tp.kp.Nmissed
}

// line is the probe as kprobe_events reads.
func (tp *probe) line() string {
	maxActive := 0
	if tp.rp != nil && tp.t.c.MaxActive {
		maxActive = tp.rp.MaxActive
	}
	if !tp.planted {
		maxActive = tp.def.MaxActive
	}
	return tp.def.String(maxActive)
}

// ModuleComing registers the probes in a module that has been loaded: call it after kprobes' own
// notifier. (trace_kprobe_module_callback)
func (t *Tracing) ModuleComing(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tp := range t.probes {
		if !strings.HasPrefix(tp.def.Symbol, name+":") {
			continue
		}
		tp.unplant()
		if err := t.plant(tp); err != nil {
			t.printk("Failed to re-register probe " + tp.def.Event + " on " + name + ": -" + itoa(int(errno.Of(err))))
		}
	}
}

// entered keeps the arguments of a call for its return.
func (tp *probe) entered(i *kprobes.Instance, regs *x86.PtRegs) int {
	for n, arg := range tp.entryArgs {
		putWord(i.Data[8*n:], fetch.Param(source{tp.t}, regs, arg))
	}
	return 0
}
