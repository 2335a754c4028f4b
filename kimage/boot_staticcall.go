package kimage

import (
	"kprobelab/kimage/internal/infer"
	"kprobelab/kimage/internal/patch"
	"kprobelab/x86"
)

// staticCalls writes an image's static calls, and finds their keys by name.
type staticCalls struct {
	*patch.StaticCalls
	img *Image
}

// newStaticCalls makes the patcher for the processor. The kernel initialises
// static calls before it decides on return thunks, so a tail call of nothing is
// a plain return on every processor, unless it writes them again after that.
//
// A module's are written when it is loaded, and so by the thunk.
func (p *bootPatcher) newStaticCalls(o tableOwner) *staticCalls {
	sc := &staticCalls{patch.NewStaticCalls(inside{p.img}, &p.forms.Forms, p.img.patchedCalls), p.img}
	if p.forms.callsAgain || o.module != "" {
		sc.ThunkAt, sc.Thunk = p.returnThunkAt, p.returnThunk()
	}
	return sc
}

// patchedCalls lists the static calls as the patcher takes them.
func (img *Image) patchedCalls() []patch.StaticCall {
	list := make([]patch.StaticCall, len(img.tables.staticCalls))
	for i, c := range img.tables.staticCalls {
		list[i] = patch.StaticCall(c)
	}
	return list
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
func (p *staticCalls) update(name, fn string) {
	var target x86.Addr
	if fn != "" {
		var ok bool
		if target, ok = p.img.symbolAddr(fn); !ok {
			return
		}
	}
	tramp, _ := p.img.symbolAddr("__SCT__" + name)
	key, _ := p.img.staticCallKey(name)
	p.Set(key, tramp, target)
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
