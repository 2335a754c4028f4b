package own

import (
	"encoding/binary"
	"errors"
	"fmt"

	"kprobelab/internal/engine"
	"kprobelab/kimage"
	"kprobelab/machine"
	"kprobelab/x86"
)

// At boot a kernel patches its own text, by functions that go through tables. They run here on a copy
// of the text as it stands in the file.

// appliers are these functions, by the kind of the sites.
var appliers = map[kimage.SiteKind]string{
	kimage.SiteParavirt: "apply_paravirt", kimage.SiteRetpoline: "apply_retpolines",
	kimage.SiteReturn: "apply_returns", kimage.SiteAlternative: "apply_alternatives",
}

// Applier is the name of the function that patches sites of a kind, "" for other kinds.
func Applier(kind kimage.SiteKind) string { return appliers[kind] }

// applyBudget is the number of instructions that one of them may take: there are tens of thousands of
// sites, whose instructions are all decoded.
const applyBudget = 2_000_000_000

// Patched is a text that the image's own functions have patched.
type Patched struct {
	k *Kernel
	// Failed says why a kind was not patched. The kinds after it are patched all the same.
	Failed map[kimage.SiteKind]error
}

// PatchText runs the functions. It fails if the machine or the image cannot be made ready.
func PatchText(s *kimage.SelfPatch) (*Patched, error) {
	e, err := engine.Named("")
	if err != nil {
		return nil, err
	}
	m, err := e.New(writable{s.Image}, &machine.Options{Budget: applyBudget, CPUModel: s.NearestCPU(e.CPUModels())})
	if err != nil {
		return nil, err
	}
	p := &Patched{k: &Kernel{img: s.Image, m: m, fns: map[string]x86.Addr{}}, Failed: map[kimage.SiteKind]error{}}
	if err := p.prepare(s); err != nil {
		p.Close()
		return nil, err
	}
	kinds := []kimage.SiteKind{kimage.SiteRetpoline, kimage.SiteReturn, kimage.SiteAlternative}
	if s.ParavirtLast() {
		kinds = append(kinds, kimage.SiteParavirt)
	} else {
		kinds = append([]kimage.SiteKind{kimage.SiteParavirt}, kinds...)
	}
	for _, kind := range kinds {
		if table := s.Table(kind); table.End > table.Start {
			if err := p.apply(kind, table); err != nil {
				p.Failed[kind] = err
			}
		}
	}
	return p, nil
}

// Close frees the machine.
func (p *Patched) Close() { p.k.m.Close() }

// Read reads patched text.
func (p *Patched) Read(at x86.Addr, b []byte) error { return p.k.m.ReadMem(at, b) }

func (p *Patched) apply(kind kimage.SiteKind, table x86.Range) error {
	name := appliers[kind]
	at := p.k.function(name)
	if at == 0 {
		return fmt.Errorf("%s: %w", name, ErrNotThere)
	}
	// From 6.13 on the third argument is a module, none here.
	if _, err := p.k.m.CallAddr(at, uint64(table.Start), uint64(table.End), 0); err != nil {
		return fmt.Errorf("%s: %w: %w", name, ErrNoAnswer, err)
	}
	return nil
}

// prepare sets the features and the thunk that boot decides on, and stand-ins for the code that
// makes processors see new text.
func (p *Patched) prepare(s *kimage.SelfPatch) error {
	at, ok := s.Capabilities()
	if !ok {
		return fmt.Errorf("the place of the processor's features: %w", ErrNotThere)
	}
	for _, f := range s.Features() {
		var b [1]byte
		place := at.Add(int64(f / 8))
		if err := p.k.m.ReadMem(place, b[:]); err != nil {
			return err
		}
		b[0] |= 1 << (f % 8)
		if err := p.k.m.WriteMem(place, b[:]); err != nil {
			return err
		}
	}
	if variable, thunk := s.ReturnThunk(); variable != 0 && thunk != 0 {
		if err := p.k.m.WriteMem(variable, binary.LittleEndian.AppendUint64(nil, uint64(thunk))); err != nil {
			return err
		}
	}
	if err := p.pickNops(s); err != nil {
		return err
	}
	return p.standIn()
}

// pickNops sets the no-operations that a kernel to 5.12 picks by processor.
func (p *Patched) pickNops(s *kimage.SelfPatch) error {
	table, ok := s.IdealNops()
	at := only(p.k.img.Lookup("ideal_nops"))
	from := only(p.k.img.Lookup(table))
	if !ok || at == 0 || from == 0 {
		return nil
	}
	return p.k.m.WriteMem(at, binary.LittleEndian.AppendUint64(nil, uint64(from)))
}

// standIn writes over what copies text and makes the processor see it.
func (p *Patched) standIn() error {
	// mov %rdx,%rcx; rep movsb; ret
	copies := []byte{0x48, 0x89, 0xd1, 0xf3, 0xa4, 0xc3}
	var errs []error
	for name, code := range map[string][]byte{"text_poke_early": copies, "static_call_force_reinit": {0xc3}} {
		if at := p.k.function(name); at != 0 {
			errs = append(errs, p.k.m.WriteText(at, code))
		}
	}
	// One that also makes the processor see the text does what this one does.
	if from, to := p.k.function("optimize_nops_inplace"), p.k.function("optimize_nops"); from != 0 && to != 0 {
		errs = append(errs, p.k.m.WriteText(from, append(load(0xb8, to), 0xff, 0xe0)))
	}
	return errors.Join(errs...)
}

// writable is an image whose code can be written.
type writable struct{ *kimage.Image }

// Segments returns the image's segments, all of them writable.
func (w writable) Segments() []kimage.Segment {
	list := w.Image.Segments()
	for i := range list {
		list[i].Write = true
	}
	return list
}
