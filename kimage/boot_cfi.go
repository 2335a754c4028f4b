package kimage

import (
	"bytes"
	"slices"

	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// A kernel that is built for FineIBT rewrites Clang's checks of indirect calls (kCFI) on every boot
// (__apply_fineibt, 6.2 and later). Before that they are
//
//	__cfi_fn: mov $hash,%eax	b8 HASH, 16 bytes before fn
//	a caller: mov $-hash,%r10d	41 ba -HASH, 14 bytes before the call of the retpoline
//	          add -15(%r11),%r10d
//	          je . + 4		74 02
//	          ud2			0f 0b
//
// and stay so where the processor has no IBT, but for the jump. Where it has, the callee checks. Each hash is
// another one on each boot, and keeps here what the compiler wrote.

// The places of the parts.
const (
	cfiPreamble = 16 // before the function
	cfiCaller   = 14 // before the site of the retpoline
	cfiJump     = 10 // the je, in a caller
)

// cfiNotTaken is the code that some releases write over the je and the ud2: jne . + 3 and test $0xd6,%al, whose
// last byte is an invalid instruction.
var cfiNotTaken = []byte{0x75, 0x01, 0xa8, 0xd6}

// CFIHash is the place of a hash that each boot makes anew.
type CFIHash struct {
	Addr x86.Addr
	// Negative: a caller has the hash's negative.
	Negative bool
}

// CFIHashes lists the places in the kernel's text of the hashes that each boot makes anew; none where the
// kernel is not built for FineIBT. A function that nothing calls indirectly has lost its hash.
func (img *Image) CFIHashes() []CFIHash {
	return slices.DeleteFunc(slices.Clone(img.cfiHashes), func(h CFIHash) bool {
		text := img.bytes(h.Addr, 4)
		return text == nil || le.Uint32(text) == 0
	})
}

// cfiPreambleAt reports whether a mov of a hash to a register stands at addr.
func (img *Image) cfiPreambleAt(addr x86.Addr) bool {
	text := img.bytes(addr, 5)
	return text != nil && text[0]&^7 == 0xb8 && le.Uint32(text[1:]) != 0
}

// cfiFunctions are the addresses of the hashes before functions.
func (o tableOwner) cfiFunctions() (list []x86.Addr) {
	at, data := o.table(cfiSites)
	for off := 0; off+4 <= len(data); off += 4 {
		if addr := opened.Rel32(at.Add(int64(off)), data[off:]); o.img.cfiPreambleAt(addr) {
			list = append(list, addr)
		}
	}
	return list
}

// cfiCallers are the addresses of the checks before retpolines.
func (o tableOwner) cfiCallers() (list []x86.Addr) {
	at, data := o.table(retpolineSites)
	for off := 0; off+4 <= len(data); off += 4 {
		addr := opened.Rel32(at.Add(int64(off)), data[off:]) - cfiCaller
		text := o.img.bytes(addr, cfiCaller)
		if text != nil && text[0] == 0x41 && text[1] == 0xba && le.Uint32(text[2:]) != 0 {
			list = append(list, addr)
		}
	}
	return list
}

// cfi rewrites the checks.
func (p *bootPatcher) cfi(o tableOwner) {
	switch {
	case !p.forms.rewritesCFI:
	case p.forms.fineIBT != nil:
		p.fineIBT(o)
	default:
		for _, addr := range o.cfiFunctions() {
			p.hashed(CFIHash{Addr: addr + 1})
		}
		for _, addr := range o.cfiCallers() {
			p.hashed(CFIHash{addr + 2, true})
			if p.forms.cfiNotTaken {
				copy(p.img.bytes(addr+cfiJump, len(cfiNotTaken)), cfiNotTaken)
			}
		}
	}
}

func (p *bootPatcher) hashed(h CFIHash) { p.img.cfiHashes = append(p.img.cfiHashes, h) }

// fineIBT has callees check, and callers pass on the hash.
func (p *bootPatcher) fineIBT(o tableOwner) {
	f := p.forms.fineIBT
	for _, addr := range o.cfiFunctions() {
		entry := addr + cfiPreamble
		if f.entriesOnly && !p.isEndbr(entry) {
			p.hashed(CFIHash{Addr: addr + 1})
			continue
		}
		p.writeHashed(addr, f.callee, le.Uint32(p.img.bytes(addr+1, 4)))
		if p.forms.sealsCFI {
			p.poison(entry)
		}
	}
	for _, addr := range o.cfiCallers() {
		hash := -le.Uint32(p.img.bytes(addr+2, 4))
		code := f.caller
		if len(code.text) > cfiCaller {
			code = p.paranoidCaller(addr, code)
		}
		p.writeHashed(addr, code, hash)
	}
}

// paranoidCaller is a caller's code that has the indirect branch in it, for the branch that stands there.
func (p *bootPatcher) paranoidCaller(addr x86.Addr, code hashedCode) hashedCode {
	branch := p.img.bytes(addr+cfiCaller, len(code.text)-cfiCaller)
	if branch == nil || branch[len(branch)-5] != x86.Jmp32 {
		return code
	}
	const tail = 4
	text := slices.Clone(code.text)
	copy(text[len(text)-tail:], []byte{0x41, 0xff, 0xe3, x86.Int3})
	return hashedCode{text, code.hash}
}

// writeHashed writes code with a hash in it.
func (p *bootPatcher) writeHashed(addr x86.Addr, code hashedCode, hash uint32) {
	text := p.img.bytes(addr, len(code.text))
	if text == nil {
		return
	}
	copy(text, code.text)
	le.PutUint32(text[code.hash:], hash)
	p.hashed(CFIHash{Addr: addr.Add(int64(code.hash))})
}

// isEndbr reports whether an ENDBR, or what replaces one, stands at addr.
func (p *bootPatcher) isEndbr(addr x86.Addr) bool {
	text := p.img.bytes(addr, len(opened.Endbr64))
	return text != nil && (bytes.Equal(text, opened.Endbr64) || bytes.Equal(text, p.endbrPoison()))
}

// sealCFI takes the hash from a function that nothing calls indirectly.
func (p *bootPatcher) sealCFI(fn x86.Addr) {
	addr, hash := fn-cfiPreamble, 1
	switch f := p.forms.fineIBT; {
	case !p.forms.sealsCFI:
		return
	case f != nil:
		if p.forms.sealsPreamblesOnly && !p.isEndbr(addr) {
			return
		}
		p.poison(addr)
		hash = f.callee.hash
	case p.forms.sealsPreamblesOnly && !p.img.cfiPreambleAt(addr):
		return
	}
	if text := p.img.bytes(addr.Add(int64(hash)), 4); text != nil {
		clear(text)
	}
}
