package attach

import (
	"errors"
	"io"
	"slices"
	"time"

	"kprobelab/internal/orc"
	"kprobelab/internal/script"
	"kprobelab/internal/script/host"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/kprobes/pool"
	"kprobelab/x86"
)

// Machine is the part of a machine that a script can read and change.
type Machine interface {
	ReadMem(addr x86.Addr, b []byte) error
	ReadUser(addr x86.Addr, b []byte) error
	WriteMem(addr x86.Addr, b []byte) error
	WriteUser(addr x86.Addr, b []byte) error
	Now() uint64
	CPU() int
	Task() int
	TaskStruct(task int) x86.Addr
}

// Options names the machine and the kernel of a script, and its output. Without Machine, Kprobes and
// Image the script has a clock of its own, and nothing to probe.
type Options struct {
	Machine Machine
	Kprobes *kprobes.Kprobes
	Image   *kimage.Image
	// Tracepoint enables a tracepoint. hit gets its parameters in the registers of a function's
	// parameters. remove takes the callback away.
	Tracepoint func(name string, hit func(regs *x86.PtRegs)) (remove func(), err error)
	// Record does the same for an event, "SYSTEM:NAME". The first parameter is the address of its
	// record.
	Record func(event string, hit func(regs *x86.PtRegs)) (remove func(), err error)
	// Uprobe plants a probe in a program: hit gets the address of the probed instruction, or of the
	// function that returns, and the program's registers.
	Uprobe func(p *host.InProgram, hit func(at uint64, regs *x86.PtRegs)) (remove func(), err error)
	// Watch sets a watchpoint, and refuses one that is impossible for a debug register.
	Watch func(w *host.Watched, hit func(regs *x86.PtRegs)) (remove func(), err error)
	// Out gets the script's output, Log the lines for the user.
	Out io.Writer
	Log func(line string)
	// MaxErrors is the number of errors, MaxSkipped the number of skipped hits, with which a script does
	// not fail.
	MaxErrors, MaxSkipped uint64
	HZ                    int64
	// Program is the file of the program of -c, nil if it is not known.
	Program *host.Program
	// Command says that init will start a program, the one of -c.
	Command bool
}

// Counts holds the hits of one probe.
type Counts struct {
	Probe *host.Probe
	// How is the way in which it was planted: "optimized", "ftrace", "int3", "kretprobe",
	// "tracepoint", "uprobe", "watchpoint", "timer" or "".
	How string
	// Hits counts the hits that ran the handler, Missed the hits that did not.
	Hits, Missed uint64
	// Least, Most and Sum are the least, the greatest and the total number of statements of the hits.
	Least, Most, Sum int
	// Pool is the account of a kretprobe's instances, nil of other probes, and without Kprobes.FollowPools.
	Pool *pool.Usage
}

// planted is a probe of the script.
type planted struct {
	Counts
	kp     *kprobes.Kprobe
	rp     *kprobes.Kretprobe
	remove func()
	next   uint64   // of a timer
	user   x86.Addr // of a place in a program, at the last hit
}

// Runner runs one script.
type Runner struct {
	o      *Options
	script *Script
	thread *script.Thread
	list   []*planted
	timers []*planted
	hit    hit
	// jumped has the functions that have no frame of their own on stacks (jumps).
	jumped map[x86.Addr]bool
	tasks  taskOffsets
	users  userOffsets
	// assembler reports code of the kernel's in assembler that calls functions in C.
	assembler func(addr uint64) bool
	// unwinder reads the ORC tables of a booted kernel; nil if there are none.
	unwinder *orc.Unwinder
	// texts are the symbols of code by their addresses; nil before Nearest needs them.
	texts []kimage.Symbol
	// running: handlers of hits and timers run. exited: the script has ended itself, or an error
	// has ended it. failed: it was an error.
	running, exited, failed bool
	errs, skipped           uint64
	code                    int64
	// target is the process of -c, 0 before a probe has seen it.
	target int64
	// clock is the time in nanoseconds if there is no machine, or while a late timer runs; 0 means the machine's time.
	clock  uint64
	random uint64
}

// New prepares a script.
func New(s *Script, o *Options) (*Runner, error) {
	code, err := script.Compile(s.Program)
	if err != nil {
		return nil, err
	}
	r := &Runner{o: o, script: s, thread: code.NewThread(o.Out), random: 1}
	r.hit.r = r
	r.tasks = offsets(o.Image)
	r.jumped, r.users = r.jumps(), userOffsetsOf(o.Image)
	r.assembler = assembler(o.Image)
	if r.booted() && o.Kprobes != nil {
		r.unwinder = orc.New(o.Kprobes.View().Lookup, o.Image.Types(), o.Machine.ReadMem)
	}
	return r, nil
}

// epoch is the date at which virtual time begins, as for a machine of kprobelab boot.
var epoch = uint64(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())

func (r *Runner) now() uint64 {
	if r.clock != 0 || r.o.Machine == nil {
		return r.clock
	}
	return r.o.Machine.Now()
}

