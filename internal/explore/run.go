package explore

import (
	"fmt"
	"iter"
	"slices"

	"kprobelab/internal/bounded"
	"kprobelab/kprobes"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Variables that steps read and write, for the order that the steps have to keep.
// Numbers after the base are a CPU's.
const (
	varMutex    = iota // kprobe_mutex and text_mutex, which are one here
	varTable           // the hash table
	varProbe           // flags, members, slots and buffers of probes
	varAnnounce        // the array of announced changes
	varTasks           // which calls are under way
	varModule          // which modules there are
	varEpoch           // which registrations are under way
	varStale    = 16   // what a CPU may have fetched
	varIPI      = 32   // what it was asked
	varHandling = 48   // what it handles
	varText     = 64   // a byte of text
)

// pending is the step that a task has stopped before.
type pending struct {
	kind string
	at   x86.Addr
	note string
	// bytes are the bytes of a store.
	bytes []byte
	// ready reports whether it can be taken; nil: it always can.
	ready func() bool
	// fetch: the schedule chooses the text that the task sees at at.
	fetch bool
	// reads and writes are the variables that it is known to touch, before it is taken.
	reads, writes []int
}

// task is a coroutine on a CPU: a column of the scenario, or the worker.
type task struct {
	w       *world
	n       int
	name    string
	cpu     int
	kind    columnKind
	actions []Action
	action  int // the one under way

	regs    x86.PtRegs
	calling bool
	calls   uint64
	// trapped is its depth in traps; preempt, in callbacks.
	trapped, preempt int
	// handled counts the traps and callbacks that it has left.
	handled uint64
	// inExec: the last instruction was in a slot or a detour buffer.
	inExec bool

	resume func() (struct{}, bool)
	end    func()
	yield  func(struct{}) bool
	wait   pending
	begun  bool
	// waitsUnlocked: in the middle of an action it has let the mutex go.
	waitsUnlocked bool
	done          bool
	// inModule is the module that it has called, "" if none.
	inModule string
	// exited: the task has ended inside a call.
	exited bool
	// asked are the CPUs that have to synchronize before it goes on.
	asked []int
	// seen are the bytes that the chosen fetch gives.
	seen []byte
	// hash is the hash of its steps and of the steps that had to come before them
	// (order); own is the hash of its part of the state, local of the values that it
	// has read inside a handler or an action.
	hash, own, local uint64
	// call holds the counts from the beginning of its call under way.
	call callRecord
	// counts of the values of conditions.
	traps, detours, pokes int
}

// callRecord holds the counts at the beginning of a call; the end of the call compares them.
type callRecord struct {
	epochs map[*probe]int
	on     map[*probe]bool
	hits   map[*probe]int
	missed map[x86.Addr]int
	passes map[x86.Addr]int
	// returns counts the calls of return handlers.
	returns map[*probe]int
	// posts counts the calls of post handlers.
	posts map[*probe]int
}

// probe is a probe of the scenario, registered or not.
type probe struct {
	ProbeDef
	at   x86.Addr
	kp   *kprobes.Kprobe // rp.KP
	rp   kprobes.Kretprobe
	used bool // registered
	on   bool
	// epoch changes when an action on the probe begins, and when it ends.
	epoch    int
	changing int
	hits     int
	// returns counts the calls of a return handler.
	returns int
}

// run is one run of a scenario under a schedule.
type run struct {
	w       *world
	cur     *task
	tasks   []*task
	probes  []*probe
	free    bool  // before and after the table: nothing is a choice
	holder  *task // of kprobe_mutex
	text    *task // of text_mutex, where that is another lock
	freed   map[*kprobes.Kprobe]bool
	slots   []x86.Addr // freed
	verdict Verdict
	reason  string
	steps   int
	// clock is the virtual time in nanoseconds: only the worker's timer reads it.
	clock uint64
	// last is the task that was switched to last.
	last *task

	// state is the hash of the whole state.
	state     uint64
	touched   []touch
	lastWrite map[int]uint64
	readSum   map[int]uint64
	ackHash   []uint64

	trace func(Line)
	line  *Line
	// hot is text that changes.
	hot []x86.Range
	// known has the instructions that stood at an address.
	known  map[x86.Addr][]string
	killed []x86.Range
	// going are the modules that are not there to be called; refs is the one that a
	// registration holds.
	going map[string]bool
	refs  string
	// killedFtrace: the function tracer leaves its sites as they are.
	killedFtrace bool
	// ended is the final state, set at the end.
	ended End
	// held: which of the scenario's exists hold at the end.
	held []bool
}

type touch struct {
	v     int
	write bool
}

// abandoned unwinds a coroutine whose run has ended.
type abandoned struct{}

func newRun(p *program, c *profile.Config) (*run, error) {
	r := &run{
		free: true, going: map[string]bool{}, freed: map[*kprobes.Kprobe]bool{},
		lastWrite: map[int]uint64{}, readSum: map[int]uint64{}, known: map[x86.Addr][]string{},
	}
	r.cur = &task{name: "setup"}
	w, err := newWorld(p, c, r)
	if err != nil {
		return nil, err
	}
	r.w = w
	r.cur.w, r.cur.cpu = w, w.cpu
	r.ackHash = make([]uint64, len(w.cpus))
	for _, d := range p.s.Probes {
		pr := &probe{ProbeDef: d, at: p.at(d.Func).Add(int64(d.Off))}
		pr.kp = &pr.rp.KP
		r.probes = append(r.probes, pr)
		r.hot = append(r.hot, x86.Range{Start: pr.at, End: pr.at + 5})
	}
	for _, s := range p.sites {
		r.hot = append(r.hot, x86.Range{Start: s.at, End: s.at + 5})
	}
	w.k.Observe(r.event)
	for _, a := range p.s.Setup {
		r.cur.do(a)
	}
	for i, c := range p.s.Columns {
		r.tasks = append(r.tasks, &task{w: w, n: i, name: c.Name, cpu: c.CPU, kind: c.Kind, actions: c.Actions})
	}
	r.tasks = append(r.tasks, &task{w: w, n: len(p.s.Columns), name: "worker", cpu: len(w.cpus) - 1})
	w.tasks = r.tasks
	for _, t := range r.tasks {
		t.hash = mix(0x9e3779b97f4a7c15, uint64(t.n+1))
		t.prepare()
	}
	r.free = false
	for _, t := range r.tasks {
		r.cur, w.cpu = t, t.cpu
		t.advance()
	}
	r.touched = r.touched[:0]
	for _, t := range r.tasks {
		t.own = t.hashOwn()
	}
	r.remember(nil, "")
	return r, nil
}

// advance lets the task go on to its next stop.
func (t *task) advance() {
	if _, more := t.resume(); !more {
		t.done = true
	}
}

// prepare makes the coroutine.
func (t *task) prepare() {
	t.resume, t.end = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		defer func() {
			if v := recover(); v != nil {
				if _, ok := v.(abandoned); !ok {
					t.w.run.fail(Bug, "%s: the subsystem oopses: %v", t.name, v)
				}
			}
		}()
		if t.name == "worker" {
			t.worker()
			return
		}
		t.column()
	})
}

