package losses

import (
	"fmt"
	"slices"
	"strings"

	"kprobelab/booted"
	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// Watch observes a kernel while a tool runs.
type Watch struct {
	o *booted.Observer
	l layout
	// ended: nothing is counted any more.
	ended bool
	notes []string
	// accounts are in the order in which the programs were attached.
	accounts []*account
	places   map[x86.Addr]*place
	events   map[x86.Addr]*event
	programs map[x86.Addr]*program
	// entries are the programs by their first instruction.
	entries map[x86.Addr]*program
	tasks   map[x86.Addr]*task
	taken   map[x86.Addr]*instance
	pools   map[x86.Addr]*returns
	order   []*returns
	rings   map[x86.Addr]*ring
	// replaced are return addresses that kretprobes have replaced, by their place on the stack.
	replaced map[x86.Addr]x86.Addr
	// disarmed is the address of kprobes_all_disarmed, 0 without one.
	disarmed x86.Addr
	// seen has the instructions that are observed for programs and places.
	seen map[x86.Addr]bool
	// entersWithProgram: __bpf_prog_enter has the program as its argument.
	entersWithProgram bool
	coverage          *coverage
	// begun are the instructions when the watch began.
	begun uint64
}

// account is the ledger of a program at a probe, while it is counted.
type account struct {
	prog *program
	// kind is Program.Kind, name is Program.Probe.
	kind, name string
	// kp is the struct kprobe, key the perf event, the link or the trampoline.
	kp, key  x86.Addr
	attached bool
	// unknown says why the calls are not known.
	unknown string
	n       [numStages]uint64
	lost    [numStages][]*loss
	// unread says why it is not known what the tool has read.
	unread string
	missed *uint64
	// missedBefore are the kernel's missed hits before the program was attached.
	missedBefore uint64
	cost         Cost
}

// Stages of an account.
const (
	calls = iota
	reached
	ran
	gave
	wanted
	submitted
	read
	numStages
)

var stageNames = [numStages]string{Calls, Reached, Ran, Gave, Wanted, Submitted, Read}

type loss struct {
	cause string
	n     uint64
	in    []*where
}

type where struct {
	task x86.Addr
	Place
}

// lose counts a loss, with the task that runs and its stack.
func (w *Watch) lose(a *account, stage int, cause string, task x86.Addr, regs *x86.PtRegs) {
	i := slices.IndexFunc(a.lost[stage], func(l *loss) bool { return l.cause == cause })
	if i < 0 {
		i = len(a.lost[stage])
		a.lost[stage] = append(a.lost[stage], &loss{cause: cause})
	}
	l := a.lost[stage][i]
	l.n++
	l.in = w.count(l.in, task, regs)
}

// count adds one to a task's place in a list. Later tasks than the first ones have the last place together.
func (w *Watch) count(list []*where, task x86.Addr, regs *x86.PtRegs) []*where {
	for _, in := range list {
		if in.task == task {
			in.N++
			return list
		}
	}
	if task == 0 {
		return list
	}
	if len(list) > bounded.LossTasks {
		list[bounded.LossTasks].N++
		return list
	}
	in := &where{task: task}
	if len(list) == bounded.LossTasks {
		in.Comm, in.task = "others", ^x86.Addr(0)
	} else {
		in.Place = w.place(task, regs)
	}
	in.N = 1
	return append(list, in)
}

// place has a task's name, and its stack from registers on, which may be nil.
func (w *Watch) place(task x86.Addr, regs *x86.PtRegs) (p Place) {
	p.PID, p.Comm = w.o.Named(task)
	if regs != nil {
		for _, at := range w.o.Stack(regs, bounded.LossFrames, w.original) {
			p.Stack = append(p.Stack, w.symbol(at))
		}
	}
	return p
}

// task is the state of a task of the guest.
type task struct {
	at x86.Addr
	// pending are the hits that no handler has had yet, frames the ones that a handler has.
	pending, frames []*hit
	// entries are the kretprobes' entry handlers that run.
	entries []*entry
	// gates are the functions that are about to run programs, runs the programs that run.
	gates []*gate
	runs  []*execution
	// inside are the calls that a program at their return waits for.
	inside    []*call
	instances []*instance
	exiting   bool
}

// place is a probed instruction.
type place struct {
	at       x86.Addr
	accounts []*account
}

// hit is an execution of a probed instruction, for the accounts of one mechanism.
type hit struct {
	place *place
	regs  x86.PtRegs
	items []item
	// text is the first byte of the instruction then.
	text byte
	// how is the handler.
	how int
}

// item is an account in a hit. open: it is not decided what becomes of it.
type item struct {
	a    *account
	open bool
}

// call is a call of a function that a program at its return waits for.
type call struct {
	a    *account
	regs x86.PtRegs
}

// gate is a function of the kernel that is about to run programs.
type gate struct {
	items []item
	// kp is of the kprobe, 0 for other gates.
	kp x86.Addr
	// entered: the kernel has come to the check whether a program runs.
	entered bool
	// once: the gate ends with the program.
	once bool
	regs x86.PtRegs
}

// Start begins to observe a kernel. The lines of programs are counted in lines, if that is not nil.
func Start(k *booted.Kernel, lines *Lines) (*Watch, error) {
	o := k.Observe()
	w := &Watch{o: o, l: layoutOf(o.Types()), places: map[x86.Addr]*place{}, events: map[x86.Addr]*event{}, programs: map[x86.Addr]*program{},
		entries: map[x86.Addr]*program{}, tasks: map[x86.Addr]*task{}, taken: map[x86.Addr]*instance{}, pools: map[x86.Addr]*returns{}, rings: map[x86.Addr]*ring{},
		seen: map[x86.Addr]bool{}, replaced: map[x86.Addr]x86.Addr{}}
	if !w.l.has("kprobe.addr", "kprobe.flags", "kretprobe.kp", "pt_regs.ip", "perf_event.tp_event", "trace_probe_event.call", "bpf_prog.aux", "bpf_prog.bpf_func", "bpf_prog_aux.id") {
		return nil, ErrTypes
	}
	_, w.entersWithProgram = w.l["bpf_prog_stats.misses"]
	w.begun = o.Instructions()
	w.disarmed, _ = o.Lookup("kprobes_all_disarmed")
	w.followTasks()
	w.followPrograms()
	w.followKprobes()
	w.followReturns()
	w.followTrampolines()
	w.followMulti()
	w.followRaw()
	w.followBuffers()
	w.followMaps()
	if lines != nil {
		w.coverage = newCoverage(w, lines)
	}
	return w, nil
}

// on calls fn when a function of the kernel is entered, if the kernel has it.
func (w *Watch) on(function string, fn func(*x86.PtRegs)) bool {
	at, ok := w.o.Lookup(function)
	return ok && w.o.On(at, func(regs *x86.PtRegs) {
		if !w.ended {
			fn(regs)
		}
	})
}

func (w *Watch) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(w.notes, text) && len(w.notes) < bounded.LossTasks {
		w.notes = append(w.notes, text)
	}
}

