package patch

import (
	"cmp"
	"encoding/binary"

	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// StaticCall is a site of a static call.
type StaticCall struct {
	// Addr is the call or jump, Key the address of its key.
	Addr, Key x86.Addr
	// Tail is true for a jump in place of a call.
	Tail bool
}

// StaticCalls writes static-call sites and trampolines as the kernel
// does for a key's function (arch/x86/kernel/static_call.c).
type StaticCalls struct {
	Image opened.Image
	Forms *Forms
	// Ret0 and RetFn are the functions that return 0 and nothing.
	Ret0, RetFn x86.Addr
	// Inline has the code that stands for a call of each of InlineCalls.
	Inline map[x86.Addr][]byte
	// ThunkAt, when not nil, is the thunk for a return at an address, 0 for a
	// plain return; a conditional tail call of nothing goes to Thunk, if there is one.
	ThunkAt func(x86.Addr) x86.Addr
	Thunk   x86.Addr
	// sites lists all static calls; byKey are the ones of each key, gathered at the first use.
	sites func() []StaticCall
	byKey map[x86.Addr][]StaticCall
}

// RetInsn stands for a tail call of nothing, where returns need no thunk.
var RetInsn = []byte{0xc3, 0xcc, 0xcc, 0xcc, 0xcc}

// InlineCalls are the functions whose body is written in place of their call, by
// name: a warning is ud1 (%edx),%rdi (6.19 and later), and the unlocking of a
// spinlock on bare metal is movb $0,(%rdi) with two prefixes (7.3). No static
// call of an older kernel names them.
var InlineCalls = []struct {
	Fn   string
	Code []byte
}{
	{"__WARN_trap", []byte{0x67, 0x48, 0x0f, 0xb9, 0x3a}},
	{"__raw_callee_save___native_queued_spin_unlock", []byte{0x3e, 0x3e, 0xc6, 0x07, 0x00}},
}

// NewStaticCalls makes the writer of an image's static calls, which sites lists.
func NewStaticCalls(img opened.Image, f *Forms, sites func() []StaticCall) *StaticCalls {
	p := &StaticCalls{Image: img, Forms: f, Inline: map[x86.Addr][]byte{}, sites: sites}
	p.Ret0, _ = img.SymbolAddr("__static_call_return0")
	p.RetFn, _ = img.SymbolAddr("__static_call_return")
	for _, c := range InlineCalls {
		if fn, ok := img.SymbolAddr(c.Fn); ok {
			p.Inline[fn] = c.Code
		}
	}
	return p
}

// Site writes a site for the function that its key names now.
func (p *StaticCalls) Site(c StaticCall) {
	if key := p.Image.Bytes(c.Key, 8); key != nil {
		p.Write(c.Addr, opened.Abs64(key), c.Tail)
	}
}

// Write writes a call of fn, 0 for nothing; tail: a jump.
func (p *StaticCalls) Write(at, fn x86.Addr, tail bool) {
	text := p.Image.Bytes(at, 5)
	switch {
	case text == nil:
	case text[0] == 0x0f && text[1]>>4 == 8: // a conditional tail call (6.2, 6.1.y)
		p.jcc(at, fn)
	case fn == 0 && tail:
		p.ret(at, text)
	case fn == 0:
		copy(text, p.Forms.Nops.Atomic5)
	case !tail && fn == p.Ret0:
		copy(text, p.Forms.Zero)
	case !tail && p.Inline[fn] != nil:
		copy(text, p.Inline[fn])
	default:
		text[0] = 0xe8
		if tail {
			text[0] = 0xe9
		}
		binary.LittleEndian.PutUint32(text[1:], uint32(fn.Sub(at+5)))
	}
}

// ret writes a tail call of nothing.
func (p *StaticCalls) ret(at x86.Addr, text []byte) {
	copy(text, RetInsn)
	if p.ThunkAt == nil {
		return
	}
	if thunk := p.ThunkAt(at); thunk != 0 {
		text[0] = 0xe9
		binary.LittleEndian.PutUint32(text[1:], uint32(thunk.Sub(at+5)))
	}
}

func (p *StaticCalls) jcc(at, fn x86.Addr) {
	text := p.Image.Bytes(at, 6)
	if fn == 0 {
		fn = cmp.Or(p.Thunk, p.RetFn)
	}
	if text != nil && fn != 0 {
		binary.LittleEndian.PutUint32(text[2:], uint32(fn.Sub(at+6)))
	}
}

// Set makes the key call fn: key, trampoline, sites. 0 is a key or a trampoline that is not known.
func (p *StaticCalls) Set(key, tramp, fn x86.Addr) {
	if slot := p.Image.Bytes(key, 8); slot != nil {
		binary.LittleEndian.PutUint64(slot, uint64(fn))
	}
	if tramp != 0 {
		// Trampolines are written before the kernel decides on thunks, and
		// not again.
		early := *p
		early.ThunkAt, early.Thunk = nil, 0
		early.Write(tramp, fn, true)
	}
	if key == 0 {
		return
	}
	if p.byKey == nil {
		p.byKey = map[x86.Addr][]StaticCall{}
		for _, c := range p.sites() {
			p.byKey[c.Key] = append(p.byKey[c.Key], c)
		}
	}
	for _, c := range p.byKey[key] {
		p.Site(c)
	}
}