func (t *task) column() {
	if t.kind != columnMain {
		t.w.run.stop(pending{kind: "interrupt", ready: t.canInterrupt})
	}
	t.begun = true
	for i, a := range t.actions {
		t.action = i
		t.do(a)
		if t.exited {
			break
		}
	}
	if t.kind != columnMain {
		t.w.run.stop(pending{kind: "iret"})
		t.w.serialize(t.cpu)
	}
}

// stop lets another task go on before a step is taken. It returns when the step
// is to be taken.
func (r *run) stop(p pending) {
	if r.free {
		return
	}
	t := r.cur
	t.wait = p
	if !t.yield(struct{}{}) {
		panic(abandoned{})
	}
	for _, v := range p.reads {
		r.touch(v, false)
	}
	for _, v := range p.writes {
		r.touch(v, true)
	}
	for _, cpu := range t.asked {
		r.touch(varIPI+cpu, false)
	}
	t.asked = t.asked[:0]
}

func (r *run) touch(v int, write bool) {
	if r.free {
		return
	}
	for i := range r.touched {
		if r.touched[i].v == v {
			r.touched[i].write = r.touched[i].write || write
			return
		}
	}
	r.touched = append(r.touched, touch{v, write})
}

func (r *run) reads(a x86.Addr, n int) { r.bytes(a, n, false) }