// onReturn calls fn when this call returns, unless the watch has ended.
func (w *Watch) onReturn(regs *x86.PtRegs, fn func(*x86.PtRegs)) {
	w.o.OnReturn(regs, func(regs *x86.PtRegs) {
		if !w.ended {
			fn(regs)
		}
	})
}

// original is the return address that a kretprobe has replaced.
func (w *Watch) original(addr, at uint64) uint64 {
	if to := w.replaced[x86.Addr(at)]; to != 0 {
		return uint64(to)
	}
	return addr
}

// symbol names an address of the kernel or of a program.
func (w *Watch) symbol(at x86.Addr) string {
	for _, p := range w.programs {
		if at >= p.image.Start && at <= p.image.End {
			return fmt.Sprintf("bpf_prog_%s+%#x", p.name, uint64(at-p.image.Start))
		}
	}
	return place0(w.o.Symbolize(at))
}

// place0 is SYMBOL+0xOFFSET without the function's size.
func place0(text string) string {
	name, _, _ := strings.Cut(text, "/")
	return name
}

// probeName names a probed instruction as a probe is written.
func (w *Watch) probeName(at x86.Addr) string {
	name := place0(w.o.Symbolize(at))
	if w.o.Word(at-4) == endbr && strings.HasSuffix(name, "+0x4") {
		name = strings.TrimSuffix(name, "+0x4")
	}
	return strings.TrimSuffix(name, "+0x0")
}

