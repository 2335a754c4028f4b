package interp

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/machine"
	"kprobelab/x86"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

// ran runs code that ends with an int3, from a state, and returns the state there.
func ran(t testing.TB, model, code string, in x86.PtRegs) (out x86.PtRegs, err error) {
	t.Helper()
	img := tiny(append([]byte{0xcc}, append(unhex(t, code), 0xcc, 0xcc)...))
	m, _ := boot(t, img, &machine.Options{HeapSize: 1 << 20, CPUModel: model})
	var back x86.PtRegs
	m.SetTraps(&traps{OnInt3: func(r *x86.PtRegs) bool {
		if back.IP == 0 {
			back = *r
			in.IP, in.SP = r.IP, r.SP
			in.Flags |= 0x202
			*r = in
			return true
		}
		out = *r
		return false
	}})
	_, err = m.CallAddr(textBase)
	var f *machine.Fault
	if errors.As(err, &f) && f.Vector == machine.VectorInt3 {
		err = nil
	}
	return out, err
}

const (
	cf, pf, af, zf, sf, of = x86.FlagCF, x86.FlagPF, x86.FlagAF, x86.FlagZF, x86.FlagSF, x86.FlagOF
	model                  = "icelake-server" // the model of Unicorn with the most extensions
)

// Package internal/integration/engines compares the instructions that both engines execute alike.
// This table has the instructions in which the engines differ, with the manual's results, and the
// hazards that the manual names.
func TestInstructions(t *testing.T) {
	for _, c := range []struct {
		name, code string
		in         x86.PtRegs
		ax         uint64
		flags      uint64 // the arithmetic ones
		mask       uint64 // the defined flags
	}{
		{name: "shld_64", code: "48 0f a4 d8 04", in: x86.PtRegs{AX: 0x8000000000000001, BX: 0xf << 60}, ax: 0x1f, flags: 0, mask: cf | zf | sf | pf},
		{name: "shld_one_changes_sign", code: "0f a4 d8 01", in: x86.PtRegs{AX: 0x40000000, BX: 1 << 31}, ax: 0x80000001, flags: of | sf, mask: cf | zf | sf | pf | of},
		{name: "shld_16_cl", code: "66 0f a5 d8", in: x86.PtRegs{AX: 0x1234, BX: 0xabcd, CX: 8}, ax: 0x34ab, mask: zf | sf | cf},
		{name: "shrd_32", code: "0f ac d8 08", in: x86.PtRegs{AX: 0x180, BX: 0x12}, ax: 0x12000001, flags: cf, mask: cf | zf | sf | pf},
		{name: "shift_by_zero_keeps_flags", code: "c0 e0 00", in: x86.PtRegs{AX: 0x80, Flags: cf | of | zf}, ax: 0x80, flags: cf | of | zf, mask: arithmetic},
		{name: "shift_of_32_by_zero_clears_upper", code: "c1 e0 20", in: x86.PtRegs{AX: 1<<40 | 5}, ax: 5},
		{name: "lock_neg", code: "48 c7 06 05 00 00 00 f0 48 f7 1e 48 8b 06", ax: ^uint64(4), flags: cf | sf | af, mask: arithmetic},
		{name: "test_as_1", code: "f6 c8 80", in: x86.PtRegs{AX: 0x80}, ax: 0x80, flags: sf, mask: sf | zf | cf | of | pf},
		{name: "lahf_with_rex", code: "40 9f", in: x86.PtRegs{Flags: cf | zf}, ax: 0x4300},
		{name: "jmp_with_66", code: "66 eb 02 b0 01 b4 02", ax: 0x200},
		{name: "movss_with_66", code: "66 f3 0f 10 c1 66 48 0f 7e c0", ax: 0},
		{name: "bswap_16", code: "66 0f c8", in: x86.PtRegs{AX: 0x12345678}, ax: 0x12340000},
		{name: "cmpxchg8b_keeps_flags", code: "48 c7 06 05 00 00 00 0f c7 0e", in: x86.PtRegs{AX: 5, Flags: cf | of}, ax: 5, flags: cf | of | zf, mask: arithmetic},
		{name: "cmpxchg_fails_and_leaves_upper", code: "0f b1 cb 48 89 d8", in: x86.PtRegs{AX: 1, BX: 1<<40 | 2}, ax: 1<<40 | 2},
		{name: "blsi", code: "c4 e2 f8 f3 db", in: x86.PtRegs{BX: 0b1100}, ax: 0b100, flags: cf, mask: cf | zf | sf | of},
		{name: "cmpxchg_of_32_succeeds_and_leaves_upper", code: "c7 06 05 00 00 00 0f b1 1e", in: x86.PtRegs{AX: 1<<40 | 5, BX: 9}, ax: 1<<40 | 5, flags: zf | pf, mask: arithmetic},
		{name: "bextr_of_32_bits", code: "c4 e2 70 f7 c3", in: x86.PtRegs{BX: 1<<40 | 0xffffffff, CX: 0x2008}, ax: 0xffffff},
		{name: "bzhi_past_the_end", code: "c4 e2 f0 f5 c3", in: x86.PtRegs{BX: 1 << 63, CX: 64}, ax: 1 << 63, flags: cf | sf, mask: cf | zf | sf | of},
		{name: "pdep_32", code: "c4 e2 63 f5 c1", in: x86.PtRegs{BX: 0xff, CX: 0xf0f0}, ax: 0xf0f0},
		{name: "rorx_rip_relative", code: "c4 e3 fb f0 05 01 00 00 00 08 cc 00 01 02 03 04 05 06 07", ax: 0x0007060504030201},
		{name: "enter_nested", code: "48 89 e5 c8 08 00 02 48 89 e8 48 29 e0 c9", ax: 24},
		{name: "loope_ends_where_not_equal", code: "31 c0 6a 05 59 ff c0 83 f8 03 75 00 e1 f7", ax: 1, flags: cf | sf | af, mask: arithmetic &^ pf},
		{name: "loopne_ends_where_equal", code: "31 c0 6a 05 59 ff c0 83 f8 03 e0 f9", ax: 3, flags: zf | pf, mask: arithmetic},
		{name: "movbe", code: "0f 38 f1 06 0f 38 f0 06", in: x86.PtRegs{AX: 0x01020304}, ax: 0x01020304},
		{name: "crc32", code: "f2 48 0f 38 f1 c3", in: x86.PtRegs{BX: 0x3837363534333231}, ax: crcOf(0x3837363534333231)},
		{name: "pmulhrsw_rounds", code: "66 48 0f 6e c3 66 48 0f 6e c9 66 0f 38 0b c1 66 48 0f 7e c0", in: x86.PtRegs{BX: 0x400080007fff0001, CX: 0x400080007fff8000}, ax: 0x200080007ffeffff},
		{name: "phminposuw_the_lowest_index", code: "66 48 0f 6e c3 66 0f 6c c0 66 0f 38 41 c0 66 48 0f 7e c0", in: x86.PtRegs{BX: 0x0005000300090007}, ax: 0x20003},
		{name: "high_bytes", code: "88 e0 b7 07 00 fc", in: x86.PtRegs{AX: 0x2211, BX: 1}, ax: 0x2922, mask: cf | of},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.in.SI = uint64(dataBase)
			out, err := ran(t, model, c.code, c.in)
			require.NoError(t, err)
			require.Equal(t, x86.Addr(c.ax), x86.Addr(out.AX))
			require.Equal(t, x86.Addr(c.flags), x86.Addr(out.Flags&c.mask))
		})
	}
}

