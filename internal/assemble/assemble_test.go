package assemble

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/x86"
)

const base = x86.Addr(0xffffffff81000000)

func TestCode(t *testing.T) {
	for text, want := range map[string]string{
		"push %rbp":                      "55",
		"push %r12":                      "41 54",
		"mov %rsp,%rbp":                  "48 89 e5",
		"mov %sil, %al":                  "40 88 f0",
		"mov $1,%eax":                    "b8 01 00 00 00",
		"mov $-1,%rax":                   "48 c7 c0 ff ff ff ff",
		"movabs $0x1122334455667788,%r8": "49 b8 88 77 66 55 44 33 22 11",
		"movl $5,8(%rsp)":                "c7 44 24 08 05 00 00 00",
		"mov 0x10(%rip),%rax":            "48 8b 05 10 00 00 00",
		"lea (%rax,%rcx,4),%rdx":         "48 8d 14 88",
		"lea -0x8(%r13),%rdi":            "49 8d 7d f8",
		"mov (%r12),%eax":                "41 8b 04 24",
		"add $8,%rsp":                    "48 83 c4 08",
		"add $0x1000,%ecx":               "81 c1 00 10 00 00",
		"cmpb $0,(%rdi)":                 "80 3f 00",
		"test %eax,%eax":                 "85 c0",
		"xor %r9d,%r9d":                  "45 31 c9",
		"imul %rsi,%rdi":                 "48 0f af fe",
		"movzbl (%rdi),%eax":             "0f b6 07",
		"cmove %rsi,%rax":                "48 0f 44 c6",
		"sete %al":                       "0f 94 c0",
		"inc %eax":                       "ff c0",
		"neg %rax":                       "48 f7 d8",
		"shl $3,%rdx":                    "48 c1 e2 03",
		"ret":                            "c3",
		"leave":                          "c9",
		"nop":                            "90",
		"int3":                           "cc",
		"ud2":                            "0f 0b",
		"endbr64":                        "f3 0f 1e fa",
		"call *%rax":                     "ff d0",
		"jmp *(%rax)":                    "ff 20",
		"callq +0x100":                   "e8 fb 00 00 00",
		"jmp 0xffffffff81000000":         "eb fe",
		"1: dec %edi; jne 1 # down":      "ff cf 75 fc",
		"top: dec %edi\njne top\nret":    "ff cf 75 fc c3",
		"jmp end\nend:":                  "eb 00",
		"# nothing\n\n":                  "",
	} {
		code, err := Code(text, base)
		require.NoError(t, err)
		require.Equal(t, want, fmt.Sprintf("% x", code), text)
	}
}

// A branch over more than 127 bytes becomes long, and so do those that it pushes apart.
func TestBranchesGrow(t *testing.T) {
	text := "jmp end\n"
	for range 126 {
		text += "nop\n"
	}
	short, err := Code(text+"end: ret", base)
	require.NoError(t, err)
	require.Equal(t, []byte{0xeb, 126}, short[:2])
	long, err := Code(text+"nop\nnop\nend: je end\nret", base)
	require.NoError(t, err)
	require.Equal(t, []byte{0xe9, 128, 0, 0, 0}, long[:5])
}

func TestWhatIsNotUnderstood(t *testing.T) {
	for text, says := range map[string]string{
		"frob %rax":             "line 1: frob %rax: there is no instruction frob here",
		"nop\nmov %rax":         "line 2: mov %rax: mov does not go with these operands",
		"add $1,(%rax)":         "this may be addb, addl, addq, addw",
		"mov %foo,%rax":         "no register %foo",
		"jmp nowhere":           `"nowhere" is no operand, and no label`,
		"mov $x,%rax":           `"x" is no number`,
		"mov 8(%rax,%rsp),%rax": "memory is such as",
		"mov 8(%eax),%rax":      "memory is such as",
		"a:\na: nop":            "the label a is there twice",
		"add $0x100000000,%rax": "does not go with these operands",
		"mov %rax,%ebx":         "does not go with these operands",
		"mov ,":                 "is no operand",
	} {
		_, err := Code(text, base)
		require.ErrorContains(t, err, says, text)
	}
}

// beyond is what is not common: other registers than the sixteen, ports, prefixes that
// do not belong there, instructions of two words.
var beyond = regexp.MustCompile(`%(xmm|mm|bnd|st|cr|db|[cdefgs]s)|\(%dx\)|^(rep|repn|repn?z|data16|rex\S*|bnd|xrelease|xacquire|f\w+|enter\w?|movabs|rmp(update|read)|invlpga|prefetch|stmxcsr|xrstors\S*|in|out)\b`)

// noZero is a text without a displacement of 0, which has two lengths.
func noZero(text string) string { return strings.ReplaceAll(text, "0x0(", "(") }

// What the decoder says of an instruction assembles to code of which it says the same,
// and which is no longer.
func TestTheDecodersTextAssembles(t *testing.T) {
	n := 0
	for _, e := range []decoder.Encoding{decoder.EncPrimary, decoder.Enc0F} {
		for _, b := range decoder.Samples(e, selectors) {
			i, err := decoder.Decode(b)
			require.NoError(t, err)
			text := i.Text(base)
			if beyond.MatchString(text) {
				continue
			}
			code, err := Code(text, base)
			require.NoError(t, err)
			require.Equal(t, noZero(text), noZero(decoder.Text(code, base)), "% x", b[:i.Length])
			require.LessOrEqual(t, len(code), i.Length, text)
			n++
		}
	}
	require.Greater(t, n, 1400)
}

func BenchmarkCode(b *testing.B) {
	for b.Loop() {
		_, err := Code("push %rbp\nmov %rsp,%rbp\ntop: mov 8(%rdi,%rcx,4),%eax\ndec %rcx\njne top\npop %rbp\nret", base)
		require.NoError(b, err)
	}
}

func FuzzCode(f *testing.F) {
	for _, text := range []string{"a: mov 8(%rax,%rcx,2),%eax\njmp a", "add $-1,%r8", "call *%rax", "jne +4", "mov ("} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		code, err := Code(text, base)
		if err != nil {
			return
		}
		for len(code) > 0 {
			i, err := decoder.Decode(code)
			require.NoError(t, err)
			code = code[i.Length:]
		}
	})
}
