package kimage

import "kprobelab/x86"

// paravirtSite is one struct paravirt_patch_site: a call through pv_ops.
type paravirtSite struct {
	addr x86.Addr
	// op is the index of the pointer in pv_ops.
	op  int
	len int
}

// paravirtSites reads the owner's table (to 6.6). An entry is 16 bytes, the
// last one may lack its padding.
func (o tableOwner) paravirtSites() []paravirtSite {
	_, data := o.table(".parainstructions", "__parainstructions", "__parainstructions_end")
	var list []paravirtSite
	for off := 0; off+10 <= len(data); off += 16 {
		s := paravirtSite{addr: abs64(data[off:]), op: int(data[off+8]), len: int(data[off+9])}
		if !o.img.inExec(s.addr) || o.img.bytes(s.addr, s.len) == nil {
			o.img.ignore(".parainstructions")
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

// nativeInsns is what releases to 5.11 write in place of a call of the native
// operation: the instruction itself. Later ones have alternatives for that.
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
	"native_vcpu_is_preempted": {0x31, 0xc0},

	"__raw_callee_save___native_queued_spin_unlock": {0xc6, 0x07, 0x00},
	"__raw_callee_save___native_vcpu_is_preempted":  {0x31, 0xc0},
}

// paravirtPatcher makes calls through pv_ops direct.
type paravirtPatcher struct {
	img  *Image
	nops nops
	ops  x86.Addr
	// insns are instructions by the address of the function they replace.
	insns map[x86.Addr][]byte
	nop   x86.Addr
}

// newParavirtPatcher returns nil for an image without pv_ops.
func newParavirtPatcher(img *Image, n nops, inline bool) *paravirtPatcher {
	ops, ok := img.symbolAddr("pv_ops")
	if !ok && img.bounds.onlyText {
		ops, ok = img.paravirtOps()
	}
	if !ok {
		return nil
	}
	p := &paravirtPatcher{img: img, nops: n, ops: ops, insns: make(map[x86.Addr][]byte)}
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

// paravirtOps is pv_ops by the calls through it: each names the address of its
// operation, and the table its index.
func (img *Image) paravirtOps() (x86.Addr, bool) {
	votes := map[x86.Addr]int{}
	var best x86.Addr
	for _, s := range (tableOwner{img: img}).paravirtSites() {
		text := img.bytes(s.addr, s.len)
		var slot x86.Addr
		switch {
		case len(text) >= 7 && text[0] == 0xff && text[1]&^0x30 == 0x04 && text[2] == 0x25: // through an absolute address
			slot = x86.Addr(int32(le.Uint32(text[3:])))
		case len(text) >= 6 && text[0] == 0xff && text[1]&^0x30 == 0x05: // relative to what follows
			slot = rel32(s.addr+6, text[2:])
		default:
			continue
		}
		ops := slot - x86.Addr(8*s.op)
		if votes[ops]++; votes[ops] > votes[best] {
			best = ops
		}
	}
	return best, best != 0
}

// patch writes one site: nothing, an instruction, or a direct call, and then
// nops. A missing operation traps.
func (p *paravirtPatcher) patch(s paravirtSite) {
	text, slot := p.img.bytes(s.addr, s.len), p.img.bytes(p.ops+x86.Addr(8*s.op), 8)
	if text == nil || slot == nil {
		return
	}
	n, target := 0, abs64(slot)
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
