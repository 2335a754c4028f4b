package patch

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage/internal/opened"
	"kprobelab/profile"
	"kprobelab/x86"
)

func fromHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

const textAt = 0xffffffff81000000

// memory is an image of some text.
type memory struct {
	opened.Image
	text    []byte
	symbols map[string]x86.Addr
}

func (m *memory) Bytes(addr x86.Addr, n int) []byte {
	if off := addr.Sub(textAt); off >= 0 && off+int64(n) <= int64(len(m.text)) {
		return m.text[off:][:n:n]
	}
	return nil
}

func (m *memory) SymbolAddr(name string) (x86.Addr, bool) { at, ok := m.symbols[name]; return at, ok }

// Rule: runs of nops are filled as each release fills them.
func TestNopForms(t *testing.T) {
	for name, c := range map[string]struct {
		nops Nops
		n    int
		want string
	}{
		"k8_five_is_two":        {NopsFor(true, false, true), 5, "666690 6690"},
		"k8_nine":               {NopsFor(true, false, true), 9, "66666690 66666690 90"},
		"early_intel":           {NopsFor(true, false, false), 5, "0f1f440000"},
		"classic_nine_is_two":   {NopsFor(false, false, true), 9, "0f1f840000000000 90"},
		"modern_nine_is_one":    {NopsFor(false, true, true), 9, "2e0f1f840000000000"},
		"modern_eleven":         {NopsFor(false, true, true), 11, "66662e0f1f840000000000"},
		"modern_twelve_is_jump": {NopsFor(false, true, true), 12, "eb0a cccccccccccccccccccc"},
	} {
		t.Run(name, func(t *testing.T) {
			b := make([]byte, c.n)
			c.nops.Fill(b)
			require.Equal(t, fromHex(t, c.want), b)
		})
	}
	long := make([]byte, 200)
	n := NopsFor(false, true, true)
	n.Fill(long)
	require.Equal(t, fromHex(t, "e9c3000000cc"), long[:6])
	amdNops := NopsFor(true, false, true)
	require.Equal(t, fromHex(t, "6666666690"), amdNops.Atomic5)
}

// altCase is one alternative: text at 0x0, the replacement at 0x100.
type altCase struct {
	name            string
	text, repl      string
	chosen, call    bool
	classic, modern string // "" where the case is not the release's
}

func altCases() []altCase {
	return []altCase{
		{name: "absent_feature_makes_long_nops", text: "909090", repl: "0f01cb", classic: "0f1f00", modern: "0f1f00"},
		{name: "present_feature_replaces", text: "909090", repl: "0faee8", chosen: true, classic: "0faee8", modern: "0faee8"},
		{name: "not_feature_replaces_where_absent", text: "ff1500000000", repl: "fb", chosen: true, classic: "fb0f1f440000", modern: "fb0f1f440000"},
		{name: "call_is_relocated", text: "9090909090", repl: "e810000000", chosen: true, classic: "e810010000", modern: "e810010000"},
		{name: "forward_jump_becomes_short", text: "e900000000", repl: "e920ffffff", chosen: true, classic: "eb23 0f1f00", modern: "eb23 cccccc"},
		{name: "backward_jump_stays_long_in_classic", text: "e900000000", repl: "e9f0feffff", chosen: true, classic: "e9f0ffffff", modern: "ebf3 cccccc"},
		{name: "empty_replacement_is_nops", text: "e9aabbccdd", repl: "", chosen: true, classic: "0f1f440000", modern: "0f1f440000"},
		{name: "rip_relative_is_relocated", text: "90909090909090", repl: "488b0510000000", chosen: true, modern: "488b0510010000"},
		{name: "jump_inside_the_replacement_stays", text: "9090909090", repl: "eb0190f3c3", chosen: true, modern: "eb0190f3c3"},
		{name: "pause_is_no_nop", text: "f39090", repl: "", modern: "f39090"},
		{name: "nopl_joins_in_modern", text: "0f1f009090", repl: "", classic: "0f1f006690", modern: "0f1f440000"},
		{name: "call_through_memory_becomes_direct", text: "ff15fa010000", repl: "e800000000", chosen: true, call: true, modern: "e8fb020000 90"},
		{name: "direct_call_needs_that_form", text: "e81122334490", repl: "e800000000", chosen: true, call: true, modern: "e81122334490"},
	}
}

// apply applies a case to text, and returns what becomes of it.
func (c *altCase) apply(t *testing.T, f *Forms) []byte {
	text := make([]byte, 0x400)
	n := copy(text, fromHex(t, c.text))
	replaced := copy(text[0x100:], fromHex(t, c.repl))
	binary.LittleEndian.PutUint64(text[0x200:], textAt+0x300) // what the pointer of the call holds
	cfg, ok := profile.Named(profile.Default)
	require.True(t, ok)
	p := Patcher{Image: &memory{text: text}, Forms: f, Decoder: cfg.Decoder}
	p.Alternatives([]Alternative{{Addr: textAt, Repl: textAt + 0x100, Chosen: c.chosen, Len: n, ReplLen: replaced, Call: c.call}})
	return text[:n]
}

// Rule: an alternative is applied as the release applies it, byte by byte. One of 6.3 has flags, and is
// written as 6.2's are.
func TestAlternatives(t *testing.T) {
	for _, c := range altCases() {
		for name, want := range map[string]string{"classic": c.classic, "modern": c.modern} {
			if want == "" {
				continue
			}
			t.Run(c.name+"/"+name, func(t *testing.T) {
				modern := name == "modern"
				require.Equal(t, fromHex(t, want), c.apply(t, &Forms{Nops: NopsFor(false, modern, true), Relocates: modern}))
			})
		}
	}
}

