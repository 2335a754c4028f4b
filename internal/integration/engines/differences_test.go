//go:build unicorn && cgo && linux && amd64

package engines

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"

	"kprobelab/decoder"
	"kprobelab/x86"
)

// known is a difference that is not interp's fault, or that has no use. Instructions with such a
// difference are not generated.
type known struct {
	name   string
	reason string
	tells  func(i *decoder.Inst) bool
	// example shows it: a test runs it, and it has to differ.
	example string
}

func prefixed(i *decoder.Inst, b byte) bool {
	return bytes.IndexByte(i.Bytes()[:i.PrefixLen], b) >= 0
}

func named(names ...string) func(i *decoder.Inst) bool {
	set := map[string]bool{}
	for _, n := range names {
		set[n] = true
	}
	return func(i *decoder.Inst) bool { return set[i.Mnemonic()] }
}

func nearBranch(i *decoder.Inst) bool {
	switch i.Class {
	case decoder.ClassCall, decoder.ClassIndirectCall, decoder.ClassRet, decoder.ClassJmp, decoder.ClassIndirectJmp, decoder.ClassJcc, decoder.ClassLoop:
		return true
	}
	return false
}

// differences are all that are known.
var differences = []known{
	{
		name: "66 before a near branch", reason: "Unicorn makes it one of 16 bits, as AMD's processors do; interp follows Intel's, which ignore 66",
		tells:   func(i *decoder.Inst) bool { return nearBranch(i) && prefixed(i, 0x66) },
		example: "66 eb 00 cc",
	},
	{
		name: "66 with F2 or F3", reason: "Unicorn takes the instruction of 66; on processors F2 and F3 go first",
		tells: func(i *decoder.Inst) bool {
			return i.Encoding != decoder.EncPrimary && prefixed(i, 0x66) && (prefixed(i, 0xf2) || prefixed(i, 0xf3))
		},
		example: "66 f3 0f 10 c1",
	},
	{
		name: "int1", reason: "Unicorn raises #UD; a processor raises #DB",
		tells: named("int1"), example: "f1",
	},
	{
		name: "shld, shrd", reason: "Unicorn computes counts above the operand's size, and the flags of 16 bits, otherwise",
		tells: named("shld", "shrd"),
	},
	{
		name: "clocks", reason: "rdtsc reads the virtual clock; Unicorn's reads the host's",
		tells: named("rdtsc", "rdtscp"), example: "0f 31",
	},
	{
		name: "cmpxchg of 32 bits", reason: "Unicorn clears the upper half of rax where the comparison succeeds, and of the destination register where it fails; a processor leaves them",
		tells: func(i *decoder.Inst) bool {
			return i.Mnemonic() == "cmpxchg" && i.Opcode == 0xb1 && i.REX&8 == 0
		},
	},
	{
		name: "lahf and sahf with REX", reason: "Unicorn takes spl for ah",
		tells: func(i *decoder.Inst) bool { return named("lahf", "sahf")(i) && i.REX != 0 }, example: "40 9f",
	},
	{
		name: "cmpps and its kin with a predicate above 7", reason: "Unicorn raises #UD; a processor looks at three bits",
		tells: func(i *decoder.Inst) bool {
			return i.Encoding == decoder.Enc0F && i.Opcode == 0xc2 && uint64(i.Imm()) > 7
		},
		example: "0f c2 c1 08",
	},
	{
		name: "prefetch of a register", reason: "Unicorn raises #UD; on a processor it is a nop",
		tells: func(i *decoder.Inst) bool {
			return i.Encoding == decoder.Enc0F && (i.Opcode == 0x18 || i.Opcode == 0x0d) && i.ModRM >= 0xc0
		}, example: "0f 18 c4",
	},
	{
		name: "ret that releases 32 KiB and more", reason: "Unicorn takes the number for a negative one",
		tells: func(i *decoder.Inst) bool { return named("ret", "retf")(i) && i.Imm() < 0 },
	},
	{
		name: "horizontal sums and differences of a register with itself", reason: "Unicorn writes the first half before it reads the second",
		tells: func(i *decoder.Inst) bool {
			name := i.Mnemonic()
			return (strings.HasPrefix(name, "phadd") || strings.HasPrefix(name, "phsub")) && i.ModRM >= 0xc0 && i.ModRM>>3&7 == i.ModRM&7
		},
	},
	{
		name: "VEX", reason: "Unicorn executes instructions of AVX as those of SSE, though no model has AVX; interp raises #UD",
		tells: func(i *decoder.Inst) bool { return i.VexLen > 0 && !strings.HasPrefix(i.Extension(), "BMI") }, example: "c4 e2 79 00 02",
	},
	{
		name: "test as /1", reason: "Unicorn raises #UD; processors execute it as /0",
		tells: func(i *decoder.Inst) bool {
			return i.Mnemonic() == "test" && i.HasModRM && i.Opcode >= 0xf6 && i.ModRM>>3&7 == 1
		},
		example: "f6 c8 05",
	},
	{
		name: "mov of an immediate with REX.R", reason: "Unicorn raises #UD; processors do not look at the bit",
		tells: func(i *decoder.Inst) bool {
			return i.Encoding == decoder.EncPrimary && (i.Opcode == 0xc6 || i.Opcode == 0xc7) && i.REX&4 != 0
		}, example: "44 c6 c0 05",
	},
	{
		name: "blsi", reason: "Unicorn has CF the other way round",
		tells: named("blsi"),
	},
	{
		name: "far returns of 16 and 32 bits", reason: "Unicorn takes the stack pointer's low 16 bits; processors all of it",
		tells: func(i *decoder.Inst) bool { return named("retf", "iret", "iretd")(i) },
	},
	{
		name: "lock neg", reason: "Unicorn computes the flags from another value",
		tells: func(i *decoder.Inst) bool { return i.Mnemonic() == "neg" && prefixed(i, 0xf0) },
	},
	{
		name: "F2 with F3", reason: "Unicorn takes both to be there; of processors the last one counts",
		tells: func(i *decoder.Inst) bool { return prefixed(i, 0xf2) && prefixed(i, 0xf3) },
	},
	{
		name: "syscall, sysenter", reason: "Unicorn reports the start of their block",
		tells: named("syscall", "sysenter"),
	},
	{
		name: "rorx of RIP-relative memory", reason: "Unicorn leaves the immediate out of the address",
		tells: func(i *decoder.Inst) bool { return i.Mnemonic() == "rorx" && i.RIPRelative },
	},
	{
		name: "pdep of 32 bits", reason: "Unicorn takes 64 bits of the mask",
		tells: func(i *decoder.Inst) bool { return i.Mnemonic() == "pdep" },
	},
	{
		name: "cmpxchg8b, cmpxchg16b", reason: "Unicorn loses the flags that they do not change",
		tells: named("cmpxchg8b", "cmpxchg16b"),
	},
	{
		name: "loope, loopne", reason: "Unicorn sometimes leaves flags that no instruction has computed, such as bits of an operand",
		tells: named("loope", "loopne"),
	},
	{
		name: "bextr of 32 bits", reason: "Unicorn takes 31 bits where the length is 32 and more",
		tells: func(i *decoder.Inst) bool { return i.Mnemonic() == "bextr" },
	},
	{
		name: "bzhi", reason: "Unicorn clears the top bit where the index is past the operand",
		tells: named("bzhi"),
	},
	{
		name: "rdrand, rdseed", reason: "interp's numbers repeat",
		tells: named("rdrand", "rdseed"),
	},
	{
		name: "the CPU's own state", reason: "what these change outlasts a run, and Unicorn forgets some of it at a fault (emu, forgetException)",
		tells: func(i *decoder.Inst) bool {
			return named("wrmsr", "rdmsr", "swapgs", "lgdt", "lidt", "lldt", "ltr", "lmsw", "clts", "wrfsbase", "wrgsbase", "ldmxcsr", "xsetbv", "xrstor", "fxrstor", "fxrstor64", "wrpkru", "rdpkru", "lss", "lfs", "lgs", "xgetbv", "fninit", "fldcw", "smsw")(i) ||
				i.Encoding == decoder.Enc0F && i.Opcode >= 0x20 && i.Opcode <= 0x23 ||
				i.Encoding == decoder.EncPrimary && i.Opcode == 0x8e ||
				i.Encoding == decoder.Enc0F && (i.Opcode == 0xa1 || i.Opcode == 0xa9)
		},
	},
}

