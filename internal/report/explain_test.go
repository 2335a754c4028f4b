package report

import (
	gohex "encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/oracle"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/x86"
)

// explainHex explains a point of an example.
func explainHex(t testing.TB, kernel, code, point string) *Explanation {
	b, err := gohex.DecodeString(strings.ReplaceAll(code, " ", ""))
	require.NoError(t, err)
	c, ok := profile.Named(kernel)
	require.True(t, ok)
	e, err := NewExample(b, c).Explain(point)
	require.NoError(t, err)
	return e
}

func reasonIDs(e *Explanation) (list []string) {
	for _, r := range e.Reasons {
		list = append(list, r.ID.String())
	}
	return list
}

func TestExplainSaysAll(t *testing.T) {
	// push; mov; jmp over; nop; shl; jmp back to the nop
	e := explainHex(t, "6.1", "55 4889e5 eb03 90 48d1e0 ebfa 90 90 90 90 90 90 c3", "example+1")
	require.Equal(t, known(0xffffffff81000001), e.Addr)
	require.Equal(t, "mov %rsp,%rbp", e.Instruction.Text)
	require.Zero(t, e.Errno)
	require.Equal(t, "stepped", e.How)
	require.False(t, e.Optimized)
	require.Equal(t, []string{"JTPR_TARGET", "NOT_BOOSTABLE"}, reasonIDs(e))
	require.True(t, e.Reasons[0].Stops)
	require.False(t, e.Reasons[1].Stops)
	require.False(t, e.Reasons[0].Documented, "the jump leads to the byte after the region")
	require.Equal(t, known(0xffffffff81000006), e.Reasons[0].Target)
	require.Contains(t, e.Reasons[0].Sentence, "example+0xa: jmp example+0x6 leads to example+0x6")
	require.Equal(t, newRange(x86.Range{Start: 0xffffffff81000001, End: 0xffffffff81000006}), e.DCR)
	require.Equal(t, newRange(x86.Range{Start: 0xffffffff81000002, End: 0xffffffff81000007}), e.JTPR)
	require.Equal(t, newRange(x86.Range{Start: 0xffffffff81000002, End: 0xffffffff81000006}), e.DocumentedJTPR)
	require.Equal(t, -1, e.Region.From)
	require.Equal(t, []RegionJump{{
		From: known(0xffffffff8100000a), Offset: 10, Text: "jmp example+0x6", To: 5, Prohibited: true, Documented: false,
	}}, e.Region.Jumps)
	require.Equal(t, "4889e5cc", e.Slot.Bytes.String())
	require.Nil(t, e.Detour)
	require.Equal(t, uint64(12), e.Nearest[0].Offset)
	require.Len(t, e.Notes, 1)
	require.Contains(t, e.Notes[0], "one byte further, to +5")
}

func TestExplainOptimized(t *testing.T) {
	e := explainHex(t, "6.1", "55 4889e5 53 48c7c001000000 5b 5d c3", "example")
	require.True(t, e.Optimized)
	require.Empty(t, e.Reasons)
	require.Empty(t, e.Nearest)
	require.Equal(t, 100+5+5, len(e.Detour.Bytes))
	require.Equal(t, known(0xffffffffc0001000), e.Detour.Addr)
	var notes []string
	total := ""
	for _, i := range e.Detour.Code {
		total += i.Bytes.String()
		if i.Note != "" {
			notes = append(notes, i.Text+": "+i.Note)
		}
	}
	require.Equal(t, e.Detour.Bytes.String(), total, "the lines are the whole of it")
	require.Contains(t, notes, "jmp example+0x5: back to what follows them")
	require.Contains(t, notes, "push %rbp: the copied instructions")
}