// task is the state of the running task.
func (w *Watch) task() *task {
	at := w.o.Task()
	t := w.tasks[at]
	if t == nil {
		t = &task{at: at}
		w.tasks[at] = t
	}
	return t
}

func (w *Watch) followTasks() {
	w.on("do_exit", func(*x86.PtRegs) {
		t := w.task()
		t.exiting = true
		w.o.Forget(t.at)
		w.drop(t)
		w.leave(t, TaskEnded)
	})
	flush := func(regs *x86.PtRegs) { w.dead(x86.Addr(regs.DI)) }
	if !w.on("rethook_flush_task", flush) {
		w.on("kprobe_flush_task", flush)
	}
}

// drop ends what a task that oopsed was in.
func (w *Watch) drop(t *task) {
	for _, h := range append(t.pending, t.frames...) {
		w.loseItems(h.items, calls, TaskEnded, t.at, &h.regs)
	}
	for _, g := range t.gates {
		w.loseItems(g.items, reached, TaskEnded, t.at, &g.regs)
	}
	for len(t.runs) > 0 {
		w.runEnds(t, t.runs[len(t.runs)-1], TaskEnded, nil)
	}
	t.pending, t.frames, t.gates, t.entries = nil, nil, nil, nil
}

// dead: the kernel is done with a task that has ended.
func (w *Watch) dead(at x86.Addr) {
	t := w.tasks[at]
	if t == nil {
		return
	}
	w.drop(t)
	w.leave(t, TaskEnded)
	for _, i := range slices.Clone(t.instances) {
		w.release(i)
	}
	delete(w.tasks, at)
}

// leave ends the calls that a task is in.
func (w *Watch) leave(t *task, cause string) {
	for _, c := range t.inside {
		w.lose(c.a, calls, cause, t.at, &c.regs)
	}
	for _, i := range t.instances {
		w.loseItems(i.items, calls, cause, t.at, &i.regs)
	}
	t.inside = nil
}

// loseItems loses the items that are open.
func (w *Watch) loseItems(items []item, stage int, cause string, task x86.Addr, regs *x86.PtRegs) {
	for i := range items {
		if items[i].open {
			items[i].open = false
			w.lose(items[i].a, stage, cause, task, regs)
		}
	}
}

// probe adds an account to a place, and observes that.
func (w *Watch) probe(at x86.Addr, a *account) {
	p := w.places[at]
	if p == nil {
		p = &place{at: at}
		w.places[at] = p
		if !w.o.On(at, func(regs *x86.PtRegs) {
			if !w.ended {
				w.executes(p, regs)
			}
		}) {
			a.unknown = "the machine has no room to observe more instructions"
		}
	}
	p.accounts = append(p.accounts, a)
}

// sameStack reports whether two stack pointers are of one stack.
func sameStack(a, b uint64) bool { return a&^(x86.ThreadSize-1) == b&^(x86.ThreadSize-1) }

