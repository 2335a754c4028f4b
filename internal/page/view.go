package page

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/kprobes/slot"
	"kprobelab/x86"
)

// View is what the page shows of a machine.
type View struct {
	Schedule string `json:"schedule"`
	Sub      int    `json:"sub"`
	Steps    int    `json:"steps"`
	// Hash is a digest of the machine's whole state.
	Hash string `json:"hash"`
	// Moved: the move has led somewhere.
	Moved bool `json:"moved"`
	// Events are those of the last step; the one of Sub is shown.
	Events []Event `json:"events"`
	CPUs   []CPU   `json:"cpus"`
	Code   []Code  `json:"code"`
	Probes []State `json:"probes"`
	Log    []Line  `json:"log"`
	// Module is what the module does next, "" for nothing; Worker: there is
	// something for the worker.
	Module string `json:"module"`
	Worker bool   `json:"worker"`
}

// Event is a step of the protocol.
type Event struct {
	Who  string `json:"who"`
	Text string `json:"text"`
}

// Line is one of the log's; New: since the moment before.
type Line struct {
	Text string `json:"text"`
	New  bool   `json:"new"`
}

// CPU is a lane.
type CPU struct {
	Name string `json:"name"`
	Call string `json:"call"`
	// State is what it does: it has not begun, runs, has returned, has failed.
	State string `json:"state"`
	// Can: it can take a step.
	Can   bool   `json:"can"`
	Where string `json:"where"`
	Insn  string `json:"insn"`
	Regs  []Word `json:"regs"`
	Stack []Word `json:"stack"`
	// Fetch is what it may fetch at each probe.
	Fetch []Fetch `json:"fetch"`
}

// Word is a register, or a word of the stack.
type Word struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Means   string `json:"means,omitempty"`
	Changed bool   `json:"changed"`
}

// Fetch is what a CPU may fetch at a place.
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
}

// Row is an instruction, where the original has one.
type Row struct {
	Place string `json:"place"`
	Bytes []Cell `json:"bytes"`
	Text  string `json:"text"`
	// Was is the original, where other bytes are there now.
	Was string `json:"was,omitempty"`
	// CPUs are those of which ip is here.
	CPUs  []string `json:"cpus,omitempty"`
	Probe bool     `json:"probe,omitempty"`
}

// Cell is a byte.
type Cell struct {
	Value string `json:"value"`
	// Poked: it is not the original's. Changed: since the moment before.
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

// place is SYM+0xOFF of what Symbolize says.
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
	for _, m := range r.moments {
		v.Events = append(v.Events, Event{m.Who, m.Text})
	}
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
	_, v.Worker = r.lab.Kprobes.WorkerDue()
	if r.scenario.Careless {
		v.Worker = r.registered && !r.gone
	}
	return v, nil
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
		if p.at() != 0 {
			c.Fetch = append(c.Fetch, r.fetch(now, n, p.at()))
		}
	}
	if !now.has[n] {
		return c
	}
	regs, old := &now.regs[n], &before.regs[n]
	c.Where, c.Insn = r.symbol(x86.Addr(regs.IP)), r.insn(x86.Addr(regs.IP))
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

// registers are those that are shown, in the order of the kernel's oops.
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

// fetch is what a CPU may fetch at a probed address: what memory has, or what it
// had when the CPU last synchronized.
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

var kernelAddress = regexp.MustCompile(`0xf{8}[0-9a-f]{8}\b`)

// named puts symbols in the place of an instruction's addresses.
func (r *run) named(text string) string {
	return kernelAddress.ReplaceAllStringFunc(text, func(a string) string {
		v, _ := strconv.ParseUint(a[2:], 16, 64) // the pattern has 16 digits
		if s := r.meaning(v); s != "" {
			return s
		}
		return a
	})
}

// insn is the instruction in memory.
func (r *run) insn(at x86.Addr) string {
	return r.named(decoder.Text(r.read(at, decoder.MaxInsnSize), at))
}

// read reads up to n bytes.
func (r *run) read(at x86.Addr, n int) []byte {
	for b := make([]byte, n); len(b) > 0; b = b[:len(b)-1] {
		if r.lab.Machine.ReadMem(at, b) == nil {
			return b
		}
	}
	return nil
}

// code is the watched functions, and what kprobes has made for the probes.
func (r *run) code(now, before *moment) (list []Code) {
	off := 0
	for n, w := range r.watched {
		size := int(w.Len())
		list = append(list, r.function(n, now, now.text[off:off+size], before.text[off:off+size]))
		off += size
	}
	for _, m := range now.made {
		list = append(list, r.block(&m, now, before))
	}
	return list
}

func (r *run) slot(p *planted) (slot.Slot, bool) {
	switch {
	case !r.registered || r.gone || p.at() == 0:
		return slot.Slot{}, false
	case p.kp != nil:
		return p.kp.Slot()
	case p.rp != nil:
		return p.rp.KP.Slot()
	}
	return p.jp.KP.Slot()
}

