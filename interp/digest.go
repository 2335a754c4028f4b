package interp

import (
	"encoding/binary"
	"hash"
	"kprobelab/internal/contract"
	"math/bits"
	"unsafe"
)

func (e *engine) Digest(w hash.Hash) {
	put := func(list ...any) {
		for _, v := range list {
			_ = binary.Write(w, binary.LittleEndian, v) // a hash does not fail
		}
	}
	for _, c := range e.cpus {
		put(c.Regs(), c.x, c.mxcsr, c.fs, c.gs, c.kernelGS, c.sys.cr, c.single)
	}
	var zero page
	for _, r := range e.regions {
		for i, p := range r.pages {
			if p != nil && *p != zero {
				put(uint64(r.Start), uint64(i), p.sum())
			}
		}
	}
}

// sum is a digest of a page, in four lanes as in XXH64. A change of a word always changes its lane.
// It is made after each step that is shown, in a browser too, where SHA-256 of all pages would take
// longer than the step; a forged digest would have no use.
func (p *page) sum() (lanes [4]uint64) {
	const prime1, prime2 = 0x9e3779b185ebca87, 0xc2b2ae3d27d4eb4f
	words := (*[pageSize / 8]uint64)(unsafe.Pointer(p))
	a, b, c, d := uint64(1), uint64(2), uint64(3), uint64(4)
	for i := 0; i < len(words); i += 4 {
		a = bits.RotateLeft64(a+words[i]*prime2, 31) * prime1
		b = bits.RotateLeft64(b+words[i+1]*prime2, 31) * prime1
		c = bits.RotateLeft64(c+words[i+2]*prime2, 31) * prime1
		d = bits.RotateLeft64(d+words[i+3]*prime2, 31) * prime1
	}
	return [4]uint64{a, b, c, d}
}

func (e *engine) DigestState(w hash.Hash, s contract.State) {
	t := s.(*state)
	for _, v := range []any{t.r, t.ip, t.flags, t.cc.all(), t.x} {
		_ = binary.Write(w, binary.LittleEndian, v) // a hash does not fail
	}
}