// told returns the time that a handler reads, in nanoseconds. It is never 0, as on a kernel: scripts use 0 for "no time".
func (r *Runner) told() uint64 { return max(r.now(), 1) }

// Begin runs the begin probes and plants the others.
func (r *Runner) Begin() {
	for _, p := range r.script.Probes {
		r.list = append(r.list, &planted{Counts: Counts{Probe: p}})
	}
	if r.script.First != nil {
		r.script.First(r.thread, r.told())
	}
	r.ordered(host.Begin)
	if r.exited {
		return
	}
	r.running = true
	for _, p := range r.order() {
		if err := r.plant(p); err != nil {
			p.kp, p.rp = nil, nil
			line, fatal := r.script.Words.Unplanted(p.Probe, err)
			r.say(line)
			if fatal {
				r.exited, r.failed = true, true
				return
			}
		}
	}
}

// order returns the probes in the order in which they are planted.
func (r *Runner) order() (list []*planted) {
	backwards := func(p *planted) bool {
		return r.script.Backwards && (p.Probe.Kind == host.Call || p.Probe.Kind == host.Return)
	}
	for _, p := range r.list {
		if !backwards(p) {
			list = append(list, p)
		}
	}
	for _, p := range slices.Backward(r.list) {
		if backwards(p) {
			list = append(list, p)
		}
	}
	// ftrace calls a function's kprobes before its trampoline, and a trampoline's programs at the return run before
	// kretprobes. Of several probes at one place the last one planted runs first at the entry, and last at the return.
	slices.SortStableFunc(list, func(a, b *planted) int {
		switch {
		case a.inTrampoline() == b.inTrampoline():
			return 0
		case a.inTrampoline():
			return -1
		}
		return 1
	})
	return list
}

// inTrampoline reports whether a BPF trampoline runs the probe: fentry and fexit.
func (p *planted) inTrampoline() bool { return p.Probe.Chain == host.BySite }

// ordered runs the begin, end or error probes by their numbers.
func (r *Runner) ordered(kind host.ProbeKind) {
	var list []*planted
	for _, p := range r.list {
		if p.Probe.Kind == kind && p.Probe.Handler != nil {
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b *planted) int {
		switch {
		case a.Probe.Order < b.Probe.Order:
			return -1
		case a.Probe.Order > b.Probe.Order:
			return 1
		}
		return 0
	})
	for _, p := range list {
		if r.exited && kind == host.Begin {
			return
		}
		r.fire(p, p.Probe.Handler, nil, nil)
	}
}

func (r *Runner) plant(p *planted) error {
	pr := p.Probe
	if pr.Handler == nil {
		return nil
	}
	at := kprobes.Kprobe{Addr: x86.Addr(pr.Addr)}
	switch pr.Kind {
	case host.Timer:
		r.timers = append(r.timers, p)
		p.How = "timer"
		p.next = r.now() + r.interval(pr)
	case host.Call:
		p.kp = &at
		p.kp.PreHandler = func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
			r.entered(p, regs)
			return 0
		}
		return r.o.Kprobes.RegisterKprobe(p.kp)
	case host.Return:
		p.rp = &kprobes.Kretprobe{KP: at, MaxActive: pr.MaxActive, DataSize: 8 * pr.Saved}
		if pr.Entry != nil {
			p.rp.EntryHandler = func(i *kprobes.Instance, regs *x86.PtRegs) int {
				if r.running && !r.exited {
					r.hit.set(pr, regs, i.Data, r.o.Machine.Now())
					r.thread.Context = &r.hit
					r.thread.Run(pr.Entry)
				}
				return 0
			}
		}
		p.rp.Handler = func(i *kprobes.Instance, regs *x86.PtRegs) int {
			r.late()
			if r.running && !r.exited {
				r.hit.ret = i.RetAddr
				r.fire(p, pr.Handler, regs, i.Data)
				r.hit.ret = 0
			}
			return 0
		}
		return r.o.Kprobes.RegisterKretprobe(p.rp)
	case host.Trace:
		enable, name := r.o.Tracepoint, pr.Symbol
		if pr.Record != "" {
			enable, name = r.o.Record, pr.Record
		}
		if enable == nil {
			return errors.New("tracepoints need the dump of a booted kernel")
		}
		var err error
		p.remove, err = enable(name, func(regs *x86.PtRegs) { r.entered(p, regs) })
		p.How = "tracepoint"
		return err
	case host.Data:
		return r.watch(p)
	case host.User:
		return r.uprobe(p)
	}
	return nil
}

func (r *Runner) entered(p *planted, regs *x86.PtRegs) {
	r.late()
	if r.running && !r.exited {
		r.fire(p, p.Probe.Handler, regs, nil)
	}
}

