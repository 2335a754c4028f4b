//go:build unicorn && cgo && linux && amd64

package emu

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/unicorn-engine/unicorn/bindings/go/unicorn"

	"kprobelab/internal/tinyguest"
	"kprobelab/machine"
)

// What the hot paths would cost through the binding alone, for comparison with
// the benchmarks of the same guest code on a Machine: RATIONALE.md, "What does
// emu keep in C, and why?".

// bareEngine is an engine without a Machine, with tinyguest.Loop's loop around a
// function of the given code. run makes it call that function n times.
func bareEngine(b *testing.B, function ...byte) (uc unicorn.Unicorn, run func(n int)) {
	const text, stack, end = 0x1000, 0x9000, 0x1080
	uc, err := unicorn.NewUnicorn(unicorn.ARCH_X86, unicorn.MODE_64)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, uc.Close()) })
	require.NoError(b, uc.MemMap(0, 0x10000))
	loop := tinyguest.Loop().Text[:16]
	require.NoError(b, uc.MemWrite(text, loop))
	require.NoError(b, uc.MemWrite(text+0x40, function))
	require.NoError(b, uc.MemWrite(stack, binary.LittleEndian.AppendUint64(nil, end)))
	return uc, func(n int) {
		require.NoError(b, uc.RegWrite(unicorn.X86_REG_RDI, uint64(n)))
		require.NoError(b, uc.RegWrite(unicorn.X86_REG_RSP, stack))
		require.NoError(b, uc.Start(text, end))
	}
}

func benchBinding(b *testing.B, hook func(uc unicorn.Unicorn) error, function ...byte) {
	uc, run := bareEngine(b, function...)
	if hook != nil {
		require.NoError(b, hook(uc))
	}
	run(10)
	b.ReportAllocs()
	b.ResetTimer()
	run(b.N)
}

// ptRegs are the registers of a pt_regs that an engine has.
var ptRegs = []int{
	unicorn.X86_REG_R15, unicorn.X86_REG_R14, unicorn.X86_REG_R13, unicorn.X86_REG_R12, unicorn.X86_REG_RBP, unicorn.X86_REG_RBX,
	unicorn.X86_REG_R11, unicorn.X86_REG_R10, unicorn.X86_REG_R9, unicorn.X86_REG_R8, unicorn.X86_REG_RAX, unicorn.X86_REG_RCX,
	unicorn.X86_REG_RDX, unicorn.X86_REG_RSI, unicorn.X86_REG_RDI, unicorn.X86_REG_RIP, unicorn.X86_REG_EFLAGS, unicorn.X86_REG_RSP,
}

func BenchmarkBindingCall(b *testing.B) { benchBinding(b, nil, 0xc3) }

// Compare BenchmarkBareCall, whose block hook is in C and counts instructions.
func BenchmarkBindingBlockHook(b *testing.B) {
	n := 0
	benchBinding(b, func(uc unicorn.Unicorn) error {
		_, err := uc.HookAdd(unicorn.HOOK_BLOCK, func(unicorn.Unicorn, uint64, uint32) { n++ }, 1, 0)
		return err
	}, 0xc3)
}

// Compare BenchmarkInt3Hit, which also writes the registers that changed.
func BenchmarkBindingInt3(b *testing.B) {
	benchBinding(b, func(uc unicorn.Unicorn) error {
		_, err := uc.HookAdd(unicorn.HOOK_INTR, func(uc unicorn.Unicorn, _ uint32) {
			if _, err := uc.RegReadBatch(ptRegs); err != nil {
				b.Error(err)
			}
		}, 1, 0)
		return err
	}, 0xcc, 0xc3)
}

// Compare BenchmarkCallout.
func BenchmarkBindingOut(b *testing.B) {
	benchBinding(b, func(uc unicorn.Unicorn) error {
		_, err := uc.HookAdd(unicorn.HOOK_INSN, func(uc unicorn.Unicorn, _, _, _ uint32) {
			if _, err := uc.RegRead(unicorn.X86_REG_RDI); err != nil {
				b.Error(err)
			}
		}, 1, 0, unicorn.X86_INS_OUT)
		return err
	}, 0xe6, 0xe0, 0xc3)
}

// Compare BenchmarkReadRegisters.
func BenchmarkBindingRegReadBatch(b *testing.B) {
	uc, _ := bareEngine(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := uc.RegReadBatch(ptRegs); err != nil {
			b.Fatal(err)
		}
	}
}

// The binding's other way, without an allocation. It cannot write some of the registers only.
func BenchmarkBindingRegBatch(b *testing.B) {
	uc, _ := bareEngine(b)
	batch, err := unicorn.NewRegBatch(ptRegs)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := batch.ReadFast(uc); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReadRegisters reads them all in one call of C.
func BenchmarkReadRegisters(b *testing.B) {
	var e machine.Engine
	m, err := machine.New(tinyguest.Loop(), nil, func(h *machine.Host) (_ machine.Engine, err error) {
		e, err = open(h)
		return e, err
	})
	require.NoError(b, err)
	b.Cleanup(func() { _ = m.Close() })
	b.ReportAllocs()
	for b.Loop() {
		e.(*engine).cur.readRegs()
	}
}
