package assemble

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
)

func printed(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return string(b)
}

// instructions lists the names and lengths of the instructions, and leaves padding out. Branches may be
// shorter without alignment, and symbols are at other places.
func instructions(t *testing.T, code []byte) (list []string) {
	t.Helper()
	for len(code) > 0 {
		i, err := decoder.Decode(code)
		require.NoError(t, err)
		name, _, _ := strings.Cut(i.Text(base), " ")
		if !strings.Contains(i.Text(base), "nop") && !strings.Contains(i.Text(base), "xchg %ax,%ax") {
			if !i.HasTarget && !i.RIPRelative {
				name = i.Text(base)
			}
			list = append(list, name)
		}
		code = code[i.Length:]
	}
	return list
}

// What gcc -S and objdump -d print of one function (testdata/f.c) is the same instructions in each form.
func TestWhatToolsPrint(t *testing.T) {
	want, err := Code(printed(t, "objdump.txt"), base)
	require.NoError(t, err)
	for _, name := range []string{"objdump-plain.txt", "gcc.s"} {
		code, err := Code(printed(t, name), base)
		require.NoError(t, err, name)
		require.Equal(t, instructions(t, want), instructions(t, code), name)
	}
	_, err = Code(printed(t, "gcc-O0.s"), base)
	require.NoError(t, err)
}

// Intel's syntax is named, and written in GNU syntax on request.
func TestIntelSyntax(t *testing.T) {
	text := printed(t, "gcc-intel.s")
	_, err := Code(text, base)
	var intel *IntelError
	require.ErrorAs(t, err, &intel)
	want, err := Code(printed(t, "gcc.s"), base)
	require.NoError(t, err)
	code, err := Code(FromIntel(text), base)
	require.NoError(t, err)
	require.Equal(t, instructions(t, want), instructions(t, code))

	_, err = Code("push rbp\nmov rbp, rsp\nret", base)
	require.ErrorAs(t, err, &intel)
	require.Equal(t, "push rbp", intel.Line)
	for from, to := range map[string]string{
		"mov DWORD PTR [rbp-20], edi": "mov %edi,-20(%rbp)", "mov eax, DWORD PTR [rbp-20]": "mov -20(%rbp),%eax", "lea rax, [rdi+rdi*2]": "lea (%rdi,%rdi,2),%rax",
		"mov edi, OFFSET FLAT:.LC0": "mov $.LC0,%edi", "movzx eax, BYTE PTR [rdi]": "movzbl (%rdi),%eax", "movsx rax, dl": "movsbq %dl,%rax", "movsxd rdx, edx": "movslq %edx,%rdx",
		"add QWORD PTR [rax+8], 1": "addq $1,8(%rax)", "cmp BYTE PTR [rdi], 0": "cmpb $0,(%rdi)", "call memcpy": "call memcpy", "jmp [QWORD PTR .L4[0+rax*8]]": "", "jmp rax": "jmp *%rax", "cdqe": "cltq",
		"mov rax, QWORD PTR fs:40": "mov %fs:40,%rax", "lock add DWORD PTR count[rip], 1": "lock addl $1,count(%rip)", "shl DWORD PTR [rdi], cl": "shll %cl,(%rdi)", "mov eax, DWORD PTR table[0+rdi*4]": "mov table+0(,%rdi,4),%eax",
		".L3:": ".L3:", "a: ret ; that is all": "a:\tret",
	} {
		if to != "" {
			require.Equal(t, to, strings.TrimSpace(FromIntel(from)), from)
		}
	}
}

// Prefixes, segments, other names, and lines that disassemblers print.
func TestOtherSpellings(t *testing.T) {
	for text, want := range map[string]string{
		"pushq %rbp\nmovq %rsp, %rbp": "55 48 89 e5",
		"movl %eax,(%rdi)":            "89 07",
		"xorl %eax, %eax":             "31 c0",
		"jz +0":                       "74 fe",
		"setnz %al":                   "0f 95 c0",
		"cmovzq %rsi,%rax":            "48 0f 44 c6",
		"sall $2,%eax":                "c1 e0 02",
		"sarq %rdx":                   "48 d1 fa",
		"movq %gs:40,%rax":            "65 48 8b 04 25 28 00 00 00",
		"lock incl (%rdi)":            "f0 ff 07",
		"rep stosq":                   "f3 48 ab",
		"rep ret":                     "f3 c3",
		"notrack jmp *%rax":           "3e ff e0",
		"call memcpy@PLT":             "e8 fb ff 0f 00",
		"call a\ncall b\ncall a":      "e8 fb ff 0f 00 e8 06 00 10 00 e8 f1 ff 0f 00",
		"lea 1f(%rip),%rax\n1: ret":   "48 8d 05 00 00 00 00 c3",
		"1: jmp 1b\njmp 1f\n1: ret":   "",
		".text\n.globl f\nf:\n.cfi_startproc\nmovl table+4(%rip),%eax\n.section .rodata\n.long 5\n.text\nret": "8b 05 fe ff 0f 00 c3",
		".byte 0x90, 0xcc": "90 cc",
		"  0:\t55                   \tpush   %rbp\n   1:\teb fd\tjmp    0 <f>":                                                      "55 eb fd",
		"ffffffff8134cd50 <kfree>:\nffffffff8134cd50:\t0f 1f 44 00 00       \tnopl   0x0(%rax,%rax,1)\nffffffff8134cd55:\tc3 \tret": "0f 1f 44 00 00 c3",
		"   0x0000000000001139 <+0>:\tpush   %rbp\n=> 0x000000000000113a <+1>:\tjmp    0x1139 <main>\n":                             "55 eb fd",
		" 55                   \tpush   rbp\n 48 89 e5             \tmov    rbp,rsp":                                                "55 48 89 e5",
		"401126 55 push rbp\n401127 c3 ret":                                                 "55 c3",
		"   7:\t48 b8 88 77 66 55 44 \tmovabs $0x1122334455667788,%rax\n   e:\t33 22 11 \n": "48 b8 88 77 66 55 44 33 22 11",
	} {
		code, err := Code(text, base)
		if want == "" {
			require.ErrorContains(t, err, "the label 1 is there twice")
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, strings.ReplaceAll(want, " ", ""), hexOf(code), text)
	}
	for text, says := range map[string]string{
		"0: 55\n2: c3": "line 2: the code has a gap: 0x2 follows, not 0x1",
		"0000000000000000 <f>:\n 0:\t55\n0000000000000001 <g>:\n 1:\tc3": "line 3: these are several functions, f and g: take one",
		"nop\n.long 5":        "line 2: .long puts data into the code",
		".rept 4\nnop\n.endr": ".rept is not understood",
		".byte 300":           `"300" is no byte`,
		"movq %eax,%ebx":      "does not go with these operands",
		"pushl %rbp":          "there is no instruction pushl",
	} {
		_, err := Code(text, base)
		require.ErrorContains(t, err, says, text)
	}
}

func hexOf(b []byte) string { return hex.EncodeToString(b) }
