package kprobes_test

import (
	"encoding/binary"
	"fmt"
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

// newGuestWorld is a world of one CPU with such a machine, and a fast path that
// notes what its hooks are told.
func newGuestWorld(t *testing.T, fast *notes) (*world, *guestFake) {
	c, ok := profile.Named("6.1")
	require.True(t, ok)
	w := bareWorldOf(c, 1)
	f := &guestFake{fakeMachine: w.fakeMachine, data: &region{start: dataBase, b: make([]byte, 1<<16)}, used: localSize}
	w.regions = append(w.regions, f.data)
	w.k = kprobes.New(f, kimage.View(w.fakeMachine), c)
	if fast != nil {
		w.k.SetFastPath(func(in kprobes.Inside) (kprobes.FastPath, error) { fast.in = in; return fast, nil })
	}
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

// TestGuestHandlersThroughGo: without a FastPath Go calls handlers in guest code,
// with their record or instance and a frame that they may change.
func TestGuestHandlersThroughGo(t *testing.T) {
	w, f := newGuestWorld(t, nil)
	var ran []string
	frame := f.Local(0)[kprobes.LocalFrames:]
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

// notes is a FastPath that does nothing, and says what it is told.
type notes struct {
	in    kprobes.Inside
	list  []string
	depth uint64
	held  *kprobes.Kprobe
}

func (n *notes) Hit(way kprobes.Way, entry *kprobes.Kprobe, key uint64) {
	n.list = append(n.list, fmt.Sprintf("hit %d %v+%d", way, entry.Addr, x86.Addr(key).Sub(entry.Addr)))
}

func (n *notes) Change() { n.list = append(n.list, "change") }

func (n *notes) Enter(int, int) kprobes.Held {
	n.depth++
	n.list = append(n.list, fmt.Sprintf("enter %d", n.depth))
	return kprobes.Held{Probe: n.held, Word: n.depth}
}

func (n *notes) Leave(_ int, h kprobes.Held) {
	n.list = append(n.list, fmt.Sprintf("leave %d", h.Word))
	n.depth = h.Word - 1
}

func (n *notes) take() []string {
	list := n.list
	n.list = nil
	return list
}

// TestHooks: what a FastPath is told of registrations and of a hit on each way,
// with a call of the guest in a handler.
func TestHooks(t *testing.T) {
	n := &notes{}
	w, f := newGuestWorld(t, n)
	p := &kprobes.Kprobe{Addr: w.steady, PreCode: f.guest(t, func(x86.Addr) {})}
	require.NoError(t, w.k.RegisterKprobe(p))
	require.Empty(t, n.take(), "it is made with the first probe that it is for")
	w.result(t, w.steady, 1)
	require.Equal(t, []string{
		"enter 1", fmt.Sprintf("hit %d %v+0", kprobes.WayInt3, w.steady), "leave 1",
		"enter 1", fmt.Sprintf("hit %d %v+%d", kprobes.WayStep, w.steady, int3After(p).Sub(w.steady)), "leave 1",
	}, n.take())

	traced := &kprobes.Kprobe{Addr: w.traced, PreHandler: func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
		w.nested(regs, w.steady, 1)
		return 0
	}}
	require.NoError(t, w.k.RegisterKprobe(traced))
	require.Equal(t, "change", n.take()[0])
	w.result(t, w.traced, 1)
	require.Equal(t, []string{
		"enter 1", "enter 2", "leave 2", "enter 2", "leave 2",
		fmt.Sprintf("hit %d %v+5", kprobes.WayTracer, w.traced), "leave 1",
	}, n.take(), "the nested hit is missed, and not to be learned")
	require.EqualValues(t, 1, p.Nmissed)

	for _, change := range []func(){
		func() { require.NoError(t, w.k.DisableKprobe(p)) },
		func() { require.NoError(t, w.k.EnableKprobe(p)) },
		func() { w.k.Observe(func(kprobes.Event) {}) },
	} {
		change()
		require.Contains(t, n.take(), "change")
	}
	w.result(t, w.steady, 1)
	require.Equal(t, []string{"enter 1", "leave 1", "enter 1", "leave 1"}, n.take(), "nothing is learned while somebody observes")
	w.k.Observe(nil)
	w.k.UnregisterKprobes([]*kprobes.Kprobe{p, traced})
}

// int3After is the address of the int3 that follows a probe's copy.
func int3After(p *kprobes.Kprobe) x86.Addr {
	s, _ := p.Slot()
	return s.Addr.Add(int64(s.InsnLen))
}

// TestHeldProbeIsCurrent: while guest code runs a probe's handler, a hit is
// nested; what it was when Go began is what it is again afterwards.
func TestHeldProbeIsCurrent(t *testing.T) {
	n := &notes{}
	w, f := newGuestWorld(t, n)
	held := &kprobes.Kprobe{Addr: w.leaf, PreCode: f.guest(t, func(x86.Addr) {})}
	p := &kprobes.Kprobe{Addr: w.steady, PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { t.Error("ran"); return 0 }}
	require.NoError(t, w.k.RegisterKprobes([]*kprobes.Kprobe{held, p}))
	n.held = held
	cur, status := w.k.Current()
	require.Same(t, held, cur)
	require.Equal(t, kprobes.HitActive, status)
	require.EqualValues(t, 6, w.result(t, w.steady, 5))
	require.EqualValues(t, 1, p.Nmissed)
	n.held = nil
	require.Nil(t, current(w))
	w.k.TaskExit(0)
	w.k.UnregisterKprobes([]*kprobes.Kprobe{held, p})
}

// TestLent: Go takes what was lent back before it counts a call as missed.
func TestLent(t *testing.T) {
	n := &lender{}
	w, f := newGuestWorld(t, &n.notes)
	w.k.SetFastPath(func(in kprobes.Inside) (kprobes.FastPath, error) { n.in = in; return n, nil })
	returned := 0
	rp := &kprobes.Kretprobe{KP: kprobes.Kprobe{Addr: w.leaf}, MaxActive: 2, HandlerCode: f.guest(t, func(x86.Addr) { returned++ })}
	require.NoError(t, w.k.RegisterKretprobe(rp))
	n.lent = n.in.Lend(rp)
	require.Len(t, n.lent, 2)
	w.result(t, w.leaf, 1)
	require.Equal(t, 1, returned)
	require.Zero(t, rp.Nmissed)
	require.Empty(t, n.lent)

	n.lent = n.in.Lend(rp)
	pending := n.lent[0]
	n.lent = n.lent[1:]
	n.in.Pend(pending, 3, w.calls+5, stackBase)
	require.Equal(t, 1, w.k.Pending(3))
	require.Equal(t, w.calls+5, w.k.FindReturnAddress(3, stackBase, nil))
	w.k.TaskExit(3)
	require.Zero(t, w.k.Pending(3))
	w.k.UnregisterKretprobe(rp)
	require.Zero(t, f.inUse)
}

// lender gives back what it has when something changes.
type lender struct {
	notes
	lent []*kprobes.Instance
}

func (n *lender) Change() {
	for _, i := range n.lent {
		n.in.TakeBack(i)
	}
	n.lent = nil
}