// executes: a probed instruction is about to be executed.
func (w *Watch) executes(p *place, regs *x86.PtRegs) {
	live := false
	for _, a := range p.accounts {
		live = live || a.attached
	}
	if !live {
		return
	}
	t := w.task()
	for n := len(t.pending); n > 0; n-- { // what lies below on the same stack is over
		h := t.pending[n-1]
		if !sameStack(h.regs.SP, regs.SP) || h.regs.SP > regs.SP {
			break
		}
		t.pending = t.pending[:n-1]
		w.unseen(t, h)
	}
	var by [3][]item
	for _, a := range p.accounts {
		if !a.attached {
			continue
		}
		a.n[calls]++
		switch a.kind {
		case "kprobe", "kretprobe":
			if w.disabled(a) {
				w.lose(a, calls, Disabled, t.at, regs)
			} else {
				by[0] = append(by[0], item{a, true})
			}
		case "fexit", "fmod_ret", "kretprobe.multi":
			t.inside = append(t.inside, &call{a, *regs})
		case "kprobe.multi":
			by[1] = append(by[1], item{a, true})
		default:
			by[2] = append(by[2], item{a, true})
		}
	}
	for _, items := range by {
		if len(items) > 0 {
			t.pending = append(t.pending, &hit{place: p, regs: *regs, items: items, text: w.o.Byte(p.at)})
		}
	}
}

// disabled reports whether a kprobe is disabled, or all are.
func (w *Watch) disabled(a *account) bool {
	const flag = 2 // KPROBE_FLAG_DISABLED
	return w.o.Word(a.kp+w.l["kprobe.flags"])&flag != 0 || w.disarmed != 0 && w.o.Byte(w.disarmed) != 0
}

// unseen ends a hit that no handler had.
func (w *Watch) unseen(t *task, h *hit) {
	cause := NotArmed
	if h.text == 0xe8 || h.text == 0xe9 {
		cause = FtraceAgain
	}
	w.loseItems(h.items, calls, cause, t.at, &h.regs)
}

// take takes the newest pending hit out that which accepts.
func (t *task) take(which func(*hit) bool) *hit {
	for i := len(t.pending) - 1; i >= 0; i-- {
		if h := t.pending[i]; which(h) {
			t.pending = slices.Delete(t.pending, i, i+1)
			return h
		}
	}
	return nil
}

// End ends the watch, and returns the ledger. The machine is as the run has left it.
func (w *Watch) End() *Ledger {
	for _, t := range w.tasks {
		cause := Inside
		if t.exiting {
			cause = TaskEnded
		}
		for _, h := range append(t.pending, t.frames...) {
			w.loseItems(h.items, calls, cause, t.at, &h.regs)
		}
		for _, g := range t.gates {
			w.loseItems(g.items, reached, cause, t.at, &g.regs)
		}
		for len(t.runs) > 0 {
			w.runEnds(t, t.runs[len(t.runs)-1], cause, nil)
		}
		w.leave(t, cause)
	}
	for _, r := range w.rings {
		w.ringEnds(r)
	}
	if w.coverage != nil {
		w.coverage.end()
	}
	w.ended = true
	l := &Ledger{Release: w.o.Release(), Notes: w.notes, Instructions: w.o.Instructions() - w.begun}
	for _, a := range w.accounts {
		p := a.result()
		if err := p.Check(); err != nil {
			l.Notes = append(l.Notes, "a ledger does not add up: "+err.Error())
		}
		l.Programs = append(l.Programs, p)
	}
	for _, p := range w.order {
		l.Pools = append(l.Pools, p.Usage)
	}
	return l
}

// result is the account as a ledger.
func (a *account) result() Program {
	p := Program{Name: a.prog.name, ID: a.prog.id, Kind: a.kind, Probe: a.name, Cost: a.cost, Missed: a.missed}
	for s := range numStages {
		stage := Stage{Name: stageNames[s], N: &a.n[s]}
		switch {
		case s == calls && a.unknown != "":
			stage.N, stage.Why = nil, a.unknown
		case s == read && a.unread != "":
			stage.N, stage.Why = nil, a.unread
		}
		for _, l := range a.lost[s] {
			one := Loss{Cause: l.cause, N: l.n}
			for _, in := range l.in {
				one.In = append(one.In, in.Place)
			}
			stage.Lost = append(stage.Lost, one)
		}
		p.Stages = append(p.Stages, stage)
	}
	return p
}