// crcOf computes the CRC-32C of eight bytes from 0, bit by bit by its polynomial.
func crcOf(v uint64) uint64 {
	crc := uint64(0)
	for i := range 64 {
		bit := (crc ^ v>>i) & 1
		crc >>= 1
		if bit != 0 {
			crc ^= 0x82f63b78
		}
	}
	return crc
}

func TestFaultsAreExact(t *testing.T) {
	for _, c := range []struct {
		name, code, model string
		vector            int
		at                int // of the instruction, in code
		missing, lacks    string
		addr              uint64
	}{
		{name: "divide_by_zero", code: "31 c9 f7 f1", vector: machine.VectorDivide, at: 2},
		{name: "quotient_does_not_fit", code: "6a 02 5a 6a 02 59 48 f7 f1", vector: machine.VectorDivide, at: 6},
		{name: "read_of_nothing", code: "90 31 c0 8b 40 10", vector: machine.VectorPage, at: 3, addr: 0x10},
		{name: "read_not_canonical", code: "48 b8 00 00 00 00 00 00 00 80 8b 00", vector: machine.VectorGP, at: 10, addr: 1 << 63},
		{name: "write_of_text", code: "48 8d 05 00 00 00 00 c6 00 00", vector: machine.VectorPage, at: 7, addr: uint64(textBase) + 8},
		{name: "unaligned_movaps", code: "48 8d 46 08 0f 28 00", vector: machine.VectorGP, at: 4},
		{name: "unaligned_cmpxchg16b", code: "48 8d 46 08 48 0f c7 08", vector: machine.VectorGP, at: 4},
		{name: "wrong_segment", code: "b8 08 00 00 00 8e d8", vector: machine.VectorGP, at: 5},
		{name: "debug_register_seven", code: "90 0f 23 f8", vector: machine.VectorInvalid, at: 1},
		{name: "syscall", code: "90 0f 05", vector: machine.VectorInvalid, at: 1},
		{name: "ud2", code: "90 0f 0b", vector: machine.VectorInvalid, at: 1},
		{name: "not_in_this_model", code: "90 0f 38 f0 06", model: "qemu64", vector: machine.VectorInvalid, at: 1, lacks: "MOVBE"},
		{name: "avx", code: "90 c5 fd ef c0", vector: machine.VectorInvalid, at: 1, lacks: "AVX2"},
		{name: "x87_is_missing", code: "90 d9 eb", vector: machine.VectorInvalid, at: 1, missing: "fldpi"},
		{name: "mmx_is_missing", code: "90 0f ef c0", vector: machine.VectorInvalid, at: 1, missing: "pxor"},
		{name: "lkgs_is_no_ltr", code: "90 f2 0f 00 f0", vector: machine.VectorInvalid, at: 1, lacks: "LKGS"},
		{name: "erets_is_no_clac", code: "90 f2 0f 01 ca", vector: machine.VectorInvalid, at: 1, lacks: "FRED"},
		{name: "eretu_is_no_clac", code: "90 f3 0f 01 ca", vector: machine.VectorInvalid, at: 1, lacks: "FRED"},
		{name: "rmpquery_is_no_rdpru", code: "90 f3 0f 01 fd", vector: machine.VectorInvalid, at: 1, lacks: "SNP"},
		{name: "rmpread_is_no_rdpru", code: "90 f2 0f 01 fd", vector: machine.VectorInvalid, at: 1, lacks: "SNP"},
		{name: "movrs", code: "90 0f 38 8b 06", vector: machine.VectorInvalid, at: 1, lacks: "MOVRS"},
		{name: "urdmsr_is_no_enqcmd", code: "90 f2 0f 38 f8 c1", vector: machine.VectorInvalid, at: 1, lacks: "USER_MSR"},
		{name: "rex2_without_apx", code: "90 d5 10 01 c0", vector: machine.VectorInvalid, at: 1, lacks: "APX_F"},
		{name: "rex2_of_map_0f_without_apx", code: "90 d5 80 af c1", vector: machine.VectorInvalid, at: 1, lacks: "APX_F"},
		{name: "jmpabs_without_apx", code: "90 d5 00 a1 00 10 00 00 00 00 00 00", vector: machine.VectorInvalid, at: 1, lacks: "APX_F"},
		{name: "evex_map_4_without_apx", code: "90 62 f4 7c 08 01 c0", vector: machine.VectorInvalid, at: 1, lacks: "APX_F"},
		{name: "evex_bmi_without_apx", code: "90 62 f2 74 08 f2 c2", vector: machine.VectorInvalid, at: 1, lacks: "APX_F"},
		{name: "avx512", code: "90 62 f1 7d 48 fe c1", vector: machine.VectorInvalid, at: 1, lacks: "AVX512F"},
		{name: "amx", code: "90 c4 e2 63 5e ca", vector: machine.VectorInvalid, at: 1, lacks: "AMX_INT8"},
		{name: "sha", code: "90 0f 38 c8 c1", model: "haswell", vector: machine.VectorInvalid, at: 1, lacks: "SHA"},
		{name: "popcnt", code: "90 f3 0f b8 c1", model: "qemu64", vector: machine.VectorInvalid, at: 1, lacks: "POPCNT"},
		{name: "udb_is_missing", code: "90 d6", vector: machine.VectorInvalid, at: 1, missing: "udb"},
		{name: "too_long", code: strings.Repeat("66 ", 15) + "90", vector: machine.VectorGP, at: 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.model == "" {
				c.model = model
			}
			_, err := ran(t, c.model, c.code, x86.PtRegs{SI: uint64(dataBase)})
			var f *machine.Fault
			require.ErrorAs(t, err, &f)
			require.Equal(t, c.vector, f.Vector)
			require.Equal(t, textBase.Add(int64(1+c.at)), f.IP)
			require.Equal(t, c.missing, f.Missing)
			require.Equal(t, x86.Addr(c.addr), f.Addr)
			require.Equal(t, c.lacks, f.Lacks)
			if c.lacks != "" {
				require.ErrorContains(t, err, f.Insn+" needs "+c.lacks+", which the processor does not have")
			}
			if c.missing != "" {
				require.ErrorContains(t, err, "the engine does not execute "+c.missing)
			}
		})
	}
}

