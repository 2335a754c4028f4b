package machine_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	. "kprobelab/machine"
	"kprobelab/x86"
)

// inc; int3; inc; ret
func int3Image() *tinyImage {
	img := &tinyImage{}
	img.Add("probed", 0x48, 0xff, 0xc7, 0xcc, 0x48, 0xff, 0xc7, 0x48, 0x89, 0xf8, 0xc3)
	img.Add("twice", 0x48, 0x8d, 0x04, 0x3f, 0xc3) // lea (%rdi,%rdi),%rax; ret
	img.Add("bad", 0x48, 0x8b, 0x07, 0xc3)         // mov (%rdi),%rax; ret
	img.Add("spin", 0xeb, 0xfe)
	return img
}

func TestInt3SeesAndChangesRegisters(t *testing.T) {
	m := boot(t, int3Image(), nil)
	at := x86.Addr(0)
	m.SetTraps(&trapFuncs{OnInt3: func(r *x86.PtRegs) bool {
		at = x86.Addr(r.IP)
		require.Equal(t, uint64(11), r.DI)
		require.Equal(t, uint64(x86.KernelCS), r.CS)
		require.Equal(t, ^uint64(0), r.OrigAX)
		r.DI = 40
		return true
	}})
	got, err := m.Call("probed", 10)
	require.NoError(t, err)
	require.Equal(t, uint64(41), got)
	require.Equal(t, textBase+4, at)

	m.SetTraps(nil)
	_, err = m.Call("probed", 10)
	var f *Fault
	require.True(t, errors.As(err, &f))
	require.Equal(t, VectorInt3, f.Vector)
	require.Equal(t, textBase+4, f.IP)
}

func TestTrapFlagStepsOneInstruction(t *testing.T) {
	m := boot(t, int3Image(), nil)
	var steps []uint64
	traps := &trapFuncs{}
	traps.OnInt3 = func(r *x86.PtRegs) bool { r.Flags |= x86.FlagTF; return true }
	traps.OnDebug = func(r *x86.PtRegs) bool {
		require.NotZero(t, r.Flags&x86.FlagTF, "still set when #DB arrives")
		if steps = append(steps, r.IP); len(steps) == 2 {
			r.Flags &^= x86.FlagTF
		}
		return true
	}
	m.SetTraps(traps)
	got, err := m.Call("probed", 10)
	require.NoError(t, err)
	require.Equal(t, uint64(12), got)
	require.Equal(t, []uint64{uint64(textBase) + 7, uint64(textBase) + 10}, steps)
}

func TestHandlerCallsGuest(t *testing.T) {
	m := boot(t, int3Image(), nil)
	var inner uint64
	m.SetTraps(&trapFuncs{OnInt3: func(r *x86.PtRegs) bool {
		before := *r
		var err error
		inner, err = m.Call("twice", 21)
		require.NoError(t, err)
		require.Equal(t, before, *r)
		return true
	}})
	got, err := m.Call("probed", 10)
	require.NoError(t, err)
	require.Equal(t, uint64(42), inner)
	require.Equal(t, uint64(12), got)
}

func TestNestedFaultLeavesTheOuterRunAlone(t *testing.T) {
	m := boot(t, int3Image(), nil)
	var inner error
	m.SetTraps(&trapFuncs{OnInt3: func(r *x86.PtRegs) bool {
		_, inner = m.Call("bad", 16)
		r.DI++
		return true
	}})
	got, err := m.Call("probed", 10)
	require.NoError(t, err)
	require.ErrorContains(t, inner, "page fault at bad+0x0/0x40")
	require.Equal(t, uint64(13), got)
}

func TestNestedCallsShareTheBudget(t *testing.T) {
	m := boot(t, int3Image(), &Options{Budget: 10000})
	var inner error
	m.SetTraps(&trapFuncs{OnInt3: func(r *x86.PtRegs) bool {
		_, inner = m.Call("spin")
		return true
	}})
	_, err := m.Call("probed", 10)
	require.ErrorIs(t, inner, ErrBudget)
	require.ErrorIs(t, err, ErrBudget)
	got, err := m.Call("twice", 4)
	require.NoError(t, err)
	require.Equal(t, uint64(8), got)
}

