package process_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/assemble"
	"kprobelab/internal/process"
	"kprobelab/internal/tinyprogram"
)

// A program is in user mode: a privileged instruction ends in the processor's exception for it, and
// in the kernel's signal for that exception.
func TestPrivilegedInstructionsFault(t *testing.T) {
	const segv, ill = process.SIGSEGV, process.SIGILL
	for text, want := range map[string]process.Signal{
		"cli": segv, "sti": segv, "hlt": segv,
		".byte 0xec": segv, ".byte 0xee": segv, ".byte 0xe4,0x80": segv, ".byte 0xe6,0xf0": segv, ".byte 0x66,0xed": segv, ".byte 0xef": segv, // in, out
		".byte 0x6c": segv, ".byte 0x6f": segv, ".byte 0xf3,0x6e": segv, // ins, outs
		".byte 0x0f,0x30": segv, ".byte 0x0f,0x32": segv, ".byte 0x0f,0x33": segv, // wrmsr, rdmsr, rdpmc
		".byte 0x0f,0x20,0xc0": segv, ".byte 0x0f,0x20,0xd8": segv, ".byte 0x44,0x0f,0x20,0xc0": segv, // mov of cr0, cr3, cr8
		".byte 0x0f,0x22,0xc0": segv, ".byte 0x0f,0x22,0xd8": segv, ".byte 0x0f,0x22,0xe0": segv, // to cr0, cr3, cr4
		".byte 0x0f,0x21,0xf8": segv, ".byte 0x0f,0x21,0xc0": segv, ".byte 0x0f,0x23,0xf8": segv, ".byte 0x0f,0x23,0xc0": segv, // dr7, dr0
		".byte 0x0f,0x01,0x14,0x24": segv, ".byte 0x0f,0x01,0x1c,0x24": segv, // lgdt, lidt
		".byte 0x0f,0x00,0xd0": segv, ".byte 0x0f,0x00,0xd8": segv, // lldt, ltr
		".byte 0x0f,0x01,0xf0": segv, ".byte 0x0f,0x01,0x3c,0x24": segv, ".byte 0x0f,0x01,0xf8": segv, // lmsw, invlpg, swapgs
		".byte 0x0f,0x06": segv, ".byte 0x0f,0x08": segv, ".byte 0x0f,0x09": segv, // clts, invd, wbinvd
		".byte 0x0f,0x07": segv, ".byte 0x48,0x0f,0x07": segv, ".byte 0x0f,0x35": segv, // sysret, sysexit
		".byte 0x0f,0x01,0xca": ill, ".byte 0x0f,0x01,0xcb": ill, // clac, stac
		".byte 0x0f,0x01,0xc1": ill, ".byte 0x0f,0x01,0xd8": ill, // vmcall, vmrun
	} {
		t.Run(text, func(t *testing.T) {
			onEngines(t, process.Config{Program: program(t, text)}, func(t *testing.T, _ *process.Process, x process.Exit, err error) {
				require.NoError(t, err)
				require.Equal(t, want, x.Signal, "exit code %d", x.Code)
				require.EqualValues(t, tinyprogram.Text, x.Regs.IP)
			})
		})
	}
}

// program begins with an instruction, which may be given by its bytes.
func program(t testing.TB, text string) *process.File {
	f := build(t, "nop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nxor %edi,%edi"+exit)
	code := bytesOf(t, text)
	copy(f.Data[tinyprogram.Offset(0):], code)
	return f
}

func bytesOf(t testing.TB, text string) (code []byte) {
	if len(text) < 5 || text[:5] != ".byte" {
		code, err := assemble.Code(text, tinyprogram.Text)
		require.NoError(t, err)
		return code
	}
	for at := 6; at < len(text); at += 5 {
		var b byte
		_, err := fmt.Sscanf(text[at:], "0x%x", &b)
		require.NoError(t, err)
		code = append(code, b)
	}
	return code
}

// The kernel's half of the addresses does not exist for a program: it can neither read, write nor
// execute the machine's memory there, also right after the machine itself has executed it.
func TestKernelsHalfIsNotThere(t *testing.T) {
	const own = "movabs $0xffffffffc0001040,%rbx\n" // the machine's own code for programs
	const heap = "movabs $0xffff888000001000,%rbx\n"
	for name, text := range map[string]string{
		"read_of_the_machines_code":     own + "mov (%rbx),%eax",
		"write_of_the_machines_code":    own + "mov %eax,(%rbx)",
		"call_of_the_machines_code":     own + "call *%rbx",
		"jump_to_its_end":               own + "add $0x16,%rbx\njmp *%rbx",
		"jump_to_a_stub":                "movabs $0xffffffffc0000010,%rbx\njmp *%rbx",
		"read_of_a_stub":                "movabs $0xffffffffc0000010,%rbx\nmovzbl (%rbx),%eax",
		"read_of_the_machines_heap":     heap + "mov (%rbx),%rax",
		"write_of_the_machines_heap":    heap + "mov %rax,(%rbx)",
		"after_system_calls":            call("0x27") + call("0x18") + heap + "mov (%rbx),%rax",
		"after_a_fork":                  call("0x39") + "mov %eax,%r12d\n" + call("0x18") + own + "call *%rbx",
		"stack_in_the_heap":             heap + "mov %rbx,%rsp\npush %rax",
		"executed_across_the_last_page": "movabs $0x7fffffffffff,%rbx\njmp *%rbx",
		"read_across_the_last_page":     "movabs $0x7ffffffffffc,%rbx\nmov (%rbx),%rax",
	} {
		t.Run(name, func(t *testing.T) {
			onEngines(t, process.Config{Program: build(t, text+"\nxor %edi,%edi"+exit)}, func(t *testing.T, _ *process.Process, x process.Exit, err error) {
				require.NoError(t, err)
				require.Equal(t, process.SIGSEGV, x.Signal, "exit code %d", x.Code)
			})
		})
	}
}