// TestExplainGroups: what 6.1 boosts never and 6.12 does, though it could be
// executed out of line.
func TestExplainGroups(t *testing.T) {
	for name, code := range map[string]string{
		"neg": "48f7d8", "not_byte": "f6d0", "inc": "ffc0", "dec_byte": "fec8", "shl": "48c1e004", "sar_1": "d1f8",
	} {
		t.Run(name, func(t *testing.T) {
			e := explainHex(t, "6.1", code+strings.Repeat("90", 8), "example")
			require.Equal(t, []string{"NOT_BOOSTABLE"}, reasonIDs(e))
			require.Len(t, e.Notes, 1)
			require.Contains(t, e.Notes[0], "6.12 does")
			require.True(t, explainHex(t, "6.12", code+strings.Repeat("90", 8), "example").Optimized)
		})
	}
	e := explainHex(t, "6.1", "e800000000"+strings.Repeat("90", 8), "example")
	require.Equal(t, []string{"NOT_BOOSTABLE"}, reasonIDs(e))
	require.Empty(t, e.Notes, "a call is boosted by none")
}

func TestExplainRefused(t *testing.T) {
	e := explainHex(t, "6.1", "55 4889e5 5d c3 90 90 90", "example+2")
	require.Equal(t, -84, e.Errno)
	require.Equal(t, rule.NotBoundary, e.RegisterReason)
	require.False(t, e.Optimized)
	require.Nil(t, e.Slot)
	require.NotEmpty(t, e.Nearest)

	require.Empty(t, e.Unless)

	s := NewScan(guest(t))
	for point, want := range map[string]rule.ID{"nosuch": rule.UnknownSymbol, "0xfff": rule.NoSymbol, "nokprobe_function": rule.Blacklisted} {
		e, err := s.Explain(point)
		require.NoError(t, err)
		require.Equal(t, want, e.RegisterReason)
		require.Negative(t, e.Errno)
		require.False(t, e.Optimized)
	}
	_, err := s.Explain("gcd+zz")
	require.Error(t, err)
	inside, err := s.Explain("gcd+1")
	require.NoError(t, err)
	require.NotEmpty(t, inside.Reasons)
	for _, r := range inside.Reasons {
		require.False(t, r.Stops, "the kernel comes to none")
	}
	ftrace, err := s.Explain("gcd")
	require.NoError(t, err)
	require.True(t, ftrace.Ftrace)
	require.Equal(t, rule.FtraceBased, ftrace.Reasons[0].ID)
	require.Nil(t, ftrace.Slot)
}

// Each way onto the blacklist is said.
func TestExplainSaysWhichBlacklist(t *testing.T) {
	s := NewScan(guest(t))
	for symbol, want := range map[string]string{
		"nokprobe_function": "named by NOKPROBE_SYMBOL", "entry_SYSCALL_64": "entry text (.entry.text)",
		"irqentry_enter": "marked noinstr (.noinstr.text)", "asm_exc_int3": "entry text (.entry.text)",
	} {
		e, err := s.Explain(symbol)
		require.NoError(t, err)
		require.Equal(t, "blacklisted: kprobes itself may run this code; "+want, e.RegisterWhy)
	}
}

// TestExplainAgreesWithScan at every boundary of the guest kernel's functions,
// by each release's rules.
func TestExplainAgreesWithScan(t *testing.T) {
	for _, name := range profile.Names() {
		s := asProfile(t, name)
		names := []string{"vfs_*", "gcd", "nokprobe_*"}
		if !testing.Short() {
			names = append(names, "*printf*", "mem*")
		}
		functions, err := s.Functions(names...)
		require.NoError(t, err)
		for _, f := range functions {
			s.scanner().function(f, func(row *ScanRow) {
				if row.padding {
					return
				}
				e, err := s.Explain(row.Addr.String())
				require.NoError(t, err)
				require.Equal(t, []any{row.Addr, row.Symbol, row.Offset, row.Errno, row.Ftrace, row.Boostable, row.Emulated, row.Optimized},
					[]any{e.Addr, e.Symbol, e.Offset, e.Errno, e.Ftrace, e.Boostable, e.Emulated, e.Optimized})
				if row.Errno == 0 && !row.Optimized {
					require.Equal(t, row.Rule, e.Reasons[0].ID)
				}
				require.Equal(t, row.Optimized, e.Detour != nil)
			})
		}
	}
}

// TestExplainJSONFields holds the fields that scripts read.
func TestExplainJSONFields(t *testing.T) {
	b, err := json.Marshal(explainHex(t, "6.1", "eb ff 90 90 90 90 90", "example"))
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(b, &m))
	for _, name := range []string{
		"address", "symbol", "offset", "errno", "register_reason", "ftrace", "boostable", "emulated",
		"optimized", "reasons", "unless", "dcr", "jtpr", "slot", "detour",
	} {
		require.Contains(t, m, name)
	}
}

