package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"kprobelab/decoder"
	"kprobelab/internal/cpumodel"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/kprobes/slot"
	"kprobelab/optimizer"
	"kprobelab/x86"
)

// Explanation is all that is known about a probe at one address: what
// registration answers, how the probe runs, and whether and why not it is
// jump-optimized. Its JSON form is the one of explain --json.
type Explanation struct {
	Image   string `json:"image"`
	Profile string `json:"profile"`
	// Standing says how far the profile can be trusted (kimage's Standing).
	Standing string `json:"standing"`
	// CPU is the processor that boot made the text for, "" where not known.
	CPU string `json:"cpu"`

	Addr   Addr   `json:"address"`
	Symbol string `json:"symbol"`
	Offset uint64 `json:"offset"`
	// SymbolSize is the function's size in bytes as kallsyms has it.
	SymbolSize uint64 `json:"symbol_size"`
	// PlacedAt is the address that gets the probe; with IBT it is past the ENDBR.
	PlacedAt Addr `json:"placed_at"`
	// Instruction is the instruction at PlacedAt, nil if there is none.
	Instruction *Instruction `json:"instruction"`
	// Lacks is the instruction set extension that the processor would need to execute the
	// instruction and lacks (#UD); "" if it executes it, or if there is no instruction.
	Lacks string `json:"lacks"`

	// Errno is register_kprobe's result: 0, or a negative number. RegisterReason is the
	// rule that refuses, RegisterWhy the rule in words.
	Errno          int     `json:"errno"`
	RegisterReason rule.ID `json:"register_reason"`
	RegisterWhy    string  `json:"register_why"`

	// Ftrace, Boostable and Emulated are the ways in which the probe can run. How names
	// the way that is taken while there is no jump, "" if the probe is refused.
	// Emulation names the kernel's routine.
	Ftrace    bool           `json:"ftrace"`
	Boostable bool           `json:"boostable"`
	Emulated  bool           `json:"emulated"`
	How       string         `json:"how"`
	Way       probepoint.How `json:"-"`
	Emulation string         `json:"emulation"`

	// ReturnPool is the pool of a kretprobe there; nil where register_kretprobe takes none, past a function's entry.
	ReturnPool *ReturnPool `json:"return_pool"`

	// Hazards are the faults that can happen although the probe is accepted.
	Hazards []ExplainHazard `json:"hazards"`

	// Optimized: once registered, the probe gets its jump. Reasons are all rules that
	// prevent it; the kernel stops at the first. For a refused probe they are the rules
	// that would prevent it as well.
	Optimized bool            `json:"optimized"`
	Reasons   []ExplainReason `json:"reasons"`
	// Unless lists conditions outside the code that would also prevent the optimization:
	// other probes, and what is done to this one. Empty if the code prevents it.
	Unless []Unless `json:"unless"`
	// DCR is the detoured code region, JTPR the jump target prohibition region
	// as the code has it, and DocumentedJTPR as the documentation has it.
	DCR            *AddrRange `json:"dcr"`
	JTPR           *AddrRange `json:"jtpr"`
	DocumentedJTPR *AddrRange `json:"documented_jtpr"`
	// Region has the bytes around the probe, for the picture.
	Region *Region `json:"region"`

	Slot   *CodeBlock `json:"slot"`
	Detour *CodeBlock `json:"detour"`
	// Nearest are the addresses of the function at which a probe is optimized, nearest
	// first; empty if this probe is.
	Nearest []NearPoint `json:"nearest"`
	// Decoder is the Reader that was asked (decoder.Reader), and Overruled are
	// the instructions of the function that the kernel's decoder reads
	// differently from it.
	Decoder   string      `json:"decoder"`
	Overruled []Overruled `json:"overruled"`
	// Notes say where the documentation and the code differ here, and where the
	// kernel's decoder decides.
	Notes []string `json:"notes"`
}

// Instruction is one instruction of the code.
type Instruction struct {
	Addr  Addr   `json:"address"`
	Bytes Bytes  `json:"bytes"`
	Text  string `json:"text"`
	// Note says what it does in a detour buffer; "" outside of one.
	Note string `json:"note,omitempty"`
}

// ExplainReason is one rule that keeps the probe from being optimized.
type ExplainReason struct {
	// ID is the rule's stable name.
	ID rule.ID `json:"id"`
	// Stops: the kernel stops here and does not reach the reasons that follow. It is
	// false for all reasons of a refused probe: the kernel reaches none.
	Stops bool `json:"stops"`
	Addr  Addr `json:"address"`
	// Instruction is the instruction that breaks the rule; nil if the rule is about none.
	Instruction *Instruction `json:"instruction"`
	// Target is the address to which a jump leads, unknown for other rules.
	Target Addr `json:"target"`
	// Sentence says it in words; Source is the place of the rule.
	Sentence string `json:"sentence"`
	Source   string `json:"source"`
	// Documented is false if the documentation would not refuse.
	Documented bool `json:"documented"`
}