// An instruction that faults in its middle has done nothing.
func TestFaultLeavesRegistersAndFlags(t *testing.T) {
	for _, code := range []string{
		"48 01 00", "48 11 00", "48 ff 00", "48 f7 18", "48 d1 10", "48 0f c1 18", "48 0f b1 18", "48 87 18", "48 0f ab 18", "8f 00", "0f 92 00", "a4",
	} {
		img := tiny(append(unhex(t, code), 0xc3))
		m, _ := boot(t, img, &machine.Options{HeapSize: 1 << 20})
		in := x86.PtRegs{AX: uint64(textBase), BX: 7, SI: uint64(dataBase), DI: uint64(textBase), Flags: 0x2d7}
		var first bool
		var got x86.PtRegs
		m.SetTraps(&traps{OnFault: func(r *x86.PtRegs, v int) bool {
			if !first { // the call's own registers: now with ours
				first, in.SP, in.IP = true, r.SP, r.IP
				*r = in
				return true
			}
			got = *r
			return false
		}})
		_, err := m.CallAddr(textBase, 0)
		require.Error(t, err, code)
		got.CS, got.SS, got.OrigAX = 0, 0, 0
		require.Equal(t, in, got, code)
	}
}

func TestRdtscReadsTheVirtualClock(t *testing.T) {
	m, _ := boot(t, tiny([]byte{0x0f, 0x31, 0xc3}), nil)
	before := m.Now()
	v, err := m.CallAddr(textBase)
	require.NoError(t, err)
	require.Equal(t, before+2, v, "counted as its block begins")
}

