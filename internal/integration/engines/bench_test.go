//go:build unicorn && cgo && linux && amd64

package engines

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"kprobelab/emu"
	"kprobelab/interp"
	"kprobelab/kimage"
	"kprobelab/machine"
	"kprobelab/x86"
)

// onBoth runs a benchmark on each engine: emu's figure is the baseline.
func onBoth(b *testing.B, src machine.Source, fn func(b *testing.B, m engine)) {
	opt := &machine.Options{Budget: 1 << 60}
	b.Run("emu", func(b *testing.B) {
		m, err := emu.New(src, opt)
		require.NoError(b, err)
		defer m.Close()
		fn(b, m)
	})
	b.Run("interp", func(b *testing.B) {
		m, err := interp.New(src, opt)
		require.NoError(b, err)
		defer m.Close()
		fn(b, m)
	})
}

// measure tells, when the function that it returns is called, how many guest
// instructions ran in a microsecond of the process's time, and how much of that an
// operation took: on a busy machine the clock on the wall says little.
func measure(b *testing.B, m engine) (stop func()) {
	instrs, start := m.Instructions(), processTime()
	return func() {
		d := processTime() - start
		b.ReportMetric(float64(m.Instructions()-instrs)/(float64(d.Nanoseconds())/1000), "insn/cpu-µs")
		b.ReportMetric(float64(d.Nanoseconds())/float64(b.N), "cpu-ns/op")
	}
}

func processTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // it cannot fail for oneself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// loops are code that runs rdi times.
var loops = []struct {
	name string
	code []byte
}{
	// 1: mov (%rsi,%rax,8),%rcx; add %rcx,%rdx; mov %rdx,(%rsi); inc %rax; and $63,%eax; dec %rdi; jne 1b; ret
	{"memory", []byte{0x48, 0x8b, 0x0c, 0xc6, 0x48, 0x01, 0xca, 0x48, 0x89, 0x16, 0x48, 0xff, 0xc0, 0x83, 0xe0, 0x3f, 0x48, 0xff, 0xcf, 0x75, 0xeb, 0xc3}},
	// 1: call f; dec %rdi; jne 1b; ret; f: push %rbp; mov %rsp,%rbp; xor %eax,%eax; leave; ret
	{"calls", []byte{0xe8, 0x06, 0, 0, 0, 0x48, 0xff, 0xcf, 0x75, 0xf6, 0xc3, 0x55, 0x48, 0x89, 0xe5, 0x31, 0xc0, 0xc9, 0xc3}},
	// 1: cmp %eax,%ecx; ja 2f; test $1,%dl; je 2f; nop; 2: movzbl (%rsi),%eax; shl $3,%eax; dec %rdi; jne 1b; ret
	{"branches", []byte{0x39, 0xc1, 0x77, 0x06, 0xf6, 0xc2, 0x01, 0x74, 0x01, 0x90, 0x0f, 0xb6, 0x06, 0xc1, 0xe0, 0x03, 0x48, 0xff, 0xcf, 0x75, 0xeb, 0xc3}},
}

// BenchmarkInstructions measures the number of guest instructions in a microsecond.
func BenchmarkInstructions(b *testing.B) {
	for _, l := range loops {
		b.Run(l.name, func(b *testing.B) {
			onBoth(b, &image{code: l.code}, func(b *testing.B, m engine) {
				_, err := m.CallAddr(codeBase, 10, uint64(dataBase))
				require.NoError(b, err)
				stop := measure(b, m)
				b.ResetTimer()
				_, err = m.CallAddr(codeBase, uint64(b.N), uint64(dataBase))
				stop()
				require.NoError(b, err)
			})
		})
	}
}

// BenchmarkGuestFunctions is the same for functions of the guest kernel.
func BenchmarkGuestFunctions(b *testing.B) {
	img, err := kimage.Open("../../../testdata/guest.elf", nil)
	require.NoError(b, err)
	for _, l := range []struct {
		name string
		args []uint64
	}{{"busy_worker", []uint64{200}}, {"gcd", []uint64{1 << 40 * 3, 7 << 33}}, {"worker", []uint64{200}}} {
		list := img.Lookup(l.name)
		require.Len(b, list, 1, l.name)
		b.Run(l.name, func(b *testing.B) {
			onBoth(b, img, func(b *testing.B, m engine) {
				stop := measure(b, m)
				for b.Loop() {
					_, err := m.CallAddr(list[0].Addr, l.args...)
					require.NoError(b, err)
				}
				stop()
			})
		})
	}
}

type resume struct{}

func (resume) Int3(*x86.PtRegs) bool       { return true }
func (resume) Debug(*x86.PtRegs) bool      { return true }
func (resume) Fault(*x86.PtRegs, int) bool { return false }
func (resume) TaskExit(int)                {}

// BenchmarkInt3 is a loop of five instructions with an int3 that Go resumes after.
func BenchmarkInt3(b *testing.B) {
	// 1: call f; dec %rdi; jne 1b; ret; f: int3; ret
	onBoth(b, &image{code: []byte{0xe8, 0x06, 0, 0, 0, 0x48, 0xff, 0xcf, 0x75, 0xf6, 0xc3, 0xcc, 0xc3}}, func(b *testing.B, m engine) {
		m.SetTraps(resume{})
		stop := measure(b, m)
		_, err := m.CallAddr(codeBase, uint64(b.N))
		stop()
		require.NoError(b, err)
	})
}

// BenchmarkFirstRun pokes a function and runs it: it measures the fetch of new text.
func BenchmarkFirstRun(b *testing.B) {
	code := []byte{0x39, 0xc1, 0x77, 0x06, 0xf6, 0xc2, 0x01, 0x74, 0x01, 0x90, 0x0f, 0xb6, 0x06, 0xc1, 0xe0, 0x03, 0xc3}
	onBoth(b, &image{code: code}, func(b *testing.B, m engine) {
		stop := measure(b, m)
		for b.Loop() {
			require.NoError(b, m.PokeText(codeBase, code))
			_, err := m.CallAddr(codeBase, 0, uint64(dataBase))
			require.NoError(b, err)
		}
		stop()
	})
}
