package kprobes

import (
	"bytes"

	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// liveView is the code under test as it is in memory now, with the original
// bytes under this subsystem's int3s (docs/spec 1.5.1). All else is the
// image's.
type liveView struct {
	kimage.View
	k      *Kprobes
	reader decoder.Reader
}

func (k *Kprobes) newView(v kimage.View) *liveView {
	return &liveView{View: v, k: k, reader: decoder.Remember(v.Reader())}
}

// Reader is the image's, and remembers: each registration walks its function.
func (v *liveView) Reader() decoder.Reader { return v.reader }

var _ kimage.View = (*liveView)(nil)

// nop5 is the canonical 5-byte nop. Every ftrace site reads as that, whatever
// the tracer has put there.
var nop5 = [ftraceSiteSize]byte{0x0f, 0x1f, 0x44, 0x00, 0x00}

// CodeAt reads live memory and gives the original bytes back.
func (v *liveView) CodeAt(addr x86.Addr, b []byte) int {
	n := v.read(addr, b)
	v.recover(addr, b[:n])
	v.recoverGuests(addr, b[:n])
	v.ftraceSites(addr, b[:n])
	return n
}

// read reads as much as is mapped: all of b, or up to the first page that is
// not there.
func (v *liveView) read(addr x86.Addr, b []byte) int {
	if v.k.m.ReadMem(addr, b) == nil {
		return len(b)
	}
	const page = 4096
	n := 0
	for n < len(b) {
		chunk := min(len(b)-n, page-int((uint64(addr)+uint64(n))%page))
		if v.k.m.ReadMem(addr.Add(int64(n)), b[n:n+chunk]) != nil {
			break
		}
		n += chunk
	}
	return n
}

// recover puts back the saved bytes of every int3 and jump that a probe wrote.
func (v *liveView) recover(addr x86.Addr, b []byte) {
	v.recoverJumps(addr, b)
	for i := 0; ; i++ {
		at := bytes.IndexByte(b[i:], int3)
		if at < 0 {
			return
		}
		i += at
		if p := v.k.table.lookup(addr.Add(int64(i))); p != nil {
			b[i] = p.opcode
		}
	}
}

// ftraceSites shows the canonical nop at every ftrace site.
func (v *liveView) ftraceSites(addr x86.Addr, b []byte) {
	if !v.k.c.Check.FtraceSites {
		return
	}
	r := x86.Range{Start: addr, End: addr.Add(int64(len(b)))}
	for r.Start < r.End {
		s, ok := v.SiteIn(kimage.SiteFtrace, r)
		if !ok {
			return
		}
		for i, nop := range nop5 {
			if at := s.Addr.Add(int64(i)).Sub(addr); at >= 0 && at < int64(len(b)) {
				b[at] = nop
			}
		}
		r.Start = s.Addr.Add(ftraceSiteSize)
	}
}
