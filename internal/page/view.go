package page

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kprobelab/decoder"
	"kprobelab/internal/steptext"
	"kprobelab/x86"
)

// View is a machine as the page shows it.
type View struct {
	Schedule string `json:"schedule"`
	Sub      int    `json:"sub"`
	Steps    int    `json:"steps"`
	// Hash is a digest of the machine's whole state.
	Hash string `json:"hash"`
	// Moved: the move has changed the state.
	Moved bool `json:"moved"`
	// Events are the events of the last step; the one with the index Sub is shown.
	Events []Event `json:"events"`
	// Strips are the probed places as pictures.
	Strips []Strip `json:"strips"`
	// Marks and Stale are the timeline from the steps on that the page does not know yet.
	Marks []Mark  `json:"marks"`
	Stale []Stale `json:"stale"`
	// Left are the steps that had nothing to do, and were left out.
	Left []Left `json:"left,omitempty"`
	// Did says what the last step did, if it has no event.
	Did    string  `json:"did"`
	CPUs   []CPU   `json:"cpus"`
	Code   []Code  `json:"code"`
	Probes []State `json:"probes"`
	Log    []Line  `json:"log"`
	// Module is the module's next action, "" if it has none; Worker: the worker has
	// something to do.
	Module string `json:"module"`
	Worker bool   `json:"worker"`
	// Next names the CPU that takes the next step when all step in turn, as in a schedule; "" if none can.
	Next string `json:"next"`
}

// Event is a step of the protocol.
type Event struct {
	Who  string `json:"who"`
	Text string `json:"text"`
	// Key is the event's in words.json.
	Key string `json:"key"`
	// What tells the event in a sentence with names, Why gives the reason; Where names the function of Linux that does it.
	What  string `json:"what"`
	Why   string `json:"why"`
	Where *Where `json:"where,omitempty"`
	// Lights lists the parts of the picture that it concerns (words.json); Site is the probed address.
	Lights []string `json:"lights"`
	Site   string   `json:"site"`
}

// Line is a line of the log; New: it came after the moment before.
type Line struct {
	Text string `json:"text"`
	New  bool   `json:"new"`
}

// CPU is a lane.
type CPU struct {
	Name string `json:"name"`
	Call string `json:"call"`
	// State says whether it has not begun, runs, has returned or has failed.
	State string `json:"state"`
	// Can: it can take a step.
	Can   bool   `json:"can"`
	Where string `json:"where"`
	// Insn is the instruction at ip, "" if ip is inside of one.
	Insn string `json:"insn"`
	// Frame: these registers are passed to a handler; the CPU has others.
	Frame bool   `json:"frame,omitempty"`
	Regs  []Word `json:"regs"`
	Stack []Word `json:"stack"`
	// Fetch has the bytes that it may fetch at each probe.
	Fetch []Fetch `json:"fetch"`
}

// Word is a register, or a word of the stack.
type Word struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Means   string `json:"means,omitempty"`
	Changed bool   `json:"changed"`
}

// Fetch is the text that a CPU may fetch at a place.
type Fetch struct {
	Place string `json:"place"`
	Bytes string `json:"bytes"`
	Insn  string `json:"insn"`
	// Old: memory has other bytes already, and this CPU may not have seen them.
	Old bool `json:"old"`
}

// Code is a function, a slot or a detour buffer.
type Code struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Address string `json:"address"`
	Rows    []Row  `json:"rows"`
	// Groups divide the rows of a detour buffer.
	Groups []Group `json:"groups,omitempty"`
}

// Group is rows that do one thing: N rows.
type Group struct {
	Name string `json:"name"`
	N    int    `json:"n"`
}

// Row is an instruction, if the original has one there.
type Row struct {
	Place string `json:"place"`
	Bytes []Cell `json:"bytes"`
	Text  string `json:"text"`
	// Was is the original, if other bytes are there now.
	Was string `json:"was,omitempty"`
	// CPUs are the CPUs whose ip is here.
	CPUs  []string `json:"cpus,omitempty"`
	Probe bool     `json:"probe,omitempty"`
	// Region: a jump of a probe here would touch the instruction, so that its text may change.
	Region bool `json:"region,omitempty"`
}

// Cell is a byte.
type Cell struct {
	Value string `json:"value"`
	// Poked: it differs from the original's. Changed: it differs from the moment before.
	Poked   bool `json:"poked,omitempty"`
	Changed bool `json:"changed,omitempty"`
}

