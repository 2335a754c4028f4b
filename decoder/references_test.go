package decoder

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryRowHasAReference: a volume of a manual, or a document with its number, and the
// instruction's page; no document is listed for an extension without a row.
func TestEveryRowHasAReference(t *testing.T) {
	used, rows := map[string]bool{}, 0
	for _, e := range Encodings() {
		for _, r := range Rows(e) {
			require.Regexp(t, `^(SDM Vol\. [123]|APM Vol\. [3-6]|(Intel|AMD) .*\(\d{5,6}\)|AMD CPUID Fn8000_0025 EDX|VIA PadLock Programming Guide).*, \S+$`, r.Reference, "%v %02x %s, %s", e, r.Opcode, r.Mnemonic, r.Extension)
			used[r.Extension], used["="+r.Mnemonic] = true, true
			rows++
		}
	}
	require.Greater(t, rows, 3000)
	for name := range documents() {
		require.True(t, used[name], "no row is of %s", name)
	}
}

// TestReferences: documents, volumes and pages of one row of each kind.
func TestReferences(t *testing.T) {
	for _, tt := range []struct{ bytes, want string }{
		{"0f 84 00 00 00 00", "SDM Vol. 2, Jcc"},
		{"eb 00", "SDM Vol. 2, JMP"},
		{"0f 94 c0", "SDM Vol. 2, SETcc"},
		{"f3 0f 01 e8", "SDM Vol. 2, SETSSBSY"},
		{"0f 01 c2", "SDM Vol. 3, VMX Instruction Reference, VMLAUNCH"},
		{"0f 37", "SDM Vol. 2, Safer Mode Extensions Reference, GETSEC"},
		{"c4 e2 79 e0 03", "Intel Architecture Instruction Set Extensions Programming Reference (319433), CMPccXADD"},
		{"d6", "Intel Architecture Instruction Set Extensions Programming Reference (319433), UDB"},
		{"62 f5 7d 58 58 40 01", "Intel AVX10.2 Architecture Specification (361050), VADDBF16"},
		{"62 f4 7c 08 01 c0", "Intel APX Architecture Specification (355828), ADD"},
		{"f2 0f 00 f0", "Intel Flexible Return and Event Delivery (FRED) Specification (346446), LKGS"},
		{"0f 01 d8", "APM Vol. 3, System Instruction Reference, VMRUN"},
		{"f3 0f 01 fc", "AMD CPUID Fn8000_0025 EDX (binutils, gas/testsuite/gas/i386/rmpchkd.s; LLVM, llvm/test/MC/X86), RMPCHKD"},
		{"0f 0f c1 9e", "APM Vol. 5, PFADD"},
		{"62 f2 7d 48 c8 c0", "SDM Vol. 2, Instructions unique to Xeon Phi processors, VEXP2PS"},
	} {
		i, err := Decode(padded(unhex(t, tt.bytes)))
		require.NoError(t, err, tt.bytes)
		require.Equal(t, tt.want, Rows(i.Encoding)[i.RowNumber()].Reference, tt.bytes)
		require.Equal(t, strings.ToUpper(i.Mnemonic()[:1]), page(i.Mnemonic())[:1])
	}
}