// TestExplainOracle: the explanation of a real kernel's points agrees with the kernel's
// behaviour, and the detour buffer has its length.
func TestExplainOracle(t *testing.T) {
	img := openKernel(t, "oracle", &kimage.Options{LiveText: oracle.File(t, "oracle", "live.elf.zst")})
	s := NewScan(img)
	points := oracle.Points(t, "oracle")
	step := 397
	if testing.Short() {
		step *= 8
	}
	for i := 0; i < len(points); i += step {
		p := &points[i]
		e, err := s.Explain(p.Addr.String())
		require.NoError(t, err)
		require.Equal(t, p.Err, e.Errno, "%s+%d", p.Sym, p.Off)
		require.Equal(t, p.Opt, e.Optimized, "%s+%d", p.Sym, p.Off)
		if p.Opt {
			require.Equal(t, len(p.Detour), len(e.Detour.Bytes))
		}
	}
}

func FuzzExplain(f *testing.F) {
	f.Add([]byte{0x55, 0x48, 0x89, 0xe5, 0xeb, 0x03, 0x90, 0xc3}, uint8(1), uint8(4))
	f.Add([]byte{0xcc}, uint8(0), uint8(0))
	f.Add([]byte{0xeb, 0xfe, 0x66, 0x66}, uint8(3), uint8(5))
	f.Fuzz(func(t *testing.T, code []byte, off, kernel uint8) {
		if len(code) == 0 || len(code) > 200 {
			return
		}
		names := profile.Names()
		c, _ := profile.Named(names[int(kernel)%len(names)])
		e, err := NewExample(code, c).Explain("example+" + string('0'+rune(off%10)))
		if err != nil {
			t.Fatal(err)
		}
		if e.Optimized && (e.Errno != 0 || len(e.Reasons) > 0 || e.Detour == nil) {
			t.Fatal(errors.New("optimized, and yet refused"), e)
		}
	})
}

// TestInstructionsThatTheProcessorLacks: a probe may be there, and the explanation says that
// the processor faults.
func TestInstructionsThatTheProcessorLacks(t *testing.T) {
	for _, c := range []struct{ name, code, has, lacks, insn string }{
		{"avx512", "62 f1 7d 48 fe c1 c3", "Nehalem,+avx512f", "AVX512F", "vpaddd"},
		{"avx512_of_16_bytes", "62 f1 7d 08 fe c1 c3", "Nehalem,+avx512f,+avx512vl", "AVX512F", "vpaddd"},
		{"apx_map_4", "62 f4 7c 08 01 c0 c3", "Nehalem,+apx", "APX_F", "add"},
		{"amx", "c4 e2 63 5e ca c3", "Nehalem,+amx_int8", "AMX_INT8", "tdpbssd"},
		{"sha", "0f 38 c8 c1 c3", "EPYC", "SHA", "sha1nexte"},
		{"avx", "c5 f9 fe c1 c3", "Haswell", "AVX", "vpaddd"},
		{"popcnt", "f3 0f b8 c1 c3", "Nehalem", "POPCNT", "popcnt"},
		{"movbe", "0f 38 f0 06 c3", "Haswell", "MOVBE", "movbe"},
		{"serialize", "0f 01 e8 c3", "Nehalem,+serialize", "SERIALIZE", "serialize"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := explainHex(t, "6.12", c.code, "example")
			require.Equal(t, c.lacks, e.Lacks)
			require.Contains(t, e.Notes, c.insn+" needs "+c.lacks+", which the processor (qemu64) does not have: to execute it is an invalid opcode (#UD)")

			code, err := gohex.DecodeString(strings.ReplaceAll(c.code, " ", ""))
			require.NoError(t, err)
			p, _ := profile.Named("6.12")
			on, err := kimage.NamedProcessor(c.has)
			require.NoError(t, err)
			e, err = NewExampleOn(on, code, p).Explain("example")
			require.NoError(t, err)
			require.Empty(t, e.Lacks)
			require.NotContains(t, strings.Join(e.Notes, "\n"), "does not have")
		})
	}
}