func TestNestingIsDeep(t *testing.T) {
	m := boot(t, int3Image(), nil)
	depth := 0
	m.SetTraps(&trapFuncs{OnInt3: func(r *x86.PtRegs) bool {
		if depth++; depth < 10 {
			got, err := m.Call("probed", r.DI)
			require.NoError(t, err)
			r.DI = got
		}
		return true
	}})
	got, err := m.Call("probed", 0)
	require.NoError(t, err)
	require.Equal(t, uint64(20), got)
}

func TestPanicBecomesAnError(t *testing.T) {
	m := boot(t, int3Image(), nil)
	m.SetTraps(&trapFuncs{OnInt3: func(*x86.PtRegs) bool { panic("oh") }})
	_, err := m.Call("probed", 1)
	require.ErrorIs(t, err, ErrHandler)
	require.ErrorContains(t, err, "oh")
	m.SetTraps(&trapFuncs{OnInt3: func(*x86.PtRegs) bool { return true }})
	got, err := m.Call("probed", 1)
	require.NoError(t, err, "and the machine stays usable")
	require.Equal(t, uint64(3), got)
}

// A handler that closes the machine gets an error that says so, not a crash.
func TestCloseInHandler(t *testing.T) {
	m := boot(t, int3Image(), nil)
	var closed error
	m.SetTraps(&trapFuncs{OnInt3: func(*x86.PtRegs) bool { closed = m.Close(); return true }})
	_, err := m.Call("probed", 1)
	require.NoError(t, err)
	require.ErrorIs(t, closed, ErrInUse)
	require.NoError(t, m.Close())
	_, err = m.Call("probed", 1)
	require.ErrorIs(t, err, ErrClosed)
}

func TestHandlerLeavesItsGoroutine(t *testing.T) {
	m := boot(t, int3Image(), nil)
	m.SetTraps(&trapFuncs{OnInt3: func(*x86.PtRegs) bool { runtime.Goexit(); return true }})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = m.Call("probed", 1)
	}()
	<-done
	_, err := m.Call("probed", 1)
	require.ErrorIs(t, err, ErrClosed)
}

func TestCallout(t *testing.T) {
	m := boot(t, int3Image(), nil)
	var frames []x86.Addr
	stub, err := m.Callout("optimized_callback", func(frame x86.Addr, r *x86.PtRegs) {
		frames = append(frames, frame)
		got, err := m.Call("twice", r.AX)
		require.NoError(t, err)
		r.AX = got
	})
	require.NoError(t, err)
	// sub $168,%rsp; movq $5,80(%rsp); mov %rsp,%rdi; call stub; mov 80(%rsp),%rax; add $168,%rsp; ret
	code := []byte{0x48, 0x81, 0xec, 0xa8, 0, 0, 0, 0x48, 0xc7, 0x44, 0x24, 0x50, 5, 0, 0, 0,
		0x48, 0x89, 0xe7, 0xe8, 0, 0, 0, 0, 0x48, 0x8b, 0x44, 0x24, 0x50, 0x48, 0x81, 0xc4, 0xa8, 0, 0, 0, 0xc3}
	page, err := m.AllocExec(PageSize, "kprobe_optinsn_page")
	require.NoError(t, err)
	rel := uint32(stub.Sub(page.Add(24)))
	code[20], code[21], code[22], code[23] = byte(rel), byte(rel>>8), byte(rel>>16), byte(rel>>24)
	require.NoError(t, m.PokeText(page, code))
	got, err := m.CallAddr(page)
	require.NoError(t, err)
	require.Equal(t, uint64(10), got)
	require.Len(t, frames, 1)
	require.Contains(t, m.Symbolize(stub), "optimized_callback+0x0")
	require.Contains(t, m.Symbolize(page+8), "kprobe_optinsn_page+0x8")
}