func (r *run) writes(a x86.Addr, n int) { r.bytes(a, n, true) }

func (r *run) bytes(a x86.Addr, n int, write bool) {
	if a.In(execBase, execBase.Add(execPages*pageSize)) {
		r.touch(varText+textSize+int(a.Sub(execBase))/pageSize, write)
		return
	}
	for i := range n {
		r.touch(varText+int(a.Sub(textBase))+i, write)
	}
}

// fail ends the run with a verdict; the first one counts.
func (r *run) fail(v Verdict, format string, args ...any) {
	if r.verdict == "" {
		r.verdict, r.reason = v, fmt.Sprintf(format, args...)
	}
}

// choice is one way for a schedule to go on.
type choice struct {
	task *task
	// ack is the CPU that acknowledges, where task is nil.
	ack int
	// option is the index of the text that a fetch may see.
	option int
	seen   []byte
	// preempts: the task that ran before could go on.
	preempts bool
}

// choices lists the ways to go on, the task that ran last first.
func (r *run) choices(list []choice) []choice {
	list = list[:0]
	lastReady := r.last != nil && r.ready(r.last)
	if lastReady {
		list = r.options(list, r.last, false)
	}
	for _, t := range r.tasks {
		if t != r.last && r.ready(t) {
			list = r.options(list, t, lastReady && !t.wait.comes())
		}
	}
	for cpu := range r.w.cpus {
		if r.w.cpus[cpu].pending > 0 && r.w.interruptible(cpu) {
			list = append(list, choice{ack: cpu})
		}
	}
	return list
}

func (r *run) options(list []choice, t *task, preempts bool) []choice {
	if !t.wait.fetch {
		return append(list, choice{task: t, preempts: preempts})
	}
	for i, b := range r.w.mayFetch(t, t.wait.at) {
		list = append(list, choice{task: t, option: i, seen: b, preempts: preempts})
	}
	return list
}

// ready reports whether a task can take its step.
func (r *run) ready(t *task) bool {
	if t.done || !t.isTop() {
		return false
	}
	for _, cpu := range t.asked {
		if r.w.cpus[cpu].pending > 0 {
			return false
		}
	}
	return t.wait.ready == nil || t.wait.ready()
}

// isTop: no interrupt is under way on the task's CPU that came after it.
func (t *task) isTop() bool {
	for _, o := range t.w.tasks {
		if o != t && o.cpu == t.cpu && o.kind > t.kind && o.begun && !o.done {
			return false
		}
	}
	return true
}

// top returns the innermost task of a CPU, nil if there is none.
func (w *world) top(cpu int) *task {
	var top *task
	for _, o := range w.tasks {
		if o.cpu == cpu && !o.done && (o.kind == columnMain || o.begun) && (top == nil || o.kind > top.kind) {
			top = o
		}
	}
	return top
}

// interruptible: the CPU takes interrupts now.
func (w *world) interruptible(cpu int) bool {
	t := w.top(cpu)
	if t == nil || t.kind == columnNMI {
		return t == nil
	}
	return t.trapped == 0 && (!t.calling || t.regs.Flags&x86.FlagIF != 0)
}

// canInterrupt: the interrupt may come now.
func (t *task) canInterrupt() bool {
	top := t.w.top(t.cpu)
	if t.kind == columnNMI {
		return true
	}
	return top == nil || top.kind < t.kind && t.w.interruptible(t.cpu)
}

// executing: the CPU is inside a call.
func (w *world) executing(cpu int) bool {
	for _, t := range w.tasks {
		if t.cpu == cpu && t.calling {
			return true
		}
	}
	return false
}

// serialize: the CPU sees all text as it is from now on.
func (w *world) serialize(cpu int) {
	w.run.touch(varStale+cpu, true)
	w.cpus[cpu].stale = w.cpus[cpu].stale[:0]
}

