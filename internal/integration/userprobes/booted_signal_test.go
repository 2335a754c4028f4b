package userprobes

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Programs of signals have their handler as the second function, and this as the third.
const restorer = "mov $0xf,%eax\nsyscall"

// handled says in the data that a signal's handler is the program's second function.
func handled() string {
	const info, restore = 4, 0x04000000
	b := binary.LittleEndian.AppendUint64(nil, 0x401080)
	b = binary.LittleEndian.AppendUint64(b, info|restore)
	b = binary.LittleEndian.AppendUint64(b, 0x401100)
	return string(binary.LittleEndian.AppendUint64(b, 0))
}

// handle sets the handler of a signal.
func handle(signal string) string {
	return "mov $0xd,%eax\nmov $" + signal + ",%edi\nmov $0x402000,%esi\nxor %edx,%edx\nmov $0x8,%r10d\nsyscall\n"
}

// inHandler is an event with a handler's arguments: siginfo, and of the context the registers, ip,
// flags, segments, error, trap, mask and address.
const inHandler = "p:uprobes/handler /prog:0x1080 %di no=+0(%si):s32 code=+8(%si):s32 stack=+24(%dx):x32 bx=+128(%dx):x64 ip=+168(%dx):x64" +
	" flags=+176(%dx):x64 segments=+184(%dx):x64 error=+192(%dx):x64 trap=+200(%dx):x64 mask=+208(%dx):x64 cr2=+216(%dx):x64"

// withoutRF removes the flag that a processor sets in the saved flags of a fault, and Unicorn does
// not: TestSignals compares it with the host.
func withoutRF(lines []string) (list []string) {
	for _, line := range lines {
		list = append(list, strings.Replace(line, "flags=0x10", "flags=0x", 1))
	}
	return list
}

// Rule: uprobes act at a signal as the kernel's own do.
func TestSignalsAsOnBootedKernels(t *testing.T) {
	const kill = "mov $0x27,%eax\nsyscall\nmov %eax,%edi\nmov $0xa,%esi\nmov $0x3e,%eax\nsyscall\n"
	cases := map[string]struct {
		functions []string
		events    []string
	}{
		"fault_without_a_probe": {
			functions: []string{handle("0xb") + "mov $0x10,%ebx\nmov (%rbx),%eax", "mov $0x5,%edi" + exit, restorer},
			events:    []string{inHandler + " addr=+16(%si):x64"},
		},
		"fault_at_a_probe": {
			functions: []string{handle("0xb") + "mov $0x10,%ebx\nmov (%rbx),%eax", "mov $0x5,%edi" + exit, restorer},
			events:    []string{inHandler + " addr=+16(%si):x64", "p:uprobes/a /prog:0x101e"},
		},
		"write_of_text_at_a_probe": {
			functions: []string{handle("0xb") + "mov $0x401000,%ebx\nmov %eax,(%rbx)", "mov $0x5,%edi" + exit, restorer},
			events:    []string{inHandler + " addr=+16(%si):x64", "p:uprobes/a /prog:0x101e"},
		},
		"division_at_a_probe": {
			functions: []string{handle("0x8") + "xor %ebx,%ebx\nnopl (%rax)\ndiv %ebx", "mov $0x5,%edi" + exit, restorer},
			events:    []string{inHandler + " addr=+16(%si):x64", "p:uprobes/a /prog:0x101e"},
		},
		"kill_at_a_probe": {
			functions: []string{handle("0xa") + kill + "xor %edi,%edi\nmov $0x7,%edi" + exit, "ret", restorer},
			events:    []string{inHandler, "p:uprobes/a /prog:0x102c"},
		},
		"every_instruction": {
			functions: []string{handle("0xa") + kill + "xor %edi,%edi\nmov $0x7,%edi" + exit, "push %rdi\npop %rax\nret", "mov $0xf,%eax\nsyscall"},
			events:    []string{inHandler, "p:uprobes/a /prog:0x101e", "p:uprobes/b /prog:0x1081 %di", "p:uprobes/c /prog:0x1082 %ax", "p:uprobes/d /prog:0x1100", "p:uprobes/e /prog:0x102e"},
		},
		"return_of_the_handler": {
			functions: []string{handle("0xa") + kill + "mov $0x7,%edi" + exit, "mov $0x9,%eax\nret", restorer},
			events:    []string{"r:uprobes/a /prog:0x1080 $retval", "p:uprobes/b /prog:0x102e %ax"},
		},
		"sigreturn_at_a_probe": {
			functions: []string{handle("0xa") + kill + "mov $0x7,%edi\nmov $0x8,%edi" + exit, "ret", restorer},
			events:    []string{"p:uprobes/a /prog:0x1105 %ax", "p:uprobes/b /prog:0x102e %di", "p:uprobes/c /prog:0x1033 %di"},
		},
		"jump_out_of_the_handler": {
			// f3 is called, and kills; the handler goes back to its caller.
			functions: []string{
				handle("0xa") + "mov %rsp,%rbx\ncall 0x401180\ncall 0x401200\nmov $0x7,%edi" + exit,
				"mov %rbx,%rsp\nmov $0x401021,%eax\njmp *%rax", restorer, kill + "ret", "mov $0x3,%eax\nret",
			},
			events: []string{"r:uprobes/a /prog:0x1180 $retval", "r:uprobes/b /prog:0x1200 $retval", "r:uprobes/c /prog:0x1080"},
		},
		"the_program_steps_itself": {
			functions: []string{handle("0x5") + "pushf\norl $0x100,(%rsp)\npopf\nnop\npush %rbx\npop %rbx\nxor %ecx,%ecx\nmov $0x7,%edi" + exit, "ret", restorer},
			events:    []string{"p:uprobes/h /prog:0x1080 %di no=+0(%si):s32 code=+8(%si):s32 ip=+168(%dx):x64 trap=+200(%dx):x64", "p:uprobes/a /prog:0x1022", "p:uprobes/b /prog:0x1023", "p:uprobes/c /prog:0x1025"},
		},
	}
	eachKernel(t, func(t *testing.T, b *bootedKernel) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				f := small(t, []byte(handled()), c.functions...)
				want, got := b.run(f, nil, nil, c.events...), b.alone(f, nil, nil, c.events...)
				require.Equal(t, withoutRF(told(want.trace)), withoutRF(told(got.trace)))
				require.Equal(t, want.code, got.code)
				require.NotEmpty(t, got.trace)
			})
		}
	})
}

