package optimizer

import (
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/x86"
)

// The pieces of the detour template, machine code in the kernel's order (docs/spec
// 4.4). r15 ends up lowest, so that the stack holds a pt_regs.
var (
	tmplPushSS    = []byte{0x6A, 0x18}                            // push $0x18
	tmplPushSP    = []byte{0x54, 0x9C}                            // push %rsp; pushfq
	tmplReserve   = []byte{0x48, 0x83, 0xEC, 0x18}                // sub $24,%rsp: cs, ip, orig_ax
	tmplFrame     = []byte{0x48, 0x8D, 0x6C, 0x24, 0x01}          // lea 1(%rsp),%rbp
	tmplSecondArg = []byte{0x48, 0x89, 0xE6}                      // mov %rsp,%rsi
	tmplFlags     = []byte{0x48, 0x8B, 0x94, 0x24, 0x90, 0, 0, 0} // mov 0x90(%rsp),%rdx
	tmplToSS      = []byte{0x48, 0x89, 0x94, 0x24, 0xA0, 0, 0, 0} // mov %rdx,0xa0(%rsp)
	tmplToSP      = []byte{0x48, 0x89, 0x94, 0x24, 0x98, 0, 0, 0} // mov %rdx,0x98(%rsp)
	tmplSkip      = []byte{0x48, 0x83, 0xC4, 0x18}                // add $24,%rsp: orig_ax, ip, cs
	tmplSkipSP    = []byte{0x48, 0x83, 0xC4, 0x10}                // add $16,%rsp: flags, sp
	tmplSkipFlags = []byte{0x48, 0x83, 0xC4, 0x08}                // add $8,%rsp: flags
	tmplPopFlags  = []byte{0x9D}                                  // popfq
	tmplPush      = []byte{0x57, 0x56, 0x52, 0x51, 0x50, 0x41, 0x50, 0x41, 0x51, 0x41, 0x52, 0x41, 0x53, 0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57}
	tmplPop       = []byte{0x41, 0x5F, 0x41, 0x5E, 0x41, 0x5D, 0x41, 0x5C, 0x5D, 0x5B, 0x41, 0x5B, 0x41, 0x5A, 0x41, 0x59, 0x41, 0x58, 0x58, 0x59, 0x5A, 0x5E, 0x5F}
)

// Sizes of the places in the template that are filled in.
const (
	acSize  = 3  // clac, or a nop
	valSize = 10 // movabs $imm64,%rdi
)

// ACNop and ACClac are the instructions of the template at the place where the kernel closes user
// access: a nop on a CPU without SMAP, CLAC with SMAP.
var (
	ACNop  = [acSize]byte{0x0F, 0x1F, 0x00}
	ACClac = [acSize]byte{0x0F, 0x01, 0xCA}
)

// acOf reads the place from the kernel's own template: ACNop, ACClac or another
// nop of 3 bytes that boot has written for the CPU.
func acOf(v kimage.View) ([acSize]byte, bool) {
	var ac [acSize]byte
	syms := v.Lookup("optprobe_template_clac")
	if len(syms) == 0 || v.CodeAt(syms[0].Addr, ac[:]) != acSize {
		return ACNop, false
	}
	return ac, true
}

// Layout holds the offsets of parts of the template, in bytes from its start.
type Layout struct {
	// AC is the offset of CLAC or a nop, 3 bytes; -1 in profiles without.
	AC int
	// Arg is the offset of movabs $imm64,%rdi, which loads the address of the optimized probe; the
	// immediate is 2 bytes further.
	Arg int
	// Call is the offset of the call of the callback.
	Call int
	// End is the template's length, where the copied instructions begin.
	End int
}

// TemplateSize is the length of the detour template, where the copied
// instructions begin: 100 bytes in 6.1, 98 without the ss word, 95 without room
// for CLAC either, and 5 more with frame pointers.
func TemplateSize(c *profile.Config) int { return LayoutOf(c).End }

// LayoutOf is the layout of a profile's detour template.
func LayoutOf(c *profile.Config) Layout {
	var b [MaxDetour]byte
	return putTemplate(b[:], c, ACNop)
}

// SlotSize is the size of a slot of the detour buffers' cache
// (MAX_OPTINSN_SIZE): the template, the longest DCR and the jump back.
func SlotSize(c *profile.Config) int { return TemplateSize(c) + MaxRegion + x86.Rel32Size }

// putTemplate writes the template into b, with zeros in the places of the
// argument and the call.
func putTemplate(b []byte, c *profile.Config, ac [acSize]byte) (l Layout) {
	o := &c.Optimize
	n := 0
	put := func(when bool, code []byte) {
		if when {
			n += copy(b[n:], code)
		}
	}
	put(o.SSWord, tmplPushSS)
	put(true, tmplPushSP)
	l.AC = -1
	if o.CLAC {
		l.AC = n
	}
	put(o.CLAC, ac[:])
	put(true, tmplReserve)
	put(true, tmplPush)
	put(c.FramePointer, tmplFrame)
	put(true, tmplSecondArg)
	l.Arg, l.Call = n, n+valSize
	n += valSize + x86.Rel32Size
	put(true, tmplFlags)
	put(o.SSWord, tmplToSS)
	put(!o.SSWord, tmplToSP)
	put(true, tmplPop)
	put(true, tmplSkip)
	put(o.SSWord, tmplSkipSP)
	put(!o.SSWord, tmplSkipFlags)
	put(true, tmplPopFlags)
	l.End = n
	return l
}