// State is a probe's.
type State struct {
	Text   string `json:"text"`
	Place  string `json:"place"`
	State  string `json:"state"`
	Hits   int    `json:"hits"`
	Missed uint64 `json:"missed"`
}

// place is SYM+0xOFF of Symbolize's text.
func place(symbol string) string {
	name, _, _ := strings.Cut(symbol, "/")
	return strings.TrimSuffix(name, "+0x0")
}

func (r *run) view(sub int, moved bool) (*View, error) {
	hash, err := r.hash(sub)
	if err != nil {
		return nil, err
	}
	now, before := &r.now, &r.before
	if sub >= 0 {
		now = &r.moments[sub]
	}
	if sub > 0 {
		before = &r.moments[sub-1]
	}
	v := &View{
		Schedule: writeSchedule(r.steps), Sub: sub, Steps: len(r.steps), Hash: hash, Moved: moved,
		Events: []Event{}, Probes: append([]State{}, now.probes...), Log: []Line{}, Code: []Code{},
	}
	for i := range r.moments {
		v.Events = append(v.Events, r.inWords(&r.moments[i]))
	}
	v.Strips = r.strips(now, before)
	for n, line := range r.said[:now.said] {
		v.Log = append(v.Log, Line{line, n >= before.said})
	}
	for n := range r.tasks {
		v.CPUs = append(v.CPUs, r.cpuView(n, now, before))
	}
	v.Code = r.code(now, before)
	switch {
	case len(r.probes) == 0 || r.gone:
	case r.registered:
		v.Module = "unregister"
	default:
		v.Module = "register"
	}
	v.Worker = r.workerDue()
	return v, nil
}

// workerDue: the worker has something to do.
func (r *run) workerDue() bool {
	if !r.scenario.Careless {
		_, due := r.lab.Kprobes.WorkerDue()
		return due
	}
	return slices.ContainsFunc(r.probes, r.carelessDue)
}

func (r *run) cpuView(n int, now, before *moment) CPU {
	t := r.tasks[n]
	c := CPU{Name: fmt.Sprintf("CPU %d", n), Call: t.Name, Can: !t.Done(), Regs: []Word{}, Stack: []Word{}, Fetch: []Fetch{}}
	switch {
	case t.Err() != nil:
		c.State = "failed: " + t.Err().Error()
	case t.Done():
		c.State = "has returned " + r.results(n)
	case now.has[n]:
		c.State = "runs"
	case len(t.Results()) > 0:
		c.State = "has returned " + r.results(n) + ", and calls again"
	default:
		c.State = "has not begun"
	}
	for _, p := range r.probes {
		f := Fetch{}
		if p.at() != 0 {
			f = r.fetch(now, n, p.at())
		}
		if f.Place != "" && !slices.Contains(c.Fetch, f) {
			c.Fetch = append(c.Fetch, f)
		}
	}
	if !now.has[n] {
		return c
	}
	regs, old := &now.regs[n], &before.regs[n]
	c.Where, c.Frame = r.symbol(x86.Addr(regs.IP)), now.frame[n]
	if !r.afterInt3(x86.Addr(regs.IP)) {
		c.Insn = r.insn(x86.Addr(regs.IP))
	}
	for _, x := range registers {
		value, was := x.of(regs), x.of(old)
		w := Word{Name: x.name, Value: fmt.Sprintf("%x", value), Changed: before.has[n] && value != was}
		switch {
		case x.name == "flags":
			w.Means = flagNames(value)
		case value>>32 == 0xffffffff:
			w.Means = r.meaning(value)
		}
		c.Regs = append(c.Regs, w)
	}
	for i, value := range now.stack[n] {
		at := regs.SP + uint64(8*i)
		w := Word{Name: fmt.Sprintf("sp+%d", 8*i), Value: fmt.Sprintf("%x", value), Means: r.meaning(value)}
		if j := int64(at-old.SP) / 8; before.has[n] && len(before.stack[n]) > 0 && (j < 0 || j < int64(len(before.stack[n])) && before.stack[n][j] != value) {
			w.Changed = true
		}
		c.Stack = append(c.Stack, w)
	}
	return c
}

// afterInt3: a probe's int3 is right before the address, so that no instruction begins there.
func (r *run) afterInt3(a x86.Addr) bool {
	for _, p := range r.probes {
		if at := p.at(); at != 0 && a == at.Add(1) && string(r.read(at, 1)) == string([]byte{x86.Int3}) {
			return r.originalSize(at) > 1
		}
	}
	return false
}