// User mode has the selectors of a program, and flags that it cannot change.
func TestModeOfAProgram(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		code int
	}{
		"interrupts_stay_enabled": {"push $0x2\npopf\npushf\npop %rdi\nshr $0x8,%rdi\nand $0x2,%edi" + exit, 2},
		"no_io_privilege":         {"push $0x3202\npopf\npushf\npop %rdi\nshr $0xc,%rdi\nand $0x3,%edi" + exit, 0},
		"direction_can_be_set":    {"std\npushf\npop %rdi\ncld\nshr $0x8,%rdi\nand $0x4,%edi" + exit, 4},
		"alignment_check_too":     {"pushf\norl $0x40000,(%rsp)\npopf\npushf\npop %rdi\nshr $0x10,%rdi\nand $0x4,%edi" + exit, 4},
		"after_a_system_call":     {call("0x27") + "push $0x2\npopf\npushf\npop %rdi\nshr $0x8,%rdi\nand $0x2,%edi" + exit, 2},
	} {
		t.Run(name, func(t *testing.T) {
			onEngines(t, process.Config{Program: build(t, c.text)}, func(t *testing.T, _ *process.Process, x process.Exit, err error) {
				require.NoError(t, err)
				require.Zero(t, x.Signal)
				require.Equal(t, c.code, x.Code)
			})
		})
	}
}

// Instructions before a privileged instruction have been executed, later ones have not. The same
// holds after the text has changed, and for more of them than an engine keeps separately.
func TestRegistersAtAPrivilegedInstruction(t *testing.T) {
	for _, text := range []string{"cli", "hlt", ".byte 0xec", ".byte 0xef", ".byte 0x6e", ".byte 0x0f,0x33", ".byte 0x0f,0x23,0xf8", ".byte 0x0f,0x30", ".byte 0x66,0x0f,0x07"} {
		t.Run(text, func(t *testing.T) {
			const before = "mov $0x5,%ebx\nadd $0x2,%ebx\n"
			at := len(bytesOf(t, before))
			f := build(t, before+"nop\nnop\nnop\nnop\nmov $0x9,%ebx\nmov $0x3,%edi"+exit)
			copy(f.Data[tinyprogram.Offset(0)+uint64(at):], bytesOf(t, text))
			onEngines(t, process.Config{Program: f}, func(t *testing.T, _ *process.Process, x process.Exit, err error) {
				require.NoError(t, err)
				require.Equal(t, process.SIGSEGV, x.Signal)
				require.EqualValues(t, 7, x.Regs.BX)
				require.EqualValues(t, tinyprogram.Text.Add(int64(at)), x.Regs.IP)
			})
		})
	}
}

// A handler of SIGSEGV goes over each of many instructions of a byte, all privileged.
func TestManyPrivilegedInstructions(t *testing.T) {
	const n = 1500
	restorer := "mov $0xf,%eax\nsyscall\n"
	// The handler moves the ip in its frame (at 168 in the ucontext, which rdx has) by one, and counts.
	handler := "mov $0x402800,%esi\nincl (%rsi)\nincq 0xa8(%rdx)\nret"
	code := "mov $0x402100,%ecx\nmovl $0x401180,(%rcx)\nmovl $0x44000004,0x8(%rcx)\nmovl $0x401100,0x10(%rcx)\nmov $0xb,%edi\nmov %rcx,%rsi\nxor %edx,%edx\nmov $0x8,%r10d\nmov $0xd,%eax\nsyscall\nmov $0x401200,%eax\njmp *%rax"
	b, err := tinyprogram.Build(nil, tinyprogram.Function{Name: "_start", Text: code}, tinyprogram.Function{Name: "unused", Text: "nop"},
		tinyprogram.Function{Name: "restorer", Text: restorer}, tinyprogram.Function{Name: "handler", Text: handler},
		tinyprogram.Function{Name: "ports", Text: "nop"})
	require.NoError(t, err)
	for i := range n {
		b[tinyprogram.Offset(4)+uint64(i)] = 0xec
	}
	copy(b[tinyprogram.Offset(4)+n:], bytesOf(t, "mov $0x402800,%esi\nmov (%rsi),%edi\nshr $0x2,%edi"+exit))
	onEngines(t, process.Config{Program: &process.File{Name: "/bin/prog", Data: b}}, func(t *testing.T, _ *process.Process, x process.Exit, err error) {
		require.NoError(t, err)
		require.Zero(t, x.Signal)
		require.Equal(t, n>>2&0xff, x.Code)
	})
}
