package decoder

import (
	"sync/atomic"

	"kprobelab/x86"
)

// Remember is a Reader that keeps what another has read, as long as the bytes
// there are the same. It is for code that is walked again and again: each
// registration of a probe walks from its function's start.
func Remember(r Reader) Reader {
	if a, ok := r.(Alone); ok {
		return Alone{Remember(a.Reader)}
	}
	return &remembering{Reader: r}
}

type remembering struct {
	Reader
	kept [2048]atomic.Pointer[remembered]
}

// remembered is one instruction, and n bytes from its first on.
type remembered struct {
	at   x86.Addr
	code [MaxInsnSize]byte
	n    int
	r    Reading
}

// Read returns the other Reader's reading, now or earlier, of the same bytes.
func (m *remembering) Read(b []byte, at x86.Addr) Reading {
	b = b[:min(len(b), MaxInsnSize)]
	slot := &m.kept[uint64(at)%uint64(len(m.kept))]
	if k := slot.Load(); k != nil && k.at == at && string(k.code[:k.n]) == string(b) {
		return k.r
	}
	k := &remembered{at: at, n: len(b), r: m.Reader.Read(b, at)}
	copy(k.code[:], b)
	slot.Store(k)
	return k.r
}
