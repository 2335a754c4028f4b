package decoder

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/arch/x86/x86asm"
)

var update = flag.Bool("update", false, "rewrite the x86asm column of opcodes/*.txt")

// TestOverrides: every row describes the x86asm in go.mod correctly. If a release of x86asm adds an
// encoding, its row is no override any more.
func TestOverrides(t *testing.T) {
	for e := EncPrimary; e < numEncodings; e++ {
		t.Run(e.String(), func(t *testing.T) {
			found := map[int]Fault{}
			rows := opcodesOf(e).rows
			for n := range rows {
				r := &rows[n]
				if r.form.flags&withoutMPX != 0 {
					continue // no row of Decode's processor
				}
				samples := r.samples(e, 96)
				require.NotEmpty(t, samples, "line %d: no instruction is of this row", r.line)
				found[r.line] = faultIn(samples)
				if r.x86asm != found[r.line] && !*update {
					t.Errorf("opcodes/%s.txt:%d: %s: x86asm's column says %q, and %q is so; run go test -update",
						e, r.line, r.mnemonic, r.x86asm, found[r.line])
				}
			}
			if *update {
				rewriteColumn(t, "opcodes/"+e.String()+".txt", found)
			}
		})
	}
	require.Greater(t, len(Overrides()), 500)
}

// faultIn classifies the errors in x86asm's lengths and names of the samples.
func faultIn(samples [][]byte) Fault {
	refused, wrong, named := 0, 0, 0
	for _, b := range samples {
		i, _ := Decode(b)
		asm, err := x86asm.Decode(b, 64)
		switch {
		case err != nil || asm.Op == 0:
			refused++
		case asm.Len != i.Length:
			wrong++
		case !sameName(asm.Op, i.Mnemonic()):
			named++
		}
	}
	switch {
	case refused == len(samples):
		return FaultSilent
	case refused+wrong == len(samples):
		return FaultLength
	case named > 0:
		return FaultName
	case refused+wrong > 0:
		return FaultSome
	}
	return FaultNone
}

// x86asmNames are x86asm's names of instructions that the manual has another
// one for.
var x86asmNames = map[x86asm.Op]string{
	x86asm.JAE: "jnb", x86asm.JE: "jz", x86asm.JNE: "jnz", x86asm.JA: "jnbe", x86asm.JGE: "jnl", x86asm.JG: "jnle",
	x86asm.CMOVAE: "cmovnb", x86asm.CMOVE: "cmovz", x86asm.CMOVNE: "cmovnz", x86asm.CMOVA: "cmovnbe", x86asm.CMOVGE: "cmovnl", x86asm.CMOVG: "cmovnle",
	x86asm.SETAE: "setnb", x86asm.SETE: "setz", x86asm.SETNE: "setnz", x86asm.SETA: "setnbe", x86asm.SETGE: "setnl", x86asm.SETG: "setnle",
	x86asm.LRET: "retf", x86asm.LCALL: "callf", x86asm.LJMP: "jmpf", x86asm.INT: "int3", x86asm.ICEBP: "int1", x86asm.XLATB: "xlat",
	x86asm.MOVSD_XMM: "movsd", x86asm.CMPSD_XMM: "cmpsd", x86asm.VPEXTRW_C5: "vpextrw",
	x86asm.VPCMPESTRM64: "vpcmpestrm", x86asm.VPCMPESTRI64: "vpcmpestri", x86asm.VPCMPISTRI64: "vpcmpistri",
}

func sameName(op x86asm.Op, mnemonic string) bool {
	return strings.EqualFold(op.String(), mnemonic) || x86asmNames[op] == mnemonic
}

func rewriteColumn(t *testing.T, name string, found map[int]Fault) {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	lines := strings.SplitAfter(string(text), "\n")
	for n, fault := range found {
		f := strings.Fields(lines[n-1])
		lines[n-1] = formatRow(f[:8], fault.String(), f[9], f[10], strings.Join(f[textColumn:], " "))
	}
	require.NoError(t, os.WriteFile(name, []byte(strings.Join(lines, "")), 0o666))
}

func formatRow(f []string, x86asm, ext, mnemonic, text string) string {
	return fmt.Sprintf("%s  %-9s %s %-3s %s  %-10s %-5s %-23s %-6s  %-16s %-18s %s\n",
		f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], x86asm, ext, mnemonic, text)
}

// TestOverridesAreDescribed: each has a manual to look it up in.
func TestOverridesAreDescribed(t *testing.T) {
	for _, o := range Overrides() {
		require.NotEqual(t, FaultNone, o.Fault)
		require.NotEmpty(t, o.Mnemonic)
		require.Contains(t, o.Reference, page(o.Mnemonic))
	}
}

// TestX86asmAgrees: in the other direction, x86asm checks the rows without a fault: length, class
// and target.
func TestX86asmAgrees(t *testing.T) {
	compared := 0
	for e := EncPrimary; e < numEncodings; e++ {
		rows := opcodesOf(e).rows
		for n := range rows {
			if rows[n].x86asm != FaultNone {
				continue
			}
			for _, b := range rows[n].samples(e, 96) {
				i, err := Decode(b)
				require.NoError(t, err)
				asm, ok := i.X86asm()
				require.True(t, ok, "% x", b)
				require.Equal(t, classOfX86asm(&asm), i.Class, "% x %v", b, asm)
				if rel, ok := relOf(&asm); ok {
					require.Equal(t, rel, i.Rel, "% x", b)
				}
				compared++
			}
		}
	}
	require.Greater(t, compared, 20_000)
}

func relOf(asm *x86asm.Inst) (int64, bool) {
	for _, a := range asm.Args {
		if rel, ok := a.(x86asm.Rel); ok {
			return int64(rel), true
		}
	}
	return 0, false
}

func classOfX86asm(asm *x86asm.Inst) Class {
	_, relative := relOf(asm)
	c, ok := x86asmClasses[asm.Op]
	switch {
	case c == ClassCall && !relative:
		return ClassIndirectCall
	case c == ClassJmp && !relative:
		return ClassIndirectJmp
	case !ok && relative && asm.Op != x86asm.XBEGIN:
		return ClassJcc
	}
	return c
}

var x86asmClasses = map[x86asm.Op]Class{
	x86asm.CALL: ClassCall, x86asm.JMP: ClassJmp, x86asm.RET: ClassRet,
	x86asm.LOOP: ClassLoop, x86asm.LOOPE: ClassLoop, x86asm.LOOPNE: ClassLoop,
	x86asm.JCXZ: ClassLoop, x86asm.JECXZ: ClassLoop, x86asm.JRCXZ: ClassLoop,
	x86asm.INT: ClassInt, x86asm.ICEBP: ClassInt,
	x86asm.SYSCALL: ClassSyscall, x86asm.SYSENTER: ClassSyscall, x86asm.SYSEXIT: ClassSyscall, x86asm.SYSRET: ClassSyscall,
	x86asm.LCALL: ClassFar, x86asm.LJMP: ClassFar, x86asm.LRET: ClassFar,
	x86asm.IRET: ClassFar, x86asm.IRETD: ClassFar, x86asm.IRETQ: ClassFar,
	x86asm.UD0: ClassUndefined, x86asm.UD1: ClassUndefined, x86asm.UD2: ClassUndefined,
}
