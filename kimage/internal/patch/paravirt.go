package patch

import (
	"encoding/binary"

	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// nativeInsns maps a native operation to the instruction that releases to 5.11
// write in place of a call of it. Later releases have alternatives for that.
var nativeInsns = map[string][]byte{
	"native_irq_disable":       {0xfa},
	"native_irq_enable":        {0xfb},
	"native_save_fl":           {0x9c, 0x58},
	"native_restore_fl":        {0x57, 0x9d},
	"native_read_cr2":          {0x0f, 0x20, 0xd0},
	"__native_read_cr3":        {0x0f, 0x20, 0xd8},
	"native_write_cr3":         {0x0f, 0x22, 0xdf},
	"native_wbinvd":            {0x0f, 0x09},
	"native_swapgs":            {0x0f, 0x01, 0xf8},
	"native_usergs_sysret64":   {0x0f, 0x01, 0xf8, 0x48, 0x0f, 0x07},
	"_paravirt_ident_64":       {0x48, 0x89, 0xf8},
	"_paravirt_ident_32":       {0x89, 0xf8},
	"native_vcpu_is_preempted": {0x31, 0xc0},

	"__raw_callee_save___native_queued_spin_unlock": {0xc6, 0x07, 0x00},
	"__raw_callee_save___native_vcpu_is_preempted":  {0x31, 0xc0},
}

// Paravirt makes calls of operations direct.
type Paravirt struct {
	Image opened.Image
	Nops  Nops
	// Insns are instructions by the address of the function that they replace; Nop is the function that does nothing.
	Insns map[x86.Addr][]byte
	Nop   x86.Addr
}

// NewParavirt makes the patcher of an image. inline: calls of native operations become their instructions.
func NewParavirt(img opened.Image, n Nops, inline bool) *Paravirt {
	p := &Paravirt{Image: img, Nops: n, Insns: make(map[x86.Addr][]byte)}
	p.Nop, _ = img.SymbolAddr("_paravirt_nop")
	if inline {
		for name, insn := range nativeInsns {
			for _, s := range img.Lookup(name) {
				p.Insns[s.Addr] = insn
			}
		}
	}
	return p
}

// ParavirtSlot returns the address of the pointer to the operation that a site calls: the
// site's call or jump names it. (The site's number would be its index, in a table
// that has had several forms.)
func ParavirtSlot(at x86.Addr, text []byte) (x86.Addr, bool) {
	switch {
	case len(text) >= 7 && text[0] == 0xff && text[1]&^0x30 == 0x04 && text[2] == 0x25: // through an absolute address
		return x86.Addr(int32(binary.LittleEndian.Uint32(text[3:]))), true
	case len(text) >= 6 && text[0] == 0xff && text[1]&^0x30 == 0x05: // relative to what follows
		return opened.Rel32(at+6, text[2:]), true
	}
	return 0, false
}

// Patch writes the site of length bytes at an address: nothing, an instruction, or a direct call, and then
// nops. A missing operation traps.
func (p *Paravirt) Patch(addr x86.Addr, length int) {
	text := p.Image.Bytes(addr, length)
	at, ok := ParavirtSlot(addr, text)
	slot := p.Image.Bytes(at, 8)
	if !ok || slot == nil {
		return
	}
	n, target := 0, opened.Abs64(slot)
	insn, inline := p.Insns[target]
	switch {
	case target == 0:
		n = copy(text, []byte{0x0f, 0x0b})
	case target == p.Nop:
	case inline && len(insn) <= len(text):
		n = copy(text, insn)
	case len(text) >= 5:
		// A jump through memory (the return to user mode) stays a jump.
		if jump := text[0] == 0xff && text[1]&0x38 == 0x20; jump {
			text[0] = 0xe9
		} else {
			text[0] = 0xe8
		}
		binary.LittleEndian.PutUint32(text[1:], uint32(target.Sub(addr+5)))
		n = 5
	default:
		return
	}
	p.Nops.Fill(text[n:])
}