func knownDifference(i *decoder.Inst) *known {
	for n := range differences {
		if differences[n].tells(i) {
			return &differences[n]
		}
	}
	return nil
}

func bitOperation(i *decoder.Inst) bool { return named("bt", "bts", "btr", "btc")(i) }

// readsFlags reports whether the instruction needs flags before its operand is accessed.
func readsFlags(i *decoder.Inst) bool {
	return named("rcl", "rcr", "adc", "sbb", "scasb", "scasw", "scasd", "scasq", "cmpsb", "cmpsw", "cmpsd", "cmpsq")(i) || i.Encoding == decoder.Enc0F && i.Opcode&0xf0 == 0x90 || bitOperation(i)
}

// explained reports whether a difference of two runs is one that only the run
// shows. What it takes away from the comparison, it makes equal.
func explained(in *input, u, g *output) bool {
	at := x86.Addr(g.regs.IP).Sub(codeBase) - testAt
	if u.event == "vector 6" && g.event == "vector 6" {
		// Some instructions are refused as they are translated, others as they run.
		g.instrs, g.clock = u.instrs, u.clock
	}
	if strings.Contains(strings.Join(names(in.code), " "), "sti sti") {
		// Unicorn translates what follows for interrupts that are held off; how many
		// instructions that has, is estimated after the second.
		g.instrs, g.clock = u.instrs, u.clock
	}
	sameNaNs(u.data, g.data)
	last := lastOf(in.code)
	if bitOperation(&last) { // PF, AF and OF are undefined
		const undefined = x86.FlagPF | x86.FlagAF | x86.FlagOF
		g.regs.Flags = g.regs.Flags&^undefined | u.regs.Flags&undefined
	}
	if at < 0 || at >= int64(len(in.code)) || !strings.HasPrefix(g.event, "vector") {
		return false
	}
	i, err := decoder.Decode(in.code[at:])
	if err == nil && readsFlags(&i) {
		// Unicorn has computed the flags, and loses them at the fault.
		g.regs.Flags = u.regs.Flags
	}
	// An operand of SSE that is not aligned: Unicorn does not check.
	return err == nil && g.event == "vector 13" && strings.HasPrefix(i.Extension(), "SS") && i.ModRM < 0xc0
}

// sameNaNs makes the final vector registers of both equal where both have a NaN: of two NaNs
// Unicorn returns x87's choice.
func sameNaNs(u, g []byte) {
	at := int(xmmOut - dataBase)
	sameNaNsIn(u[at:at+256], g[at:at+256])
}

func sameNaNsIn(u, g []byte) {
	for i := 0; i < len(u); i += 8 {
		a, b := binary.LittleEndian.Uint64(u[i:]), binary.LittleEndian.Uint64(g[i:])
		if a != b && math.IsNaN(math.Float64frombits(a)) && math.IsNaN(math.Float64frombits(b)) {
			copy(g[i:i+8], u[i:])
		}
	}
	for i := 0; i < len(u); i += 4 {
		a, b := binary.LittleEndian.Uint32(u[i:]), binary.LittleEndian.Uint32(g[i:])
		if a != b && a&0x7fffffff > 0x7f800000 && b&0x7fffffff > 0x7f800000 {
			copy(g[i:i+4], u[i:])
		}
	}
}

func lastOf(code []byte) (i decoder.Inst) {
	for len(code) > 0 {
		n, err := decoder.Decode(code)
		if err != nil {
			return i
		}
		i, code = n, code[n.Length:]
	}
	return i
}
