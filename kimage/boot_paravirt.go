package kimage

import (
	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// paravirtSite is one struct paravirt_patch_site: a call through a table of
// operations, pv_ops; to 4.19, one of several.
type paravirtSite struct {
	addr x86.Addr
	len  int
}

// paravirtSites reads the owner's table (to 6.6). An entry is 16 bytes, the
// last one may lack its padding.
func (o tableOwner) paravirtSites() []paravirtSite {
	_, data := o.table(paraInstructions)
	var list []paravirtSite
	for off := 0; off+10 <= len(data); off += 16 {
		s := paravirtSite{addr: opened.Abs64(data[off:]), len: int(data[off+9])}
		if !o.img.inExec(s.addr) || o.img.bytes(s.addr, s.len) == nil {
			o.img.ignore(paraInstructions.section, s.addr)
			continue
		}
		list = append(list, s)
	}
	return list
}

func (img *Image) readParavirtSites(o tableOwner) {
	for _, s := range o.paravirtSites() {
		img.tables.addSite(SiteParavirt, s.addr, s.len)
	}
}

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

// paravirtPatcher makes calls of operations direct.
type paravirtPatcher struct {
	img  *Image
	nops nops
	// insns are instructions by the address of the function they replace.
	insns map[x86.Addr][]byte
	nop   x86.Addr
}

func newParavirtPatcher(img *Image, n nops, inline bool) *paravirtPatcher {
	p := &paravirtPatcher{img: img, nops: n, insns: make(map[x86.Addr][]byte)}
	p.nop, _ = img.symbolAddr("_paravirt_nop")
	if inline {
		for name, insn := range nativeInsns {
			for _, s := range img.Lookup(name) {
				p.insns[s.Addr] = insn
			}
		}
	}
	return p
}

// slot returns the address of the pointer to the operation that a site calls: the
// site's call or jump names it. (The site's number would be its index, in a table
// that has had several forms.)
func (s paravirtSite) slot(text []byte) (x86.Addr, bool) {
	switch {
	case len(text) >= 7 && text[0] == 0xff && text[1]&^0x30 == 0x04 && text[2] == 0x25: // through an absolute address
		return x86.Addr(int32(le.Uint32(text[3:]))), true
	case len(text) >= 6 && text[0] == 0xff && text[1]&^0x30 == 0x05: // relative to what follows
		return opened.Rel32(s.addr+6, text[2:]), true
	}
	return 0, false
}

// patch writes one site: nothing, an instruction, or a direct call, and then
// nops. A missing operation traps.
func (p *paravirtPatcher) patch(s paravirtSite) {
	text := p.img.bytes(s.addr, s.len)
	at, ok := s.slot(text)
	slot := p.img.bytes(at, 8)
	if !ok || slot == nil {
		return
	}
	n, target := 0, opened.Abs64(slot)
	insn, inline := p.insns[target]
	switch {
	case target == 0:
		n = copy(text, []byte{0x0f, 0x0b})
	case target == p.nop:
	case inline && len(insn) <= len(text):
		n = copy(text, insn)
	case len(text) >= 5:
		// A jump through memory (the return to user mode) stays a jump.
		if jump := text[0] == 0xff && text[1]&0x38 == 0x20; jump {
			text[0] = 0xe9
		} else {
			text[0] = 0xe8
		}
		le.PutUint32(text[1:], uint32(target.Sub(s.addr+5)))
		n = 5
	default:
		return
	}
	p.nops.fill(text[n:])
}
