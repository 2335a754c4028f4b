package interp

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"kprobelab/machine"
)

// pageDigest is the digest of a page, and what the page held then. So a digest of the
// machine hashes only the pages that have changed since the one before; to compare
// is much cheaper than to hash, and sees every writer, the host's included.
type pageDigest struct {
	held page
	sum  [sha256.Size]byte
}

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
		if r.digests == nil {
			r.digests = make([]*pageDigest, len(r.pages))
		}
		for i, p := range r.pages {
			if p != nil && *p != zero {
				put(uint64(r.Start), uint64(i))
				w.Write(r.digest(i))
			}
		}
	}
}

// digest is that of the i-th page.
func (r *region) digest(i int) []byte {
	p, d := r.pages[i], r.digests[i]
	if d == nil {
		d = new(pageDigest)
		r.digests[i] = d
	} else if d.held == *p {
		return d.sum[:]
	}
	d.held, d.sum = *p, sha256.Sum256(p[:])
	return d.sum[:]
}

func (e *engine) DigestState(w hash.Hash, s machine.State) {
	t := s.(*state)
	for _, v := range []any{t.r, t.ip, t.flags, t.cc.all(), t.x} {
		_ = binary.Write(w, binary.LittleEndian, v) // a hash does not fail
	}
}