// Rule: steps and returns are each thread's own, and a thread that a stepped clone has made is killed
// by the trap that it inherits.
func TestThreadsAsOnBootedKernels(t *testing.T) {
	const create = "mov $0x38,%eax\nmov $0x210900,%edi\nmov $0x402f00,%esi\nxor %edx,%edx\nmov $0x402000,%r10d\nsyscall\ntest %eax,%eax\nje out\n" +
		"mov $0xca,%eax\nmov $0x402000,%edi\nxor %esi,%esi\nmov $0x1,%edx\nxor %r10d,%r10d\nsyscall\ncall 0x401080\nmov $0x7,%edi" + exit +
		"\nout: call 0x401080\nmov $0x3c,%eax\nsyscall"
	cases := map[string][]string{
		"each_calls":     {"r:uprobes/a /prog:0x1080 $retval", "p:uprobes/b /prog:0x1080 %ax", "p:uprobes/c /prog:0x1085", "p:uprobes/d /prog:0x1019"},
		"clone_at_probe": {"p:uprobes/c /prog:0x1017 %ax", "p:uprobes/b /prog:0x1080 %ax"},
	}
	eachKernel(t, func(t *testing.T, b *bootedKernel) {
		for name, events := range cases {
			t.Run(name, func(t *testing.T) {
				f := small(t, []byte{1}, create, "mov $0x9,%eax\npush %rax\npop %rax\nret")
				want, got := b.run(f, nil, nil, events...), b.alone(f, nil, nil, events...)
				require.ElementsMatch(t, withoutTID(told(want.trace)), withoutTID(told(got.trace)))
				require.Equal(t, want.code, got.code)
				require.NotEmpty(t, got.trace)
			})
		}
	})
}

// withoutTID takes the number of a new thread away, which clone returned.
func withoutTID(lines []string) (list []string) {
	for _, line := range lines {
		before, after, ok := strings.Cut(line, "arg1=")
		if ok && after != "0x0" && after != "0x9" && after != "0x38" {
			after = "number"
		}
		list = append(list, before+after)
	}
	return list
}