// CodeBlock is a piece of machine code that the kernel would make.
type CodeBlock struct {
	Addr  Addr          `json:"address"`
	Bytes Bytes         `json:"bytes"`
	Code  []Instruction `json:"code"`
}

// NearPoint is an address at which the answer is yes.
type NearPoint struct {
	Addr        Addr   `json:"address"`
	Offset      uint64 `json:"offset"`
	Instruction string `json:"instruction"`
}

// Explain explains one point, SYM[+OFF] or ADDR[+OFF]. The error describes a fault in
// the text; a place that the kernel refuses is no error.
func (s *Scan) Explain(point string) (*Explanation, error) {
	r, err := s.parse(point)
	if err != nil {
		return nil, err
	}
	x := s.explainer(s.scanner())
	x.answer(r)
	if x.found {
		x.region()
		x.buffers()
		x.nearest()
		x.lacks()
		x.notes()
		x.overruled()
	}
	return x.e, nil
}

// ExplainBytes explains each of a function's bytes, at most so many, as Explain does,
// without the picture, the buffers, other addresses and the notes.
func (s *Scan) ExplainBytes(sym kimage.Symbol, most int) []*Explanation {
	list := make([]*Explanation, min(sym.Size, uint64(most)))
	p := s.Points(sym)
	for i := range list {
		list[i] = p.At(i)
	}
	return list
}

// Points explains points of one function one after the other, as ExplainBytes does. It reads the
// function once. It is for one goroutine.
type Points struct {
	s   *Scan
	by  *scanner
	sym kimage.Symbol
}

// Points makes the Points of a function.
func (s *Scan) Points(sym kimage.Symbol) *Points { return &Points{s, s.scanner(), sym} }

// At explains the byte at an offset in the function.
func (p *Points) At(offset int) *Explanation {
	x := p.s.explainer(p.by)
	x.answer(probepoint.Request{Addr: p.sym.Addr.Add(int64(offset))})
	return x.e
}

// explainer is for one point.
func (s *Scan) explainer(by *scanner) *explainer {
	by.Detail = true
	return &explainer{scanner: by, e: &Explanation{
		Image: s.Image, CPU: s.CPU, Profile: s.Profile.Name, Standing: s.Standing, Hazards: []ExplainHazard{}, Reasons: []ExplainReason{}, Unless: []Unless{}, Nearest: []NearPoint{}, Overruled: []Overruled{}, Notes: []string{},
	}}
}

// answer computes the kernel's answer, with all reasons.
func (x *explainer) answer(r probepoint.Request) {
	x.register(r)
	x.refusal(r)
	if x.found {
		x.verdict()
		x.unless()
	}
}

// writeObject writes one JSON object for people, too.
func writeObject(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// WriteJSON writes one JSON object.
func (e *Explanation) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(e)
}

// explainer makes one Explanation.
type explainer struct {
	*scanner
	e *Explanation
	// found: there is an address, at.
	found bool
	at    x86.Addr
	sym   kimage.Symbol
	slot  slot.Slot
	v     optimizer.Verdict
}

// register computes register_kprobe's answer.
func (x *explainer) register(r probepoint.Request) {
	at := x.resolve(r)
	found := at.found
	step := x.find(r, at)
	row := x.rowAt(r, at, x.SlotAddr, step)
	e := x.e
	e.Addr, e.Symbol, e.Offset = row.Addr, row.Symbol, row.Offset
	e.Errno, e.Ftrace, e.Boostable, e.Emulated, e.Optimized = row.Errno, row.Ftrace, row.Boostable, row.Emulated, row.Optimized
	if row.Errno != 0 {
		e.RegisterReason, e.RegisterWhy = row.Rule, row.Detail
	} else {
		e.How, e.Way = row.How.String(), row.How
	}
	if !x.found {
		return
	}
	e.SymbolSize = x.sym.Size
	if !x.View.InText(x.at) {
		x.found = false // nothing is executed there: there is no more to explain
		return
	}
	e.PlacedAt, e.Instruction = known(x.at), x.instruction(x.at)
	if len(found) > 1 {
		e.Notes = append(e.Notes, fmt.Sprintf("%s names %d addresses: register_kprobe takes the first", r.Symbol, len(found)))
	}
	if e.Errno == 0 && row.Offset == 0 {
		e.ReturnPool = returnPool(x.Profile)
	}
	e.Hazards = explainHazards(row.Hazards)
	if e.Errno == 0 && !e.Ftrace {
		x.slot = x.placement.Slot
		e.Emulation = x.slot.Emulation.String()
	}
}

