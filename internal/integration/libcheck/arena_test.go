package libcheck

import (
	"bytes"
	"fmt"

	"kprobelab/kimage"
	"kprobelab/machine"
	"kprobelab/x86"
)

// arena is the guest memory that the buffers of one call lie in, always at
// the same addresses, so that runs of a call compare to the byte.
type arena struct {
	m     *machine.Machine
	img   *kimage.Image
	start x86.Addr
	addrs []x86.Addr
	args  [8]uint64
}

const (
	arenaSize = 16 << 10
	// margin lies before and after each buffer and must stay as it is.
	margin = 64
)

func newArena(m *machine.Machine, img *kimage.Image) (*arena, error) {
	start, err := m.Alloc(arenaSize)
	return &arena{m: m, img: img, start: start}, err
}

// place lays the call's buffers out and fills them, and returns the arguments and the expected
// memory after the call.
func (a *arena) place(c *Call) (args []uint64, want []byte, err error) {
	a.addrs = a.addrs[:0]
	at := a.start + margin
	for _, b := range c.Bufs {
		a.addrs = append(a.addrs, at)
		at += x86.Addr((len(b.In)+7)&^7 + margin)
	}
	before := bytes.Repeat([]byte{0xee}, int(at-a.start))
	want = bytes.Clone(before)
	for i, b := range c.Bufs {
		off := a.addrs[i].Sub(a.start)
		copy(before[off:], b.In)
		a.point(before[off:], b.Ptrs)
		out, ptrs := b.In, b.Ptrs
		if b.Out != nil {
			out, ptrs = b.Out, nil
		}
		if b.OutPtrs != nil {
			ptrs = b.OutPtrs
		} else if b.Out != nil {
			ptrs = b.Ptrs
		}
		copy(want[off:], out)
		a.point(want[off:], ptrs)
	}
	args = a.args[:0]
	for _, arg := range c.Args {
		v, err := a.word(arg)
		if err != nil {
			return nil, nil, err
		}
		args = append(args, v)
	}
	return args, want, a.m.WriteMem(a.start, before)
}

func (a *arena) point(b []byte, ptrs []Ptr) {
	for _, p := range ptrs {
		le.PutUint64(b[p.Off:], a.ref(p.To))
	}
}

func (a *arena) ref(r Ref) uint64 {
	if r.Buf < 0 {
		return 0
	}
	return uint64(a.addrs[r.Buf].Add(int64(r.Off)))
}

func (a *arena) word(arg any) (uint64, error) {
	switch v := arg.(type) {
	case uint64:
		return v, nil
	case Ref:
		return a.ref(v), nil
	case Sym:
		found := a.img.Lookup(string(v))
		if len(found) == 0 {
			return 0, fmt.Errorf("no symbol %s", v)
		}
		return uint64(found[0].Addr), nil
	}
	panic(fmt.Sprintf("BUG: argument of type %T", arg))
}

// check compares a return value and the arena's memory with the expected ones.
func (a *arena) check(c *Call, ret uint64, want []byte) error {
	have := make([]byte, len(want))
	if err := a.m.ReadMem(a.start, have); err != nil {
		return err
	}
	for i, b := range c.Bufs {
		if b.AnyOut {
			off := a.addrs[i].Sub(a.start)
			copy(want[off:off+int64(len(b.In))], have[off:])
		}
	}
	value := c.Want.Value
	if c.Want.Ref != nil {
		value = a.ref(*c.Want.Ref)
	}
	if bits := c.Want.Bits; bits > 0 && (ret^value)<<(64-bits) != 0 {
		return fmt.Errorf("returned %#x, expected %#x in the low %d bits", ret, value, bits)
	}
	for i := range want {
		if have[i] != want[i] {
			return fmt.Errorf("memory differs: %s", a.difference(c, i, have, want))
		}
	}
	return nil
}

func (a *arena) difference(c *Call, i int, have, want []byte) string {
	for n, b := range c.Bufs {
		off := int(a.addrs[n].Sub(a.start))
		if i >= off && i < off+len(b.In) {
			return fmt.Sprintf("buffer %d at byte %d:\n have %x\n want %x", n, i-off, have[off:off+len(b.In)], want[off:off+len(b.In)])
		}
	}
	return fmt.Sprintf("outside the buffers, at byte %d", i)
}
