package kimage

import (
	"errors"
	"fmt"
	"slices"

	"kprobelab/decoder"
	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// PatchedKinds are the kinds of sites that boot patches once, by functions of the kernel that go
// through a table, in the order in which SelfPatch does it.
var PatchedKinds = []SiteKind{SiteParavirt, SiteRetpoline, SiteReturn, SiteAlternative}

// SelfPatch holds an image for a kernel that patches its own text: the text as it stands in the
// file, and the choices that boot makes before it patches.
type SelfPatch struct {
	*Image
	p *bootPatcher
}

// ErrNoFile: the image has no file from which it could be read again.
var ErrNoFile = errors.New("the image was not read from a file of its own")

// SelfPatch reads the image again, without patches.
func (img *Image) SelfPatch() (*SelfPatch, error) {
	if img.path == "" || img.kind != KindKernel || img.Core() != nil {
		return nil, fmt.Errorf("%s: %w", img.name, ErrNoFile)
	}
	o := img.opts
	o.NoBoot, o.Measure, o.Modules, o.Package, o.LiveText, o.Profile = true, nil, nil, "", "", img.profile
	raw, err := Open(img.path, &o)
	if err != nil {
		return nil, err
	}
	p, err := raw.newBootPatcher()
	if err != nil {
		return nil, err
	}
	return &SelfPatch{raw, p}, nil
}

// Table returns the range of the table of a kind's sites; it is empty if there is none.
func (s *SelfPatch) Table(kind SiteKind) x86.Range {
	t := map[SiteKind]*tableName{
		SiteParavirt: paraInstructions, SiteRetpoline: retpolineSites, SiteReturn: returnSites, SiteAlternative: altInstructions,
	}[kind]
	if t == nil {
		return x86.Range{}
	}
	at, data := tableOwner{img: s.Image}.table(t)
	return x86.Range{Start: at, End: at.Add(int64(len(data)))}
}

// ParavirtLast: the kernel patches paravirt calls after the alternatives (to 5.12).
func (s *SelfPatch) ParavirtLast() bool { return s.p.early }

// IdealNops returns the name of the table of no-operations that the kernel picks for the processor;
// false if it picks none (from 5.13 on).
func (s *SelfPatch) IdealNops() (table string, picks bool) {
	if k8Nops(s.p.cpu) {
		return "k8_nops", s.p.early
	}
	return "p6_nops", s.p.early
}

// Features are the numbers of the features that the kernel finds or decides on.
func (s *SelfPatch) Features() (list []int) {
	for f, on := range s.p.feats.has {
		if on {
			list = append(list, int(f))
		}
	}
	slices.Sort(list)
	return list
}

// ReturnThunk returns the address of the variable x86_return_thunk and the value to store there; 0
// if there is none.
func (s *SelfPatch) ReturnThunk() (variable, thunk x86.Addr) {
	variable, _ = s.symbolAddr("x86_return_thunk")
	return variable, s.p.returnThunk()
}

// Capabilities returns the address of the kernel's features, a bit each. It reads the code that
// tests them: a jump that an alternative replaces leads to a test of the bit (static_cpu_has). A
// kernel may be built without such jumps (X86_FAST_FEATURE_TESTS); then the function that patches
// alternatives still tests a bit.
func (s *SelfPatch) Capabilities() (x86.Addr, bool) {
	votes := map[x86.Addr]int{}
	list, _ := tableOwner{img: s.Image}.alternatives()
	for _, a := range list {
		text := s.bytes(a.addr, 5)
		if text == nil || text[0] != x86.Jmp32 {
			continue
		}
		at := opened.Rel32(a.addr+5, text[1:])
		var tested x86.Addr
		var bit byte
		switch b := s.bytes(at, 8); {
		case b == nil || b[0] != 0xf6: // test $bit,byte
			continue
		case b[1] == 0x05:
			tested, bit = opened.Rel32(at+7, b[2:]), b[6]
		case b[1] == 0x04 && b[2] == 0x25:
			tested, bit = x86.Addr(int32(le.Uint32(b[3:]))), b[7]
		}
		if bit == 1<<(a.feature%8) {
			votes[tested-x86.Addr(a.feature/8)]++
		}
	}
	var best x86.Addr
	for at, n := range votes {
		if n > votes[best] || n == votes[best] && at < best {
			best = at
		}
	}
	if len(votes) == 0 {
		best = s.bitTestedIn("apply_alternatives")
	}
	return best, best != 0
}

// bitTestedIn returns the address of the memory in which a function tests a bit whose number is in
// a register (bt); 0 if there is none.
func (img *Image) bitTestedIn(function string) (at x86.Addr) {
	const bt = 0xa3
	img.Walk(function, func(from x86.Addr, i *decoder.Inst) bool {
		const absolute = 0x25 // the SIB byte of an address alone
		switch {
		case i.Encoding != decoder.Enc0F || i.Opcode != bt:
		case i.RIPRelative:
			at = from.Add(int64(i.Length) + int64(i.Disp))
		case i.HasSIB && i.SIB == absolute && i.ModRM>>6 == 0:
			at = x86.Addr(int64(i.Disp))
		}
		return at == 0
	})
	return at
}

// Patch patches the text by the rules here, as far as those kinds go.
func (s *SelfPatch) Patch() {
	o := tableOwner{img: s.Image}
	if !s.p.early {
		s.p.paravirt(o)
	}
	s.p.retpolines(o)
	s.p.returns(o)
	s.p.applyAlternatives(o)
	if s.p.early {
		s.p.paravirt(o)
	}
}
