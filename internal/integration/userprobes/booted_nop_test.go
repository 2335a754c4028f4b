package userprobes

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/tinyprogram"
)

// Pieces of programs whose second function begins with a nop of five or ten bytes, or with the call
// that has replaced it: calls of the function, and pieces that print its bytes, or the bytes of the
// trampoline that it calls.
const (
	ofNop = "call 0x401080\n"
	shown = "mov $0x401080,%esi\nmov $0x10,%edx\nmov $0x1,%eax\nmov $0x1,%edi\nsyscall\n"
)

// called writes the trampoline of a call that ends so many bytes after the nop's beginning.
func called(end int) string {
	return fmt.Sprintf("mov $0x401080,%%esi\nmov 0x%x(%%rsi),%%eax\nlea 0x%x(%%rsi,%%rax,1),%%esi\nmov $0x40,%%edx\nmov $0x1,%%eax\nmov $0x1,%%edi\nsyscall\n", end-4, end)
}

// Rule: a nop of five or ten bytes becomes a call at its first hit. The bytes, the trampoline,
// registers and stack, and the state after fork and after the end of the probe, equal those of a
// kernel that does it.
func TestNopsAsOnBootedKernels(t *testing.T) {
	const end = "xor %edi,%edi" + exit
	type program struct {
		text   string
		events []string
	}
	programs := func(nop []byte) map[string]program {
		after := fmt.Sprintf("p:uprobes/b /prog:%#x", 0x1080+len(nop))
		return map[string]program{
			"three_hits": {"mov $0x1,%eax\nmov $0x2,%ecx\nmov $0x3,%r11d\n" + ofNop + ofNop + ofNop + "add %ecx,%eax\nadd %r11d,%eax\nmov %eax,%edi" + exit,
				[]string{"p:uprobes/a /prog:0x1080 %ax %cx %r11 %ip $stack0"}},
			"bytes":        {ofNop + shown + end, []string{"p:uprobes/a /prog:0x1080"}},
			"trampoline":   {ofNop + ofNop + called(len(nop)) + end, []string{"p:uprobes/a /prog:0x1080"}},
			"return":       {ofNop + ofNop + ofNop + shown + end, []string{"r:uprobes/r /prog:0x1080 %ax %cx %ip", "p:uprobes/a /prog:0x1080 %ip"}},
			"fork":         {ofNop + ofNop + inBoth + shown + end, []string{"p:uprobes/a /prog:0x1080"}},
			"fork_status":  {ofNop + ofNop + fork + "test %eax,%eax\nje child\nsub $0x8,%rsp\nmov %rsp,%rsi\nxor %edi,%edi\nxor %edx,%edx\nxor %r10d,%r10d\nmov $0x3d,%eax\nsyscall\nmov (%rsp),%edi" + exit + "\nchild: " + ofNop + end, []string{"p:uprobes/a /prog:0x1080"}},
			"fork_before":  {inBoth + ofNop + shown + end, []string{"p:uprobes/a /prog:0x1080"}},
			"call_by_hand": {"mov $0x150,%eax\nsyscall\nneg %eax\nmov %eax,%edi\n" + "call 0x401080" + exit, []string{"p:uprobes/a /prog:0x1080 %cx"}},
			"red_zone":     {"movq $0x7,-0x8(%rsp)\n" + "lea -0x80(%rsp),%rsp\nlea 0x80(%rsp),%rsp\n" + ofNop + ofNop + "mov $0x5,%edi" + exit, []string{"p:uprobes/a /prog:0x1080 +0(%sp):x64"}},
			"below_the_stack": {"movq $0x7,-0x10(%rsp)\n" + ofNop + "mov -0x10(%rsp),%ebx\n" + ofNop + "mov -0x10(%rsp),%edi\nand $0x3f,%edi\nshl $0x3,%ebx\nxor %ebx,%edi" + exit,
				[]string{"p:uprobes/a /prog:0x1080"}},
			"return_after": {ofNop + ofNop + shown + end, []string{"p:uprobes/a /prog:0x1080", after}},
		}
	}
	eachKernel(t, func(t *testing.T, b *bootedKernel) {
		var nop []byte
		switch u := &b.Image.Profile().Uprobes; {
		case u.OptimizesNop10:
			nop = []byte{0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}
		case u.OptimizesNop5:
			nop = []byte{0x0f, 0x1f, 0x44, 0, 0}
		default:
			t.Skip("this kernel makes no calls of nops")
		}
		for name, c := range programs(nop) {
			t.Run(name, func(t *testing.T) {
				f := small(t, nil, c.text, "ret")
				copy(f.Data[tinyprogram.Offset(1):], append(slices.Clip(nop), 0xc3))
				want, got := b.run(f, nil, nil, c.events...), b.alone(f, nil, nil, c.events...)
				require.Equal(t, byTask(want.trace), byTask(got.trace))
				require.Equal(t, want.stdout, got.stdout)
				require.Equal(t, want.code, got.code)
				require.NotEmpty(t, got.trace)
				require.Less(t, got.code, 128)
			})
		}
	})
}

// inBoth forks, and calls the function in both, the child first.
const inBoth = fork + "test %eax,%eax\nje child\n" + wait + "\nchild: " + ofNop