// take makes a choice.
func (r *run) take(c choice) {
	r.steps++
	r.touched = r.touched[:0]
	if r.trace != nil {
		r.line = &Line{Step: r.steps}
	}
	if c.task == nil {
		r.acknowledge(c.ack)
		return
	}
	t := c.task
	if t.wait.kind != "timer" && (!t.wait.fetch && t.wait.kind != "interrupt" || r.last == nil || r.last.cpu != t.cpu || t.kind == columnMain) {
		r.last = t
	}
	r.cur, r.w.cpu, t.seen = t, t.cpu, c.seen
	kind, at := t.wait.kind, t.wait.at
	if r.line != nil {
		r.describe(t, c)
	}
	t.advance()
	t.hash = r.order(t.hash, mix(mix(hashString(kind), uint64(at)), hashBytes(c.seen)))
	r.remember(t, kind)
	r.emit()
}

func (r *run) acknowledge(cpu int) {
	r.w.cpus[cpu].pending--
	r.w.serialize(cpu)
	r.touch(varIPI+cpu, true)
	r.touch(varHandling+cpu, false)
	if r.line != nil {
		r.line.Lane, r.line.What, r.line.Kind = fmt.Sprintf("cpu%d", cpu), "acknowledges: sees all text", "acknowledge"
		r.line.Decision = fmt.Sprintf("ack cpu%d", cpu)
	}
	r.ackHash[cpu] = r.order(r.ackHash[cpu], 0xac)
	r.remember(nil, "")
	r.emit()
}

func (r *run) emit() {
	if r.line != nil {
		r.trace(*r.line)
		r.line = nil
	}
}

// order hashes a step together with the steps that must come before it: the task's last
// step, and the last steps that wrote a variable that it touches, or read a variable that
// it writes. Runs that differ only in the order of independent steps have the same hashes.
func (r *run) order(own, what uint64) uint64 {
	slices.SortFunc(r.touched, func(a, b touch) int { return a.v - b.v })
	h := mix(own, what)
	for _, t := range r.touched {
		h = mix(h, uint64(t.v)<<1^r.lastWrite[t.v])
		if t.write {
			h = mix(h, r.readSum[t.v])
		}
	}
	for _, t := range r.touched {
		if t.write {
			r.lastWrite[t.v], r.readSum[t.v] = h, 0
		} else {
			r.readSum[t.v] += h
		}
	}
	return h
}

// trail is the hash of the run so far, up to the order of steps that do not
// depend on each other.
func (r *run) trail() uint64 {
	h := uint64(1)
	for _, t := range r.tasks {
		h = mix(h, t.hash)
	}
	for _, a := range r.ackHash {
		h = mix(h, a)
	}
	return h
}

// comes: the step is no CPU's own doing, so that to take it is no switch.
func (p *pending) comes() bool { return p.kind == "interrupt" || p.kind == "timer" }

// close gives the coroutines up.
func (r *run) close() {
	for _, t := range r.tasks {
		t.end()
	}
}

// over reports whether the run has ended; it sets the verdict of a bad end.
func (r *run) over(left int) bool {
	switch {
	case r.verdict != "":
		r.ended = r.end()
		return true
	case r.steps > bounded.ExploreSteps:
		r.fail(Livelock, "the run goes on after %d steps", bounded.ExploreSteps)
		return true
	case left > 0:
		return false
	}
	for _, t := range r.tasks[:len(r.tasks)-1] {
		if !t.done {
			r.fail(Deadlock, "%s", r.stuck())
			return true
		}
	}
	if _, due := r.w.k.WorkerDue(); due {
		r.fail(Deadlock, "%s", r.stuck())
		return true
	}
	r.ended = r.end()
	r.finish()
	return true
}

func (r *run) stuck() string {
	text := "no task can continue:"
	for _, t := range r.tasks {
		if !t.done {
			text += fmt.Sprintf(" %s before %s;", t.name, t.wait.kind)
		}
	}
	return text
}

func mix(h, v uint64) uint64 {
	h ^= v
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}

func hashString(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

func hashBytes(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}