// Rule: nested alternatives of one place share the longest one's padding (6.3
// and later).
func TestNestedAlternativesShareTheirLength(t *testing.T) {
	list := []Alternative{{Addr: 1, Len: 3}, {Addr: 1, Len: 9}, {Addr: 2, Len: 4}}
	equalLengths(list)
	require.Equal(t, []int{9, 9, 4}, []int{list[0].Len, list[1].Len, list[2].Len})
}

// Rule: from 6.5 to 6.9, no-operations after a jump to their end become one with it.
func TestJumpsOverNops(t *testing.T) {
	for name, c := range map[string]struct{ code, joined, stays string }{
		"jump_to_the_end":      {"eb03909090", "0f1f440000", "eb030f1f00"},
		"jump_elsewhere":       {"eb04909090", "eb040f1f00", "eb040f1f00"},
		"long_jump":            {"e9030000009090 90", "0f1f840000000000", "e9030000000f1f00"},
		"something_between":    {"eb0431c09090", "eb0431c06690", "eb0431c06690"},
		"an_early_run_is_kept": {"9090c3", "6690c3", "6690c3"},
	} {
		t.Run(name, func(t *testing.T) {
			for joins, want := range map[bool]string{true: c.joined, false: c.stays} {
				b := fromHex(t, c.code)
				p := Patcher{Forms: &Forms{Nops: NopsFor(false, true, true), Relocates: true, JoinsJumps: joins}}
				p.joinNops(b)
				require.Equal(t, fromHex(t, want), b)
			}
		})
	}
}

// Rule: a static call becomes a call of its key's function, or the form for that function.
func TestStaticCallForms(t *testing.T) {
	const thunked x86.Addr = 1 // nothing, where returns go to a thunk
	for name, c := range map[string]struct {
		text string
		fn   x86.Addr
		tail bool
		want string
	}{
		"call":                {"e800000000", textAt + 0x100, false, "e8fb000000"},
		"tail_call":           {"e900000000", textAt + 0x100, true, "e9fb000000"},
		"call_of_nothing":     {"e800000000", 0, false, "0f1f440000"},
		"tail_of_nothing":     {"e900000000", 0, true, "c3cccccccc"},
		"call_that_warns":     {"e800000000", textAt + 0x400, false, "67480fb93a"},
		"jump_to_a_warning":   {"e900000000", textAt + 0x400, true, "e9fb030000"},
		"call_of_unlock":      {"e800000000", textAt + 0x500, false, "3e3ec60700"},
		"call_of_return0":     {"e800000000", textAt + 0x200, false, "2e2e2e31c0"},
		"jcc_tail":            {"0f8400000000", textAt + 0x100, true, "0f84fa000000"},
		"jcc_tail_of_nothing": {"0f8500000000", 0, true, "0f85fa020000"},
		"tail_to_the_thunk":   {"e900000000", thunked, true, "e9fb050000"},
		"jcc_to_the_thunk":    {"0f8500000000", thunked, true, "0f85fa050000"},
		"call_with_a_thunk":   {"e800000000", thunked, false, "0f1f440000"},
	} {
		t.Run(name, func(t *testing.T) {
			text := make([]byte, 0x400)
			copy(text, fromHex(t, c.text))
			p := NewStaticCalls(&memory{text: text, symbols: map[string]x86.Addr{
				"__static_call_return0": textAt + 0x200, "__static_call_return": textAt + 0x300,
				InlineCalls[0].Fn: textAt + 0x400, InlineCalls[1].Fn: textAt + 0x500,
			}}, &Forms{Nops: NopsFor(false, false, true), Zero: []byte{0x2e, 0x2e, 0x2e, 0x31, 0xc0}}, nil)
			if c.fn == thunked {
				c.fn, p.Thunk = 0, textAt+0x600
				p.ThunkAt = func(x86.Addr) x86.Addr { return p.Thunk }
			}
			p.Write(textAt, c.fn, c.tail)
			n := len(fromHex(t, c.want))
			require.Equal(t, fromHex(t, c.want), text[:n])
		})
	}
}

// Rule: a call through pv_ops becomes the native operation.
func TestParavirtForms(t *testing.T) {
	fns := []x86.Addr{0, textAt + 0x100, textAt + 0x140, textAt + 0x180}
	for name, c := range map[string]struct {
		text, want string
	}{
		"missing_operation_traps": {"ff15fa020000", "0f0b 0f1f4000"},
		"direct_call":             {"ff1502030000", "e8fb000000 90"},
		"jump_stays_a_jump":       {"ff2502030000", "e9fb000000 90"},
		"nothing":                 {"ff150a030000", "660f1f440000"},
		"inline_instruction":      {"ff1512030000", "fa 0f1f440000"},
		"through_a_register":      {"ffd090909090", "ffd090909090"},
		"no_such_place":           {"ff15faffff7f", "ff15faffff7f"},
	} {
		t.Run(name, func(t *testing.T) {
			text := make([]byte, 0x400)
			copy(text, fromHex(t, c.text))
			for i, f := range fns {
				binary.LittleEndian.PutUint64(text[0x300+8*i:], uint64(f))
			}
			p := &Paravirt{Image: &memory{text: text}, Nops: NopsFor(false, false, true), Nop: fns[2], Insns: map[x86.Addr][]byte{fns[3]: {0xfa}}}
			p.Patch(textAt, 6)
			require.Equal(t, fromHex(t, c.want), text[:6])
		})
	}
}