// fire runs a handler.
func (r *Runner) fire(p *planted, h *script.Handler, regs *x86.PtRegs, saved []byte) {
	p.Hits++
	r.hit.set(p.Probe, regs, saved, r.told())
	r.hit.at = p.at()
	r.thread.Context = &r.hit
	err := r.thread.Run(h)
	n := r.thread.Actions(h)
	if p.Hits == 1 || n < p.Least {
		p.Least = n
	}
	p.Most, p.Sum = max(p.Most, n), p.Sum+n
	if err == nil {
		return
	}
	line := r.script.Words.Failed(err)
	if line == "" {
		return
	}
	r.say(line)
	if r.errs++; r.errs > r.o.MaxErrors {
		r.exited, r.failed = true, true
	}
}

// at returns the address at which the probe is planted; for a probe of a program it is the address of the last hit.
// It returns 0 for other probes.
func (p *planted) at() x86.Addr {
	switch {
	case p.kp != nil:
		return p.kp.Addr
	case p.rp != nil:
		return p.rp.KP.Addr
	}
	return p.user
}

func (r *Runner) say(line string) {
	if line != "" {
		r.o.Log(line)
	}
}

// interval returns the time from one tick of a timer to the next, in nanoseconds.
func (r *Runner) interval(p *host.Probe) uint64 {
	if p.Random == 0 {
		return p.Every
	}
	r.random = r.random*6364136223846793005 + 1442695040888963407
	return max(p.Every-p.Random+r.random>>33%(2*p.Random+1), 1000)
}

// due returns the timer with the earliest next tick, nil if the script has no timers.
func (r *Runner) due() *planted {
	var first *planted
	for _, p := range r.timers {
		if first == nil || p.next < first.next {
			first = p
		}
	}
	return first
}

// late runs the timers whose time has come since the last hit. It may run them late, because no
// handler ran in between.
func (r *Runner) late() {
	if len(r.timers) == 0 || !r.running || r.clock != 0 || r.o.Machine == nil {
		return
	}
	now := r.o.Machine.Now()
	r.until(now)
	r.clock = 0
}

// until runs the timers up to a time.
func (r *Runner) until(now uint64) {
	for !r.exited {
		p := r.due()
		if p == nil || p.next > now {
			return
		}
		r.clock = p.next
		p.next += r.interval(p.Probe)
		r.fire(p, p.Probe.Handler, nil, nil)
	}
}

// Late runs the timers that are due after the guest has run.
func (r *Runner) Late() { r.late() }

// Wait lets virtual time pass, for so many nanoseconds at most, while the machine stands still.
// It reports whether the script has ended itself.
func (r *Runner) Wait(ns uint64) bool {
	if r.exited || len(r.timers) == 0 {
		return r.exited
	}
	r.until(r.now() + ns)
	return r.exited
}

// Waits reports whether there is something to wait for.
func (r *Runner) Waits() bool { return !r.exited && len(r.timers) > 0 }

// Ended reports whether the script has ended itself.
func (r *Runner) Ended() bool { return r.exited }

func (r *Runner) unplant() {
	for _, p := range slices.Backward(r.list) {
		switch {
		case p.kp != nil && p.kp.Addr != 0:
			p.How, p.Missed = how(p.kp), p.kp.Nmissed
			r.o.Kprobes.UnregisterKprobe(p.kp)
		case p.rp != nil:
			p.How, p.Missed = "kretprobe", p.rp.Nmissed+p.rp.KP.Nmissed
			if u, ok := p.rp.Usage(); ok && !p.inTrampoline() {
				p.Pool = &u
			}
			r.o.Kprobes.UnregisterKretprobe(p.rp)
		}
		if p.remove != nil {
			p.remove()
		}
		p.kp, p.rp, p.remove = nil, nil, nil
		r.skipped += p.Missed
	}
}

func how(p *kprobes.Kprobe) string {
	switch {
	case p.OnFtrace():
		return "ftrace"
	case p.Optimized():
		return "optimized"
	}
	return "int3"
}

// ErrFailed: the script has ended with an error, which has been logged.
var ErrFailed = errors.New("the script ended with an error")

// End takes the probes away and runs the end probes, or after an error the error probes.
func (r *Runner) End() error {
	r.running = false
	r.unplant()
	if r.skipped > r.o.MaxSkipped {
		r.say(r.script.Words.TooManySkipped())
		r.failed = true
	}
	kind := host.End
	if r.failed {
		kind = host.Error
	}
	r.exited = false
	r.ordered(kind)
	r.say(r.script.Words.Ended(r.errs, r.skipped))
	if r.script.Last != nil {
		r.hit.set(nil, nil, nil, r.now())
		r.thread.Context = &r.hit
		r.script.Last(r.thread)
	}
	if r.failed {
		return ErrFailed
	}
	return nil
}

// Code returns the exit code with which the script has ended itself, 0 by default.
func (r *Runner) Code() int64 { return r.code }

// Counts returns the counts of each probe. They are complete after End.
func (r *Runner) Counts() []Counts {
	var list []Counts
	for _, p := range r.list {
		list = append(list, p.Counts)
	}
	return list
}
