package kprobes

import "kprobelab/x86"

// recoverJumps puts the saved bytes in the place of every jump that overlaps b
// (__recover_optprobed_insn, docs/spec 1.5.1). The int3 of one that is being written
// or undone is a probe's like any other.
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

// recovers: what the jump hides is known to the kernel's analysis.
func (k *Kprobes) recovers(o *optimized) bool {
	return !k.c.Optimize.RecoversUnlistedOnly || o.on == nil
}

// restore writes an opcode at b[i] and the tail behind it, as far as they lie
// in b.
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

// setPatched notes that a displacement stands behind a probed address, or no
// longer does.
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
