package kimage

import (
	"bytes"
	"cmp"

	"kprobelab/kimage/evidence"
	"kprobelab/kimage/internal/infer"
	"kprobelab/kimage/internal/opened"
)

// hashedCode is code in which a hash stands.
type hashedCode struct {
	text []byte
	hash int
}

// fineIBT is the code of FineIBT, from the image's own data.
type fineIBT struct {
	callee, caller hashedCode
	// entriesOnly: only functions that begin with an ENDBR get it, which it covers (6.15 and later).
	entriesOnly bool
}

// hashHere stands for the hash in the image's code.
var hashHere = []byte{0x78, 0x56, 0x34, 0x12}

// The beginnings of the code, and how long it is.
var (
	calleeForms = []struct {
		begin []byte
		size  int
	}{
		{[]byte{0xf3, 0x0f, 0x1e, 0xfa, 0x2d}, 20},             // opened.Endbr64; sub $hash,%eax; jne; nopl
		{[]byte{0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x81, 0xea}, 16}, // opened.Endbr64; sub $hash,%r10d; je; ud2; nop
	}
	callerForms = []struct {
		begin, next []byte
		size        int
		paranoid    bool
	}{
		{[]byte{0xb8}, []byte{0x41, 0x3b, 0x43, 0xf5}, 20, true},        // cmp -11(%r11),%eax; cs lea; jne; cs call *%r11
		{[]byte{0xb8}, []byte{0x4d, 0x8d, 0x5b, 0xf0}, 14, false},       // lea -16(%r11),%r11; nop
		{[]byte{0x41, 0xba}, []byte{0x49, 0x83, 0xeb, 0x10}, 14, false}, // sub $16,%r11; nop
	}
)

// codeWithHash finds code in the image's data by its beginning and what follows the hash.
func (img *Image) codeWithHash(begin, next []byte, size int) (hashedCode, bool) {
	s := img.section(".rodata")
	if s == nil {
		return hashedCode{}, false
	}
	at := bytes.Index(s.Data, bytes.Join([][]byte{begin, hashHere, next}, nil))
	if at < 0 || at+size > len(s.Data) {
		return hashedCode{}, false
	}
	return hashedCode{s.Data[at : at+size], len(begin)}, true
}

// findFineIBT finds the image's code of FineIBT. A processor without FRED has callers check, too, where the
// release can.
func (p *bootPatcher) findFineIBT() *fineIBT {
	for _, callee := range calleeForms {
		code, ok := p.img.codeWithHash(callee.begin, nil, callee.size)
		if !ok {
			continue
		}
		for _, caller := range callerForms {
			if caller.paranoid && p.cpu.Flags["fred"] {
				continue
			}
			if c, ok := p.img.codeWithHash(caller.begin, caller.next, caller.size); ok {
				return &fineIBT{code, c, callee.size > cfiPreamble}
			}
		}
	}
	return nil
}

// decideCFI finds how the image's kernel rewrites the checks of indirect calls.
func (p *bootPatcher) decideCFI() {
	if len((tableOwner{img: p.img}).bytesOf(cfiSites)) == 0 {
		return
	}
	b, f := p.img.banner(), &p.forms
	f.rewritesCFI, f.sealsCFI, f.sealsPreamblesOnly = true, b.Since(6, 5), b.Since(6, 15)
	if p.cpu.Flags["ibt"] && p.chooseCFI() == cfiChosen {
		if f.fineIBT = p.findFineIBT(); f.fineIBT != nil {
			p.say(factCFI, evidence.Says(cfiByCallees, "its code in .rodata, and the processor has IBT", evidence.Coded))
			return
		}
	}
	witnesses := []evidence.Witness{evidence.Says(cfiStays, "release "+cmp.Or(b.Release, "not known"), evidence.Dated)}
	if b.Since(7, 2) {
		witnesses[0].Value = cfiFallsThrough
	}
	switch where, searched := p.img.holds(cfiNotTaken, "cfi_enable_callers", "__apply_fineibt", "alternative_instructions"); {
	case where != "":
		witnesses = append(witnesses, evidence.Says(cfiFallsThrough, "its bytes in "+where, evidence.Coded))
	case searched:
		witnesses = append(witnesses, evidence.Says(cfiStays, "its bytes are not in the functions that patch them", evidence.Coded))
	}
	f.cfiNotTaken = p.say(factCFI, witnesses...) == cfiFallsThrough
}

// chooseCFI returns the kernel's default: by the processor (cfiChosen), or kCFI (cfiFixed).
func (p *bootPatcher) chooseCFI() string {
	value := func(chosen bool) string {
		if chosen {
			return cfiChosen
		}
		return cfiFixed
	}
	witnesses := []evidence.Witness{evidence.Says(cfiChosen, "release "+cmp.Or(p.img.banner().Release, "not known"), evidence.Dated)}
	if at, ok := p.img.symbolAddr("cfi_mode"); ok {
		if mode := p.img.bytes(at, 4); mode != nil {
			witnesses = append(witnesses, evidence.Says(value(le.Uint32(mode) == 0), "the first value of cfi_mode", evidence.Coded))
		}
	}
	if v := p.img.facts.Value(infer.OptionCFIAuto); v != "" {
		witnesses = append(witnesses, evidence.Says(value(v == "y"), infer.OptionCFIAuto+"="+v, evidence.Configured))
	}
	return p.say(factCFIMode, witnesses...)
}

// holds reports where bytes stand: in one of the functions, or in the data that code reads; searched is
// false where the image has none of the functions, or no such data.
func (img *Image) holds(code []byte, functions ...string) (where string, searched bool) {
	for _, name := range functions {
		for _, s := range img.Lookup(name) {
			searched = true
			if bytes.Contains(img.bytes(s.Addr, int(min(s.Size, 4*opened.MaxSearched))), code) {
				return name, true
			}
		}
	}
	s := img.section(".rodata")
	if s == nil || !searched {
		return "", false
	}
	if bytes.Contains(s.Data, code) {
		return s.Name, true
	}
	return "", true
}
