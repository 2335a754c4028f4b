package kimage

import (
	"cmp"

	"kprobelab/kimage/internal/infer"
	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// staticCallPatcher writes static-call sites and trampolines as the kernel
// does for a key's function (arch/x86/kernel/static_call.c).
type staticCallPatcher struct {
	img  *Image
	nops nops
	// zero is the code that replaces a call of ret0.
	zero  []byte
	ret0  x86.Addr
	retFn x86.Addr
	// inline has the code that stands for a call of each of inlineCalls.
	inline map[x86.Addr][]byte
	// thunkAt, when not nil, is the thunk for a return at an address, 0 for a
	// plain return; a conditional tail call of nothing goes to thunk, if there is one.
	thunkAt func(x86.Addr) x86.Addr
	thunk   x86.Addr
	// byKey are the sites of each key, gathered at the first use.
	byKey map[x86.Addr][]StaticCall
}

// retInsn stands for a tail call of nothing, where returns need no thunk.
var retInsn = []byte{0xc3, 0xcc, 0xcc, 0xcc, 0xcc}

// inlineCalls are the functions whose body is written in place of their call, by
// name: a warning is ud1 (%edx),%rdi (6.19 and later), and the unlocking of a
// spinlock on bare metal is movb $0,(%rdi) with two prefixes (7.3). No static
// call of an older kernel names them.
var inlineCalls = []struct {
	fn   string
	code []byte
}{
	{"__WARN_trap", []byte{0x67, 0x48, 0x0f, 0xb9, 0x3a}},
	{"__raw_callee_save___native_queued_spin_unlock", []byte{0x3e, 0x3e, 0xc6, 0x07, 0x00}},
}

// newStaticCalls makes the patcher for the processor. The kernel initialises
// static calls before it decides on return thunks, so a tail call of nothing is
// a plain return on every processor, unless it writes them again after that.
//
// A module's are written when it is loaded, and so by the thunk.
func (p *bootPatcher) newStaticCalls(o tableOwner) *staticCallPatcher {
	sc := &staticCallPatcher{img: p.img, nops: p.forms.nops, zero: p.forms.zero}
	sc.ret0, _ = p.img.symbolAddr("__static_call_return0")
	sc.retFn, _ = p.img.symbolAddr("__static_call_return")
	sc.inline = map[x86.Addr][]byte{}
	for _, c := range inlineCalls {
		if fn, ok := p.img.symbolAddr(c.fn); ok {
			sc.inline[fn] = c.code
		}
	}
	if p.forms.callsAgain || o.module != "" {
		sc.thunkAt, sc.thunk = p.returnThunkAt, p.returnThunk()
	}
	return sc
}

// site writes a site for the function that its key names now.
func (p *staticCallPatcher) site(c StaticCall) {
	if key := p.img.bytes(c.Key, 8); key != nil {
		p.write(c.Addr, opened.Abs64(key), c.Tail)
	}
}

func (p *staticCallPatcher) write(at, fn x86.Addr, tail bool) {
	text := p.img.bytes(at, 5)
	switch {
	case text == nil:
	case text[0] == 0x0f && text[1]>>4 == 8: // a conditional tail call (6.2, 6.1.y)
		p.jcc(at, fn)
	case fn == 0 && tail:
		p.ret(at, text)
	case fn == 0:
		copy(text, p.nops.atomic5)
	case !tail && fn == p.ret0:
		copy(text, p.zero)
	case !tail && p.inline[fn] != nil:
		copy(text, p.inline[fn])
	default:
		text[0] = 0xe8
		if tail {
			text[0] = 0xe9
		}
		le.PutUint32(text[1:], uint32(fn.Sub(at+5)))
	}
}

// ret writes a tail call of nothing.
func (p *staticCallPatcher) ret(at x86.Addr, text []byte) {
	copy(text, retInsn)
	if p.thunkAt == nil {
		return
	}
	if thunk := p.thunkAt(at); thunk != 0 {
		text[0] = 0xe9
		le.PutUint32(text[1:], uint32(thunk.Sub(at+5)))
	}
}

func (p *staticCallPatcher) jcc(at, fn x86.Addr) {
	text := p.img.bytes(at, 6)
	if fn == 0 {
		fn = cmp.Or(p.thunk, p.retFn)
	}
	if text != nil && fn != 0 {
		le.PutUint32(text[2:], uint32(fn.Sub(at+6)))
	}
}

// staticCallUpdate is a key's name, and the function that it calls from then
// on ("" none).
type staticCallUpdate struct{ key, fn string }

// preemptCalls lists the static calls that the scheduler updates at boot, by
// preemption model. The models full and lazy update none: they keep the compiled calls.
var preemptCalls = map[string][]staticCallUpdate{
	infer.PreemptNone: {
		{"cond_resched", "__cond_resched"},
		{"preempt_schedule", ""},
		{"preempt_schedule_notrace", ""},
		{"irqentry_exit_cond_resched", ""},
	},
	infer.PreemptVoluntary: {
		{"cond_resched", "__cond_resched"},
		{"might_resched", "__cond_resched"},
		{"preempt_schedule", ""},
		{"preempt_schedule_notrace", ""},
		{"irqentry_exit_cond_resched", ""},
	},
	infer.PreemptFull: nil,
	infer.PreemptLazy: nil,
}

// bootCalls are the static calls that boot updates on every machine (6.5 and later):
// the calls of a local APIC in memory, addressed physically, and of the idle loop
// without a driver. A key that an image does not have is skipped.
var bootCalls = []staticCallUpdate{
	{"apic_call_eoi", "native_apic_mem_eoi"},
	{"apic_call_native_eoi", "native_apic_mem_eoi"},
	{"apic_call_icr_read", "native_apic_icr_read"},
	{"apic_call_icr_write", "native_apic_icr_write"},
	{"apic_call_read", "native_apic_mem_read"},
	{"apic_call_write", "native_apic_mem_write"},
	{"apic_call_wait_icr_idle", "apic_mem_wait_icr_idle"},
	{"apic_call_send_IPI", "default_send_IPI_single_phys"},
	{"apic_call_send_IPI_all", "default_send_IPI_all"},
	{"apic_call_send_IPI_allbutself", "default_send_IPI_allbutself"},
	{"apic_call_send_IPI_mask", "default_send_IPI_mask_sequence_phys"},
	{"apic_call_send_IPI_mask_allbutself", "default_send_IPI_mask_allbutself_phys"},
	{"apic_call_send_IPI_self", "default_send_IPI_self"},
	{"x86_idle", "default_idle"},
}

// flatCalls replace the same calls on a machine with at most 8 processors, which a
// kernel addresses logically (to 6.11).
var flatCalls = []staticCallUpdate{
	{"apic_call_send_IPI", "default_send_IPI_single"},
	{"apic_call_send_IPI_mask", "flat_send_IPI_mask"},
	{"apic_call_send_IPI_mask_allbutself", "flat_send_IPI_mask_allbutself"},
}

// e400Idle is the idle loop of a processor with AMD's erratum 400 (to 6.8).
const e400Idle = "amd_e400_idle"

// update does what static_call_update does, for a key by its name. A key without a symbol
// and without a site has a trampoline all the same.
func (p *staticCallPatcher) update(name, fn string) {
	var target x86.Addr
	if fn != "" {
		var ok bool
		if target, ok = p.img.symbolAddr(fn); !ok {
			return
		}
	}
	tramp, _ := p.img.symbolAddr("__SCT__" + name)
	key, _ := p.img.staticCallKey(name)
	p.set(key, tramp, target)
}

// staticCallKey is the address of the key of that name. Without KALLSYMS_ALL keys have
// no symbols: then it is the one that a site names which calls the trampoline.
func (img *Image) staticCallKey(name string) (x86.Addr, bool) {
	if key, ok := img.symbolAddr("__SCK__" + name); ok {
		return key, true
	}
	tramp, ok := img.symbolAddr("__SCT__" + name)
	if !ok {
		return 0, false
	}
	key, ok := img.tables.keys[tramp]
	return key, ok
}

// set makes the key call fn: key, trampoline, sites. 0 is a key or a trampoline that is not known.
func (p *staticCallPatcher) set(key, tramp, fn x86.Addr) {
	if slot := p.img.bytes(key, 8); slot != nil {
		le.PutUint64(slot, uint64(fn))
	}
	if tramp != 0 {
		// Trampolines are written before the kernel decides on thunks, and
		// not again.
		early := *p
		early.thunkAt, early.thunk = nil, 0
		early.write(tramp, fn, true)
	}
	if key == 0 {
		return
	}
	if p.byKey == nil {
		p.byKey = map[x86.Addr][]StaticCall{}
		for _, c := range p.img.tables.staticCalls {
			p.byKey[c.Key] = append(p.byKey[c.Key], c)
		}
	}
	for _, c := range p.byKey[key] {
		p.site(c)
	}
}