// originalSize is the size of the instruction that a watched function has at an address, 0 if none
// begins there.
func (r *run) originalSize(a x86.Addr) int {
	for n, w := range r.watched {
		for _, o := range r.originals(n) {
			if w.Start.Add(int64(o.off)) == a {
				return len(o.bytes)
			}
		}
	}
	return 0
}

func (r *run) results(n int) string {
	var list []string
	for _, x := range r.tasks[n].Results() {
		list = append(list, strconv.FormatInt(int64(x.Ret), 10))
	}
	return strings.Join(list, ", ")
}

// meaning names an address of code.
func (r *run) meaning(v uint64) string {
	if v>>32 != 0xffffffff {
		return ""
	}
	if s := r.symbol(x86.Addr(v)); !strings.HasPrefix(s, "0x") {
		return s
	}
	return ""
}

// registers are the registers that are shown, in the order of the kernel's oops.
var registers = []struct {
	name string
	of   func(*x86.PtRegs) uint64
}{
	{"ip", func(r *x86.PtRegs) uint64 { return r.IP }}, {"sp", func(r *x86.PtRegs) uint64 { return r.SP }},
	{"flags", func(r *x86.PtRegs) uint64 { return r.Flags }},
	{"ax", func(r *x86.PtRegs) uint64 { return r.AX }}, {"bx", func(r *x86.PtRegs) uint64 { return r.BX }},
	{"cx", func(r *x86.PtRegs) uint64 { return r.CX }}, {"dx", func(r *x86.PtRegs) uint64 { return r.DX }},
	{"si", func(r *x86.PtRegs) uint64 { return r.SI }}, {"di", func(r *x86.PtRegs) uint64 { return r.DI }},
	{"bp", func(r *x86.PtRegs) uint64 { return r.BP }},
	{"r8", func(r *x86.PtRegs) uint64 { return r.R8 }}, {"r9", func(r *x86.PtRegs) uint64 { return r.R9 }},
	{"r10", func(r *x86.PtRegs) uint64 { return r.R10 }}, {"r11", func(r *x86.PtRegs) uint64 { return r.R11 }},
	{"r12", func(r *x86.PtRegs) uint64 { return r.R12 }}, {"r13", func(r *x86.PtRegs) uint64 { return r.R13 }},
	{"r14", func(r *x86.PtRegs) uint64 { return r.R14 }}, {"r15", func(r *x86.PtRegs) uint64 { return r.R15 }},
}

// flagNames are the flags that are set, as far as learners meet them.
func flagNames(v uint64) string {
	var list []string
	for _, f := range []struct {
		name string
		bit  uint64
	}{{"CF", 1}, {"ZF", 1 << 6}, {"SF", 1 << 7}, {"TF", x86.FlagTF}, {"IF", x86.FlagIF}, {"OF", 1 << 11}} {
		if v&f.bit != 0 {
			list = append(list, f.name)
		}
	}
	return strings.Join(list, " ")
}

// fetch returns the bytes that a CPU may fetch at a probed address: memory's, or older
// ones from when the CPU last synchronized.
func (r *run) fetch(now *moment, n int, at x86.Addr) Fetch {
	f := Fetch{Place: r.symbol(at)}
	var live, seen []byte
	off := 0
	for _, w := range r.watched {
		if i := int(at.Sub(w.Start)); w.Contains(at) {
			end := min(i+decoder.MaxInsnSize, int(w.Len()))
			live, seen = now.text[off+i:off+end], now.seen[n][off+i:off+end]
		}
		off += int(w.Len())
	}
	if len(seen) == 0 {
		return f
	}
	f.Old = string(seen[:min(x86.Rel32Size, len(seen))]) != string(live[:min(x86.Rel32Size, len(live))])
	f.Bytes, f.Insn = fmt.Sprintf("% x", seen[:min(x86.Rel32Size, len(seen))]), r.named(decoder.Text(seen, at))
	return f
}

// state returns the present state of a probe.
func (r *run) state(p *planted) State {
	s := State{Text: p.text, Hits: p.hits, Missed: p.missed(), State: "not registered"}
	if p.at() == 0 {
		return s
	}
	s.Place = r.symbol(p.at())
	if entry := r.lab.Kprobes.Find(p.at()); entry != nil {
		s.State = steptext.Standing(entry, r.jumps(p), r.lab.Kprobes.Queue(p.at()))
	}
	return s
}
