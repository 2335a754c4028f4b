package kprobes

import "kprobelab/x86"

// recoverJumps puts back the saved bytes of every jump that overlaps b
// (__recover_optprobed_insn, docs/spec 1.5.1). While a jump is written or
// undone, its int3 is handled like every probe's.
func (v *liveView) recoverJumps(addr x86.Addr, b []byte) {
	if v.k.opt.patcher == nil || v.k.opt.patched == 0 {
		return
	}
	for i := -jumpTail; i < len(b); i++ {
		p := v.k.table.lookup(addr.Add(int64(i)))
		if p == nil {
			continue
		}
		if o := p.opt(); o != nil && o.patched && v.k.recovers(o) {
			restore(b, i, p.opcode, o.saved)
		}
	}
}

// recovers reports whether the kernel's analysis reads the original bytes under the jump.
func (k *Kprobes) recovers(o *optimized) bool {
	return !k.c.Optimize.RecoversUnlistedOnly || o.on == nil
}

// restore writes an opcode at b[i] and the tail after it, as far as b reaches.
func restore(b []byte, i int, opcode byte, tail [jumpTail]byte) {
	if i >= 0 {
		b[i] = opcode
	}
	for j, c := range tail {
		if at := i + 1 + j; at >= 0 && at < len(b) {
			b[at] = c
		}
	}
}

// setPatched notes whether a displacement follows a probed address.
func (k *Kprobes) setPatched(o *optimized, patched bool) {
	if o.patched == patched {
		return
	}
	o.patched = patched
	if patched {
		k.opt.patched++
	} else {
		k.opt.patched--
	}
}