// In a callout rip must stay, even when a call made there faults. The fault has the rip of the
// call's own code.
func TestFaultOfACallInACallout(t *testing.T) {
	m := boot(t, int3Image(), nil)
	var inner error
	stub, err := m.Callout("callback", func(x86.Addr, *x86.PtRegs) { _, inner = m.Call("bad", 16) })
	require.NoError(t, err)
	page, err := m.AllocExec(PageSize, "page")
	require.NoError(t, err)
	// sub $168,%rsp; mov %rsp,%rdi; call stub; add $168,%rsp; ret
	code := []byte{0x48, 0x81, 0xec, 0xa8, 0, 0, 0, 0x48, 0x89, 0xe7, 0xe8, 0, 0, 0, 0, 0x48, 0x81, 0xc4, 0xa8, 0, 0, 0, 0xc3}
	rel := uint32(stub.Sub(page.Add(15)))
	code[11], code[12], code[13], code[14] = byte(rel), byte(rel>>8), byte(rel>>16), byte(rel>>24)
	require.NoError(t, m.PokeText(page, code))
	_, err = m.CallAddr(page)
	require.NoError(t, err)
	require.ErrorContains(t, inner, "page fault at bad+0x0/0x40")
}

func TestHitAllocatesNothing(t *testing.T) {
	m := boot(t, int3Image(), nil)
	m.SetTraps(&trapFuncs{OnInt3: func(*x86.PtRegs) bool { return true }})
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = m.CallAddr(textBase, 1) }))
}

// The boot task lives on after a failed call, but nothing of the call does.
func TestGivenUpCallIsTold(t *testing.T) {
	m := boot(t, int3Image(), &Options{Budget: 1000})
	traps := &trapFuncs{}
	m.SetTraps(traps)
	for want, call := range []string{"bad", "spin"} {
		_, err := m.Call(call, 16)
		require.Error(t, err)
		require.Len(t, traps.Exits, want+1)
	}
	_, err := m.Call("twice", 1)
	require.NoError(t, err)
	require.Equal(t, []int{0, 0}, traps.Exits)
}

// The engine alone would step past a pause without a #DB.
func TestPauseIsStepped(t *testing.T) {
	img := &tinyImage{}
	// int3; pause; pause with a prefix; inc %rdi; mov %rdi,%rax; ret
	img.Add("pauses", 0xcc, 0xf3, 0x90, 0x66, 0xf3, 0x90, 0x48, 0xff, 0xc7, 0x48, 0x89, 0xf8, 0xc3)
	m := boot(t, img, nil)
	var steps []x86.Addr
	m.SetTraps(&trapFuncs{
		OnInt3: func(r *x86.PtRegs) bool { r.Flags |= x86.FlagTF; return true },
		OnDebug: func(r *x86.PtRegs) bool {
			steps = append(steps, x86.Addr(r.IP)-textBase)
			if len(steps) == 4 {
				r.Flags &^= x86.FlagTF
			}
			return true
		},
	})
	got, err := m.Call("pauses", 10)
	require.NoError(t, err)
	require.Equal(t, uint64(11), got)
	require.Equal(t, []x86.Addr{3, 6, 9, 12}, steps)
}

// A receiver that does not take an int3 can still have changed the frame, as
// a notifier can that returns NOTIFY_DONE.
func TestTrapOfNobodysKeepsTheChangedFrame(t *testing.T) {
	img := &tinyImage{}
	at := img.Add("int3", 0xcc, 0xc3)
	m := boot(t, img, nil)
	m.SetTraps(&trapFuncs{OnInt3: func(r *x86.PtRegs) bool {
		r.BX, r.Flags = 7, r.Flags&^x86.FlagIF
		r.IP--
		return false
	}})
	_, err := m.CallAddr(at)
	var f *Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, VectorInt3, f.Vector)
	require.Equal(t, at, f.IP)
	require.Equal(t, uint64(7), f.Regs.BX)
	require.Zero(t, f.Regs.Flags&x86.FlagIF)
	require.Equal(t, f.Regs, m.Regs())
}
