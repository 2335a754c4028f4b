package report

import (
	"errors"
	"fmt"
	"iter"
	"path"
	"strings"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes/hazard"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/kprobes/slot"
	"kprobelab/optimizer"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Scan computes register_kprobe's answer at many points, and whether the probe is
// jump-optimized. A point is an address or a symbol; the probe has no post_handler.
// Scan is safe for concurrent use as long as its fields do not change.
type Scan struct {
	// Image is the name that explanations give it, and CPU the processor that
	// boot made the text for, "" where not known. Standing is how far the profile
	// can be trusted (kimage's Standing), "" where no kernel is meant.
	Image, CPU, Standing string

	View    kimage.View
	Profile *profile.Config
	// Bias is the number that was added to the addresses of a program's file. An address below
	// Bias is the file's own.
	Bias uint64
	// Function, when not nil, returns the start of the function at an address without a symbol.
	Function func(at x86.Addr) (start x86.Addr, ok bool)
	// Symbols are the View's, by ascending address.
	Symbols []kimage.Symbol
	// SlotAddr is the address for copies of instructions and detour buffers. A point of
	// a list may bring an address of its own for the copy.
	SlotAddr x86.Addr
	// Padding lists int3s too, which are only counted otherwise.
	Padding bool
	// Slots adds the slot's address and bytes to the rows.
	Slots bool
	// Detail adds the reason in words to the rows.
	Detail bool
	// Own, when not nil, lets the image's own functions answer for an address, in place
	// of the rules; ftrace says that the probe would run from the function tracer.
	Own func(at x86.Addr, ftrace bool) Own
	// Bare compares functions with the answers of an uncorrected x86asm: the rows are
	// the points that it gets wrong.
	Bare bool
	// BlacklistedAs, when not nil, says how an address came onto the blacklist.
	BlacklistedAs func(x86.Addr) []kimage.BlacklistedBy
	// Progress, when not nil, is told now and then how far a scan is, in
	// bytes of code or of input.
	Progress func(done, total int64)
	// Shard, when not nil, writes a part of the scan alone, as the output of a shard.
	Shard *ScanShard
}

// NewScan makes a Scan of an image. Slots are in module space for a kernel,
// and after the image for another object.
func NewScan(img *kimage.Image) *Scan {
	s := &Scan{
		Image: img.Name(), CPU: img.Fact("CPU").Value, Standing: img.Standing(),
		View: img, Profile: img.Profile(), Symbols: img.Symbols(), SlotAddr: img.ModuleEnd(),
		BlacklistedAs: img.BlacklistedAs, Bias: img.Bias(),
	}
	if img.Kind() != kimage.KindKernel {
		for _, g := range img.Segments() {
			s.SlotAddr = g.Addr.Add(int64(g.Size))
		}
	}
	return s
}

// ScanRow is the answer for one point. The tags are the columns' names in JSON
// and TSV alike.
type ScanRow struct {
	// Addr is the requested address, also if an ENDBR moves the probe. It is unknown if
	// no address was found.
	Addr Addr `json:"address"`
	// Symbol covers the address; for a name that was not found, the name.
	Symbol string `json:"symbol"`
	// Offset in the symbol, in bytes.
	Offset uint64 `json:"offset"`
	// Errno is register_kprobe's result: 0, or a negative number.
	Errno int `json:"errno"`
	// Ftrace: the probe would run from the function tracer, without a slot.
	Ftrace bool `json:"ftrace"`
	// Boostable: a jump back follows the copy in the slot.
	Boostable bool `json:"boostable"`
	// Emulated: kprobes has a routine that does what the instruction would.
	Emulated bool `json:"emulated"`
	// Optimized: a jump to a detour buffer would replace the int3.
	Optimized bool `json:"optimized"`
	// Reason is the id of the first rule that refused the probe or, if it is accepted,
	// its optimization; "" if no rule did. If the name has several addresses, of which
	// register_kprobe takes the first, they follow after a semicolon.
	Reason string `json:"reason"`
	// Hazard lists the hazards of an accepted probe that do harm (hazard.ID), with
	// commas; "" if there are none.
	Hazard string `json:"hazard"`
	// Detail is the reason in words, and further notes; a column with Scan.Detail only.
	Detail string `json:"detail"`

	// SlotAddr and Slot are the slot's address and the bytes to be written
	// there; there are none without a slot, and without Scan.Slots.
	SlotAddr Addr  `json:"slot_addr"`
	Slot     Bytes `json:"slot"`

	// Decided names the columns that the image's own functions decided, with a comma
	// between them and "!" after columns for which the rules give another value; a
	// column with Scan.Own only.
	Decided string `json:"own"`

	// How tells accepted rows apart in the totals, and Rule is the reason alone.
	How  probepoint.How `json:"-"`
	Rule rule.ID        `json:"-"`
	// Bare is the answer of an uncorrected x86asm, in the rows of Scan.Bare.
	Bare *BareVerdict `json:"-"`
	// Hazards are the hazards in Hazard with their consequences.
	Hazards []hazard.Finding `json:"-"`
	// padding marks an int3 of a function that was walked.
	padding bool
	// right: an uncorrected x86asm answers the same.
	right bool
}

// ErrNoFunction: no function in the text matches a pattern.
var ErrNoFunction = errors.New("no function in the text matches")

// Functions lists the functions of the text, one for each address, of which
// any name matches any of the shell patterns; without patterns, all. Text that
// boot has freed has none. A malformed pattern is path.ErrBadPattern, one
// without a match ErrNoFunction.
func (s *Scan) Functions(patterns ...string) ([]kimage.Symbol, error) {
	hits := make([]int, len(patterns))
	var list []kimage.Symbol
	for i := range s.Symbols {
		sym := &s.Symbols[i]
		if !s.View.InText(sym.Addr) {
			continue
		}
		ok, err := matches(patterns, hits, sym.Name)
		if err != nil {
			return nil, err
		}
		if n := len(list); !ok || n > 0 && list[n-1].Addr == sym.Addr {
			continue
		}
		// The kernel walks from the first of several names.
		if first, ok := s.View.SymbolAt(sym.Addr); ok {
			list = append(list, first)
		}
	}
	for i, n := range hits {
		if n == 0 {
			return nil, fmt.Errorf("%w %q", ErrNoFunction, patterns[i])
		}
	}
	return list, nil
}

// matches counts in hits which patterns match the name.
func matches(patterns []string, hits []int, name string) (bool, error) {
	found := len(patterns) == 0
	for i, p := range patterns {
		ok, err := path.Match(p, name)
		if err != nil {
			return false, fmt.Errorf("%q: %w", p, err)
		}
		if ok {
			hits[i]++
			found = true
		}
	}
	return found, nil
}

// scanner is one goroutine's part of a Scan.
type scanner struct {
	*Scan
	opt    *optimizer.Scanner
	walker *kimage.Walker
	// steps are the function kept, which was walked last.
	steps []kimage.Step
	kept  kimage.Symbol
	// where is the point that is being answered. It is a field so that
	// probepoint's checks do not put each point on the heap.
	where probepoint.Point
	// placement says how the probe at it would run.
	placement probepoint.Placement
}

func (s *Scan) scanner() *scanner {
	return &scanner{
		Scan: s, opt: optimizer.NewScannerAt(s.View, s.SlotAddr, s.Profile),
		walker: kimage.NewWalker(s.View, &s.Profile.Decoder),
	}
}

// maxKept is the size in bytes of the largest function whose instructions are
// kept. Symbols before a stretch of padding can be megabytes.
const maxKept = 64 << 10

// walk reads a function's instructions once, for all questions about it.
func (s *scanner) walk(sym kimage.Symbol) iter.Seq[*kimage.Step] {
	switch {
	case len(s.steps) > 0 && s.kept == sym:
	case sym.Size > maxKept:
		return s.walker.Function(sym)
	default:
		s.keep(sym)
	}
	return kimage.Steps(s.steps)
}

// keep reads a function's instructions into steps.
func (s *scanner) keep(sym kimage.Symbol) {
	s.steps, s.kept = s.steps[:0], sym
	for step := range s.walker.Function(sym) {
		s.steps = append(s.steps, *step)
	}
	s.opt.Walked(sym, s.steps)
}

// function calls emit with a row for every instruction of the function. The row of an
// int3 has only its mark, unless int3s are listed.
func (s *scanner) function(sym kimage.Symbol, emit func(*ScanRow)) {
	var row ScanRow // one for all: emit copies what it keeps
	for step := range s.walk(sym) {
		row = ScanRow{}
		padding := step.IsPadding()
		if !padding || s.Padding {
			row = s.row(probepoint.Request{Addr: step.Addr}, s.SlotAddr, step)
		}
		row.padding = padding
		emit(&row)
	}
}

// resolved is a request, looked up: the symbols of its name, its address before an ENDBR
// moves it, and the reason if no probe can be there. The place is in the scanner's where.
type resolved struct {
	found []kimage.Symbol
	asked x86.Addr
	err   error
}

func (s *scanner) resolve(r probepoint.Request) (a resolved) {
	a.found, a.asked = askedFor(s.View, r)
	s.where, a.err = probepoint.Resolve(s.View, r, s.Profile)
	return a
}

// row answers one request, with the slot at slotAddr. step may be nil. If it is
// the walk's step at the probe's address, no other walk is needed.
func (s *scanner) row(r probepoint.Request, slotAddr x86.Addr, step *kimage.Step) ScanRow {
	return s.rowAt(r, s.resolve(r), slotAddr, step)
}

// rowAt is row for a request that was just resolved.
func (s *scanner) rowAt(r probepoint.Request, at resolved, slotAddr x86.Addr, step *kimage.Step) ScanRow {
	p, found, asked, err := &s.where, at.found, at.asked, at.err
	row := ScanRow{Symbol: r.Symbol, Offset: uint64(r.Offset)}
	if r.Symbol == "" || len(found) > 0 {
		row.Addr = known(asked)
	}
	if p.Symbol.Name != "" {
		row.Symbol, row.Offset = p.Symbol.Name, uint64(asked.Sub(p.Symbol.Addr))
	} else if r.Symbol == "" {
		row.Offset = 0
	}
	placed := err == nil
	if placed {
		if p.Addr != asked {
			row.Detail = "placed at " + p.String() + ", past the ENDBR"
		}
		if step != nil && step.Addr != p.Addr {
			step = nil
		}
		err = s.place(&row, p, slotAddr, step)
	}
	if err != nil {
		row.refuse(err)
	}
	if s.Own != nil && placed {
		s.own(&row, p.Addr)
	}
	if row.Rule == rule.NotText {
		row.Detail += freed(s.View, asked)
	}
	row.Reason = row.Rule.String()
	row.ambiguous(r.Symbol, found)
	return row
}

// freed are words for an address in init text, which boot has freed.
func freed(v interface {
	InInit(x86.Addr) (string, bool)
}, at x86.Addr) string {
	if _, init := v.InInit(at); init {
		return ": boot has freed this init text"
	}
	return ""
}

// askedFor is every symbol of a request's name, and the request's address before
// an ENDBR moves it.
func askedFor(v probepoint.Names, r probepoint.Request) ([]kimage.Symbol, x86.Addr) {
	if r.Symbol == "" {
		return nil, r.Addr.Add(int64(r.Offset))
	}
	found := v.Lookup(r.Symbol)
	if len(found) == 0 {
		return nil, 0
	}
	return found, found[0].Addr.Add(int64(r.Offset))
}

// place fills in how a probe at the point would run.
func (s *scanner) place(row *ScanRow, p *probepoint.Point, slotAddr x86.Addr, step *kimage.Step) (err error) {
	if step == nil {
		s.placement, err = probepoint.Place(s.View, p, slotAddr, false, s.Profile)
	} else {
		s.placement, err = probepoint.PlaceStep(s.View, p, step, slotAddr, false, s.Profile)
	}
	if err != nil {
		return err
	}
	place := &s.placement
	row.How, row.Ftrace = place.How, p.Ftrace
	row.Boostable = place.Slot.Boosted
	row.Emulated = place.Slot.Emulation.Kind != slot.EmulateNone
	s.optimize(row, p.Addr)
	row.hazards(hazard.At(s.View, p.Addr, place, s.Profile))
	if out := &place.Slot; s.Slots && !p.Ftrace {
		row.SlotAddr, row.Slot = known(out.Addr), Bytes(out.Bytes[:out.Len])
	}
	return nil
}

// optimize fills in whether the probe, once it is registered, gets its jump.
func (s *scanner) optimize(row *ScanRow, a x86.Addr) {
	d := s.opt.Decide(a)
	row.Optimized, row.Rule = d.OK, d.Reason
	if d.OK || !s.Detail {
		return
	}
	row.say("not optimized: " + d.Reason.Why() + ", at " + known(d.Addr).String())
}

// say adds to the detail.
func (row *ScanRow) say(text string) {
	if row.Detail != "" {
		row.Detail += "; "
	}
	row.Detail += text
}

// refuse notes an error of probepoint, which is a *Refusal.
func (row *ScanRow) refuse(err error) {
	row.Errno, row.Detail = -int(errno.Of(err)), err.Error()
	var r *probepoint.Refusal
	if errors.As(err, &r) {
		row.Rule, row.Detail = r.Rule, r.Why
	}
}

// ambiguous lists the addresses of a name that has several, of which
// register_kprobe takes the first.
func (row *ScanRow) ambiguous(name string, found []kimage.Symbol) {
	if len(found) < 2 {
		return
	}
	row.Reason += fmt.Sprintf("; %d addresses: %s", len(found), addressList(found))
	row.say(several(name, found))
}

// several says in words that a name has several addresses.
func several(name string, found []kimage.Symbol) string {
	return fmt.Sprintf("%s has %d addresses (%s): the first is taken", name, len(found), addressList(found))
}

func addressList(found []kimage.Symbol) string {
	addrs := make([]string, len(found))
	for i := range found {
		addrs[i] = known(found[i].Addr).String()
	}
	return strings.Join(addrs, ", ")
}
