package kprobes_test

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/profile"
	"kprobelab/x86"
)

// guestFake is a fake machine that can call handlers in guest code.
type guestFake struct {
	*fakeMachine
	data *region
	used int
	// inUse counts pieces of memory that are allocated.
	inUse int
}

const (
	dataBase  x86.Addr = 0xffff888000000000
	localSize int      = 0x1000
)

var _ kprobes.GuestRunner = (*guestFake)(nil)

// newGuestWorld is a world of one CPU with such a machine.
func newGuestWorld(t *testing.T) (*world, *guestFake) {
	c, ok := profile.Named("6.1")
	require.True(t, ok)
	w := bareWorldOf(c, 1)
	f := &guestFake{fakeMachine: w.fakeMachine, data: &region{start: dataBase, b: make([]byte, 1<<16)}, used: localSize}
	w.regions = append(w.regions, f.data)
	w.k = kprobes.New(f, kimage.View(w.fakeMachine), c)
	return w, f
}

func (f *guestFake) Alloc(n int) (x86.Addr, error) {
	at := dataBase.Add(int64(f.used))
	f.used += (n + 63) &^ 63
	f.inUse++
	return at, nil
}

func (f *guestFake) Free(x86.Addr)         { f.inUse-- }
func (f *guestFake) GSBase(int) x86.Addr   { return dataBase }
func (f *guestFake) LocalOffset() x86.Addr { return 0 }

func (f *guestFake) Local(int) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(&f.data.b[0])), localSize/8)
}

// CallGuest runs on the stack of a task that does not exist.
func (f *guestFake) CallGuest(fn x86.Addr, a, b uint64) (uint64, error) {
	t := f.startAt(f.cpu, f.task, fn, a, stackBase.Add(maxTasks*stackSize-64))
	t.regs.SI = b
	t.run()
	return t.regs.AX, t.err
}

// guest is a handler in guest code that is nothing but a call-out.
func (f *guestFake) guest(t *testing.T, fn func(arg x86.Addr)) x86.Addr {
	at, err := f.Callout("handler", func(arg x86.Addr, _ *x86.PtRegs) { fn(arg) })
	require.NoError(t, err)
	return at
}

func (f *guestFake) at64(a x86.Addr) uint64 { return binary.LittleEndian.Uint64(f.mem(a, 8)) }

// TestGuestHandlersThroughGo: Go calls handlers in guest code,
// with their record or instance and a frame that they may change.
func TestGuestHandlersThroughGo(t *testing.T) {
	w, f := newGuestWorld(t)
	var ran []string
	frame := f.Local(0)
	p := &kprobes.Kprobe{Addr: w.steady}
	p.PreCode = f.guest(t, func(rec x86.Addr) {
		ran = append(ran, "pre")
		require.Equal(t, p.Record, rec)
		require.EqualValues(t, w.steady, f.at64(rec+kprobes.RecordAddr))
		require.EqualValues(t, w.steady+1, frame[16], "ip")
		frame[14] = 9 // di
	})
	p.PostCode = f.guest(t, func(rec x86.Addr) {
		ran = append(ran, "post")
		require.Equal(t, p.Record, rec)
		require.EqualValues(t, w.steady+4, frame[16], "ip")
	})
	require.NoError(t, w.k.RegisterKprobe(p))
	require.EqualValues(t, 10, w.result(t, w.steady, 5))
	require.Equal(t, []string{"pre", "post"}, ran)

	var node x86.Addr
	rp := &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf}, DataSize: 8, MaxActive: 1}
	rp.EntryCode = f.guest(t, func(ri x86.Addr) {
		ran, node = append(ran, "entry"), ri
		require.EqualValues(t, rp.KP.Record, f.at64(ri+kprobes.InstanceRecord))
	})
	rp.HandlerCode = f.guest(t, func(ri x86.Addr) {
		ran = append(ran, "return")
		require.Equal(t, node, ri)
		require.EqualValues(t, w.calls+5, f.at64(ri), "the return address")
		frame[10] = 70 // ax
	})
	require.NoError(t, w.k.RegisterKretprobe(rp))
	require.EqualValues(t, 71, w.result(t, w.calls, 5))
	require.Equal(t, []string{"pre", "post", "entry", "return"}, ran)
	w.k.UnregisterKretprobe(rp)
	w.k.UnregisterKprobe(p)
	require.Zero(t, f.inUse)
	require.NoError(t, w.k.Err())
	require.Equal(t, w.clean, w.text())
}