// original is an instruction of a watched function, as the image has it.
type original struct {
	off   int
	bytes []byte
	text  string
}

// originals are the instructions of the n-th watched range, which stay the same.
func (r *run) originals(n int) []original {
	for len(r.original) <= n {
		w := r.watched[len(r.original)]
		sym, _ := r.img.SymbolAt(w.Start)
		code := make([]byte, w.Len())
		r.img.CodeAt(w.Start, code)
		var list []original
		for step := range kimage.NewWalker(r.img, &r.rules.Decoder).Function(sym) {
			i := int(step.Addr.Sub(w.Start))
			if step.Err != nil || i+step.Insn.Length > len(code) {
				break
			}
			list = append(list, original{i, code[i : i+step.Insn.Length], r.named(decoder.Text(code[i:], step.Addr))})
		}
		r.original = append(r.original, list)
	}
	return r.original[n]
}

// textOf is an instruction in words, with the names that its addresses have now.
func (r *run) textOf(code []byte, at x86.Addr) string {
	key := string(binary.LittleEndian.AppendUint64(code[:len(code):len(code)], uint64(at)))
	text, ok := r.texts[key]
	if !ok {
		text = r.named(decoder.Text(code, at))
		r.texts[key] = text
	}
	return text
}

func (r *run) function(n int, now *moment, live, was []byte) Code {
	w := r.watched[n]
	sym, _ := r.img.SymbolAt(w.Start)
	c := Code{Name: sym.Name, Kind: "function", Address: w.Start.String()}
	for _, o := range r.originals(n) {
		i, end := o.off, o.off+len(o.bytes)
		at := w.Start.Add(int64(i))
		row := Row{Place: fmt.Sprintf("+%#x", i), Text: o.text, Probe: r.probed(at), CPUs: r.at(now, at, len(o.bytes)), Bytes: cells(live[i:end], o.bytes, was[i:end])}
		if !bytes.Equal(live[i:end], o.bytes) {
			row.Was = o.text
			row.Text = r.textOf(live[i:min(i+decoder.MaxInsnSize, len(live))], at)
			if live[i] != o.bytes[0] && live[i] != x86.Int3 && live[i] != x86.Jmp32 {
				row.Text = "(inside of the jump)"
			}
		}
		c.Rows = append(c.Rows, row)
	}
	return c
}

// cells are bytes; those that are not the original's, or not as they were before, are
// marked.
func cells(live, original, was []byte) (list []Cell) {
	for j, b := range live {
		list = append(list, Cell{fmt.Sprintf("%02x", b), b != original[j], j >= len(was) || b != was[j]})
	}
	return list
}

func (r *run) probed(a x86.Addr) bool {
	for _, p := range r.probes {
		if r.registered && !r.gone && p.at() == a {
			return true
		}
	}
	return false
}

// at are the CPUs of which ip is in an instruction.
func (r *run) at(now *moment, a x86.Addr, n int) (list []string) {
	for cpu := range r.tasks {
		if ip := x86.Addr(now.regs[cpu].IP); now.has[cpu] && ip >= a && ip < a.Add(int64(n)) {
			name := fmt.Sprintf("CPU %d", cpu)
			if ip != a {
				name += fmt.Sprintf(" (+%d)", ip.Sub(a))
			}
			list = append(list, name)
		}
	}
	return list
}

// block is code that kprobes has made.
func (r *run) block(m *made, now, before *moment) Code {
	c := Code{Name: m.name, Kind: m.kind, Address: m.at.String()}
	var was []byte
	for _, b := range before.made {
		if b.at == m.at {
			was = b.code
		}
	}
	for i := 0; i < len(m.code); {
		n := 1
		if k, err := decoder.Decode(m.code[i:]); err == nil {
			n = k.Length
		}
		end := min(i+n, len(m.code))
		at := m.at.Add(int64(i))
		c.Rows = append(c.Rows, Row{
			Place: fmt.Sprintf("+%#x", i), Text: r.textOf(m.code[i:end], at), CPUs: r.at(now, at, n),
			Bytes: cells(m.code[i:end], m.code[i:end], was[min(i, len(was)):min(end, len(was))]),
		})
		i += n
	}
	return c
}

// state is what a probe is now.
func (r *run) state(p *planted) State {
	s := State{Text: p.text, Hits: p.hits, Missed: p.missed(), State: "not registered"}
	if p.at() == 0 {
		return s
	}
	s.Place = r.symbol(p.at())
	entry := r.lab.Kprobes.Find(p.at())
	switch {
	case entry == nil:
	case entry.OnFtrace():
		s.State = "called by the function tracer"
	case r.jumps(p):
		s.State = "a jump to its detour buffer"
	default:
		s.State = "an int3"
	}
	if q := r.lab.Kprobes.Queue(p.at()); q != "" {
		s.State += ", on the list " + q
	}
	return s
}
