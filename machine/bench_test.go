package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/tinyguest"
	. "kprobelab/machine"
	"kprobelab/x86"
)

func benchLoop(b *testing.B, name string, traps x86.Traps) {
	m := boot(b, tinyguest.Loop(), &Options{Budget: 1 << 60})
	m.SetTraps(traps)
	_, err := m.Call(name, 10)
	require.NoError(b, err)
	b.ReportAllocs()
	b.ResetTimer()
	_, err = m.Call(name, b.N)
	b.StopTimer()
	require.NoError(b, err)
}

// BenchmarkBareCall is a loop in the guest: a call and a return each time.
func BenchmarkBareCall(b *testing.B) { benchLoop(b, "loop", nil) }

// BenchmarkInt3Hit adds an int3 that Go resumes after.
func BenchmarkInt3Hit(b *testing.B) {
	benchLoop(b, "loop_int3", &trapFuncs{OnInt3: func(*x86.PtRegs) bool { return true }})
}

// BenchmarkInt3Skip also moves the instruction pointer.
func BenchmarkInt3Skip(b *testing.B) {
	m := boot(b, tinyguest.Loop(), &Options{Budget: 1 << 60})
	ret := uint64(m.Source().Lookup("empty")[0].Addr)
	m.SetTraps(&trapFuncs{OnInt3: func(r *x86.PtRegs) bool { r.IP = ret; return true }})
	b.ReportAllocs()
	b.ResetTimer()
	_, err := m.Call("loop_int3", b.N)
	b.StopTimer()
	require.NoError(b, err)
}

// BenchmarkInt3Step is an int3 that turns on the trap flag, and the #DB.
func BenchmarkInt3Step(b *testing.B) {
	benchLoop(b, "loop_int3", &trapFuncs{
		OnInt3:  func(r *x86.PtRegs) bool { r.Flags |= x86.FlagTF; return true },
		OnDebug: func(r *x86.PtRegs) bool { r.Flags &^= x86.FlagTF; return true },
	})
}

// BenchmarkCallout is a stub that guest code calls, to Go and back.
func BenchmarkCallout(b *testing.B) {
	m := boot(b, tinyguest.Loop(), &Options{Budget: 1 << 60})
	n := 0
	stub, err := m.Callout("stub", func(x86.Addr, *x86.PtRegs) { n++ })
	require.NoError(b, err)
	// sub $168,%rsp; push %rbx; mov %rdi,%rbx; 1: lea 8(%rsp),%rdi; call stub;
	// dec %rbx; jne 1b; pop %rbx; add $168,%rsp; ret
	code := []byte{0x48, 0x81, 0xec, 0xa8, 0, 0, 0, 0x53, 0x48, 0x89, 0xfb, 0x48, 0x8d, 0x7c, 0x24, 0x08, 0xe8, 0, 0, 0, 0,
		0x48, 0xff, 0xcb, 0x75, 0xf1, 0x5b, 0x48, 0x81, 0xc4, 0xa8, 0, 0, 0, 0xc3}
	page, err := m.AllocExec(PageSize, "page")
	require.NoError(b, err)
	rel := uint32(stub.Sub(page.Add(21)))
	code[17], code[18], code[19], code[20] = byte(rel), byte(rel>>8), byte(rel>>16), byte(rel>>24)
	require.NoError(b, m.PokeText(page, code))
	b.ReportAllocs()
	b.ResetTimer()
	_, err = m.CallAddr(page, uint64(b.N))
	b.StopTimer()
	require.NoError(b, err)
	require.Equal(b, b.N, n)
}

// BenchmarkCallAddr is one run: start, a function of one instruction, end.
func BenchmarkCallAddr(b *testing.B) {
	m := boot(b, tinyguest.Loop(), nil)
	at := m.Source().Lookup("empty")[0].Addr
	b.ReportAllocs()
	for b.Loop() {
		_, _ = m.CallAddr(at)
	}
}

// BenchmarkPokeText changes a byte of text and drops it from the cache.
func BenchmarkPokeText(b *testing.B) {
	m := boot(b, tinyguest.Loop(), nil)
	at := m.Source().Lookup("empty")[0].Addr
	one := []byte{0xc3}
	_, _ = m.CallAddr(at)
	b.ReportAllocs()
	for b.Loop() {
		_ = m.PokeText(at, one)
	}
}

// BenchmarkNew makes and closes a machine of a small image.
func BenchmarkNew(b *testing.B) {
	img := tinyguest.Loop()
	for b.Loop() {
		m, err := open(img, nil)
		require.NoError(b, err)
		m.Close()
	}
}

// BenchmarkNestedCall is a call that a handler makes, in an int3 hit.
func BenchmarkNestedCall(b *testing.B) {
	m := boot(b, tinyguest.Loop(), &Options{Budget: 1 << 60})
	at := m.Source().Lookup("empty")[0].Addr
	m.SetTraps(&trapFuncs{OnInt3: func(*x86.PtRegs) bool { _, err := m.CallAddr(at); return err == nil }})
	b.ReportAllocs()
	b.ResetTimer()
	_, err := m.Call("loop_int3", b.N)
	b.StopTimer()
	require.NoError(b, err)
}

// BenchmarkFixup is a call with a page fault that the exception table takes.
func BenchmarkFixup(b *testing.B) {
	img := &tinyImage{}
	at := img.Add("load", 0x48, 0x8b, 0x07, 0xc3) // mov (%rdi),%rax; ret
	img.Fixups = map[x86.Addr]x86.Addr{at: at + 3}
	m := boot(b, img, nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.CallAddr(at, 8); err != nil {
			b.Fatal(err)
		}
	}
}