// A CPU executes the old text until SyncCore.
func TestStaleTextUntilSync(t *testing.T) {
	m, _ := boot(t, tiny([]byte{0xb8, 1, 0, 0, 0, 0xc3}), &machine.Options{CPUs: 2})
	call := func() uint64 {
		v, err := m.CallAddr(textBase)
		require.NoError(t, err)
		return v
	}
	require.Equal(t, uint64(1), call())
	require.NoError(t, m.PokeTextNoSync(textBase+1, []byte{2}))
	require.Equal(t, uint64(1), call())
	m.SyncCore(1)
	require.Equal(t, uint64(1), call())
	m.SyncCore(0)
	require.Equal(t, uint64(2), call())
	require.NoError(t, m.PokeText(textBase+1, []byte{3}))
	require.Equal(t, uint64(3), call())
	require.ErrorIs(t, m.PokeText(dataBase, []byte{3}), errno.EFAULT)
}

func TestBudgetEndsWhatNeverEnds(t *testing.T) {
	for name, code := range map[string]string{
		"jump_to_itself": "eb fe", "rep_movsb": "48 83 c9 ff 31 ff 48 89 f7 f3 a4 c3", "yields": "e6 e1 eb fc", "loop": "48 83 c9 ff e2 fe c3",
	} {
		m, _ := boot(t, tiny(unhex(t, code)), &machine.Options{Budget: 100_000})
		m.SetTraps(&traps{OnFault: func(*x86.PtRegs, int) bool { return true }})
		_, err := m.CallAddr(textBase, 0, uint64(dataBase))
		require.ErrorIs(t, err, machine.ErrBudget, name)
	}
}

// TestNaNsOfDotProducts: which of several NaNs is the sum depends on the processor's maker (measured on a Xeon and an EPYC).
func TestNaNsOfDotProducts(t *testing.T) {
	const (
		// xmm0 has NaNs with the payloads 1 to 4, xmm1 ones; eax, ecx, edx, ebx get the parts of the result.
		singles = "b8 0100c07f 660f6ec0 ffc0 660f3a22c001 ffc0 660f3a22c002 ffc0 660f3a22c003 b8 0000803f 660f6ec8 660f70c900" +
			"660f3a40c1ff 660f7ec0 660f3a16c101 660f3a16c202 660f3a16c303"
		doubles = "48b8 010000000000f87f 66480f6ec0 48ffc0 66480f3a22c001 48b8 000000000000f03f 66480f6ec8 660f6cc9" +
			"660f3a41c133 66480f7ec0 66480f3a16c101"
	)
	for model, want := range map[string][6]uint64{"icelake-server": {2, 1, 4, 3, 1, 2}, "epyc-rome": {1, 1, 1, 1, 1, 1}} {
		out, err := ran(t, model, singles, x86.PtRegs{})
		require.NoError(t, err)
		for i, part := range []uint64{out.AX, out.CX, out.DX, out.BX} {
			require.Equal(t, 0x7fc00000|want[i], part, "%s: part %d of dpps", model, i)
		}
		out, err = ran(t, model, doubles, x86.PtRegs{})
		require.NoError(t, err)
		require.Equal(t, 0x7ff8<<48|want[4], out.AX, "%s: dppd", model)
		require.Equal(t, 0x7ff8<<48|want[5], out.CX, "%s: dppd", model)
	}
}