// find notes the address and reads its function once, for all questions. It returns the
// walk's step at the address, nil if the walk has none there.
func (x *explainer) find(r probepoint.Request, at resolved) *kimage.Step {
	if r.Symbol != "" && len(at.found) == 0 || at.asked == 0 {
		return nil
	}
	x.found, x.at = true, at.asked
	if at.err == nil {
		x.at = x.where.Addr
	}
	x.sym, _ = x.View.SymbolAt(x.at)
	for s := range x.walk(x.sym) {
		if s.Addr == x.at {
			step := *s
			return &step
		}
	}
	return nil
}

// instruction returns the instruction at an address, as the processor would run it; nil
// if no bytes can be read.
func (x *explainer) instruction(a x86.Addr) *Instruction {
	var b [decoder.MaxInsnSize]byte
	n := x.View.CodeAt(a, b[:])
	if n == 0 {
		return nil
	}
	k, err := decoder.DecodeKernel(b[:n], &x.Profile.Decoder)
	if err != nil || k.Length == 0 {
		return x.newInstruction(a, b[:1])
	}
	return x.newInstruction(a, b[:min(k.Length, n)])
}

// lacks sets the extension that the processor would need to execute the instruction.
func (x *explainer) lacks() {
	var b [decoder.MaxInsnSize]byte
	_, err := x.View.Processor().Decode(b[:x.View.CodeAt(x.at, b[:])])
	var l *cpumodel.LacksError
	if errors.As(err, &l) {
		x.e.Lacks = l.Extension
		x.note("%s needs %s, which the processor (%s) does not have: to execute it is an invalid opcode (#UD)",
			l.Insn, l.Extension, cmp.Or(x.CPU, kimage.DefaultCPU))
	}
}

func (x *explainer) newInstruction(a x86.Addr, b []byte) *Instruction {
	return &Instruction{Addr: known(a), Bytes: Bytes(b), Text: x.named(decoder.Text(b, a))}
}

// kernelAddr is an address of the kernel's half in a disassembly.
var kernelAddr = regexp.MustCompile(`0xf{8}[0-9a-f]{8}\b`)

// named puts symbols in the place of the addresses of an instruction.
func (x *explainer) named(text string) string {
	return kernelAddr.ReplaceAllStringFunc(text, func(a string) string {
		v, _ := strconv.ParseUint(a[2:], 16, 64)
		if sym, ok := x.View.SymbolAt(x86.Addr(v)); ok {
			p := probepoint.Point{Addr: x86.Addr(v), Symbol: sym, Offset: v - uint64(sym.Addr)}
			return p.String()
		}
		return a
	})
}

// verdict are the optimizer's reasons.
func (x *explainer) verdict() {
	x.v = x.opt.Check(x.at)
	for i := range x.v.Reasons {
		r := &x.v.Reasons[i]
		e := ExplainReason{
			ID: r.ID, Stops: i == 0 && x.e.Errno == 0, Addr: known(r.Addr),
			Sentence: x.named(r.Sentence()), Source: r.ID.Source(), Documented: !r.BeyondDoc,
		}
		if r.Insn.Len > 0 {
			e.Instruction = x.newInstruction(r.Insn.Addr, r.Insn.Bytes())
		}
		if r.Target != 0 {
			e.Target = known(r.Target)
		}
		x.e.Reasons = append(x.e.Reasons, e)
	}
	if img, ok := x.View.(*kimage.Image); ok {
		if form := img.UnspokenAt(x.v.DCR); form != "" {
			x.note("boot patches code of the region, and nothing in the image says how (%s)", form)
		}
	}
	x.e.DCR, x.e.JTPR = newRange(x.v.DCR), newRange(x.v.JTPR)
	documented := x.v.JTPR
	documented.End--
	x.e.DocumentedJTPR = newRange(documented)
}

// nearest looks for addresses of the function where a probe is optimized.
func (x *explainer) nearest() {
	const most = 4
	if x.e.Optimized || x.sym.Size == 0 {
		return
	}
	x.function(x.sym, func(row *ScanRow) {
		if !row.Optimized {
			return
		}
		x.e.Nearest = append(x.e.Nearest, NearPoint{Addr: row.Addr, Offset: row.Offset})
	})
	sortBy(x.e.Nearest, func(n NearPoint) int64 {
		d := int64(n.Offset) - x.at.Sub(x.sym.Addr)
		return max(d, -d)
	})
	x.e.Nearest = x.e.Nearest[:min(most, len(x.e.Nearest))]
	for i := range x.e.Nearest {
		n := &x.e.Nearest[i]
		n.Instruction = x.instruction(x.sym.Addr.Add(int64(n.Offset))).Text
	}
}
