package kimage

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/oracle"
	"kprobelab/kimage/internal/infer"
	"kprobelab/kimage/internal/opened"
	"kprobelab/kimage/internal/processor"
	"kprobelab/profile"
	"kprobelab/x86"
)

func fromHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

// Rule: runs of nops are filled as each release fills them.
func TestNopForms(t *testing.T) {
	for name, c := range map[string]struct {
		nops nops
		n    int
		want string
	}{
		"k8_five_is_two":        {nopsFor(true, false, true), 5, "666690 6690"},
		"k8_nine":               {nopsFor(true, false, true), 9, "66666690 66666690 90"},
		"early_intel":           {nopsFor(true, false, false), 5, "0f1f440000"},
		"classic_nine_is_two":   {nopsFor(false, false, true), 9, "0f1f840000000000 90"},
		"modern_nine_is_one":    {nopsFor(false, true, true), 9, "2e0f1f840000000000"},
		"modern_eleven":         {nopsFor(false, true, true), 11, "66662e0f1f840000000000"},
		"modern_twelve_is_jump": {nopsFor(false, true, true), 12, "eb0a cccccccccccccccccccc"},
	} {
		t.Run(name, func(t *testing.T) {
			b := make([]byte, c.n)
			c.nops.fill(b)
			require.Equal(t, fromHex(t, c.want), b)
		})
	}
	long := make([]byte, 200)
	n := nopsFor(false, true, true)
	n.fill(long)
	require.Equal(t, fromHex(t, "e9c3000000cc"), long[:6])
	amdNops := nopsFor(true, false, true)
	require.Equal(t, fromHex(t, "6666666690"), amdNops.atomic5)
}

// altCase is one alternative: text at 0x0, the replacement at 0x100.
type altCase struct {
	name            string
	text, repl      string
	feature         feature
	not, call       bool
	classic, modern string // "" where the case is not the release's
}

const absent = feature(9*32 + 20) // SMAP, say

func altCases() []altCase {
	return []altCase{
		{name: "absent_feature_makes_long_nops", text: "909090", repl: "0f01cb", feature: absent, classic: "0f1f00", modern: "0f1f00"},
		{name: "present_feature_replaces", text: "909090", repl: "0faee8", feature: featAlways, classic: "0faee8", modern: "0faee8"},
		{name: "not_feature_replaces_where_absent", text: "ff1500000000", repl: "fb", feature: absent, not: true, classic: "fb0f1f440000", modern: "fb0f1f440000"},
		{name: "call_is_relocated", text: "9090909090", repl: "e810000000", feature: featAlways, classic: "e810010000", modern: "e810010000"},
		{name: "forward_jump_becomes_short", text: "e900000000", repl: "e920ffffff", feature: featAlways, classic: "eb23 0f1f00", modern: "eb23 cccccc"},
		{name: "backward_jump_stays_long_in_classic", text: "e900000000", repl: "e9f0feffff", feature: featAlways, classic: "e9f0ffffff", modern: "ebf3 cccccc"},
		{name: "empty_replacement_is_nops", text: "e9aabbccdd", repl: "", feature: featAlways, classic: "0f1f440000", modern: "0f1f440000"},
		{name: "rip_relative_is_relocated", text: "90909090909090", repl: "488b0510000000", feature: featAlways, modern: "488b0510010000"},
		{name: "jump_inside_the_replacement_stays", text: "9090909090", repl: "eb0190f3c3", feature: featAlways, modern: "eb0190f3c3"},
		{name: "pause_is_no_nop", text: "f39090", repl: "", feature: absent, modern: "f39090"},
		{name: "nopl_joins_in_modern", text: "0f1f009090", repl: "", feature: absent, classic: "0f1f006690", modern: "0f1f440000"},
		{name: "call_through_memory_becomes_direct", text: "ff15fa010000", repl: "e800000000", feature: featAlways, call: true, modern: "e8fb020000 90"},
		{name: "direct_call_needs_that_form", text: "e81122334490", repl: "e800000000", feature: featAlways, call: true, modern: "e81122334490"},
	}
}

// Rule: an alternative is applied as the release applies it, byte by byte.
func TestAlternatives(t *testing.T) {
	for _, c := range altCases() {
		for _, l := range []altLayout{12, 14} {
			want := map[altLayout]string{12: c.classic, 14: c.modern}[l]
			if want == "" {
				continue
			}
			t.Run(c.name+map[altLayout]string{12: "/classic", 14: "/modern"}[l], func(t *testing.T) {
				text := make([]byte, 0x400)
				copy(text, fromHex(t, c.text))
				copy(text[0x100:], fromHex(t, c.repl))
				le.PutUint64(text[0x200:], testText+0x300) // what the pointer of the call holds
				img := tableImage(t, text)
				has := map[feature]bool{featAlways: true}
				cfg, _ := profile.Named(profile.Default)
				p := alternativePatcher{img: img, has: has, forms: &patchForms{nops: nopsFor(false, l == 14, true), relocates: l == 14}, decoder: cfg.Decoder}
				p.apply([]alternative{{addr: testText, repl: testText + 0x100, feature: c.feature, addrLen: len(fromHex(t, c.text)),
					replLen: len(fromHex(t, c.repl)), not: c.not, call: c.call}})
				require.Equal(t, fromHex(t, want), img.bytes(testText, len(fromHex(t, c.text))))
			})
		}
	}
}

// Rule: nested alternatives of one place share the longest one's padding (6.3
// and later).
func TestNestedAlternativesShareTheirLength(t *testing.T) {
	list := []alternative{{addr: 1, addrLen: 3}, {addr: 1, addrLen: 9}, {addr: 2, addrLen: 4}}
	equalLengths(list)
	require.Equal(t, []int{9, 9, 4}, []int{list[0].addrLen, list[1].addrLen, list[2].addrLen})
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
		"call":                {"e800000000", testText + 0x100, false, "e8fb000000"},
		"tail_call":           {"e900000000", testText + 0x100, true, "e9fb000000"},
		"call_of_nothing":     {"e800000000", 0, false, "0f1f440000"},
		"tail_of_nothing":     {"e900000000", 0, true, "c3cccccccc"},
		"call_that_warns":     {"e800000000", testText + 0x400, false, "67480fb93a"},
		"jump_to_a_warning":   {"e900000000", testText + 0x400, true, "e9fb030000"},
		"call_of_unlock":      {"e800000000", testText + 0x500, false, "3e3ec60700"},
		"call_of_return0":     {"e800000000", testText + 0x200, false, "2e2e2e31c0"},
		"jcc_tail":            {"0f8400000000", testText + 0x100, true, "0f84fa000000"},
		"jcc_tail_of_nothing": {"0f8500000000", 0, true, "0f85fa020000"},
		"tail_to_the_thunk":   {"e900000000", thunked, true, "e9fb050000"},
		"jcc_to_the_thunk":    {"0f8500000000", thunked, true, "0f85fa050000"},
		"call_with_a_thunk":   {"e800000000", thunked, false, "0f1f440000"},
	} {
		t.Run(name, func(t *testing.T) {
			text := make([]byte, 0x400)
			copy(text, fromHex(t, c.text))
			p := &staticCallPatcher{img: tableImage(t, text), nops: nops{forms: nopl[:9], atomic5: nopl[5]}, zero: xor5rax,
				ret0: testText + 0x200, retFn: testText + 0x300,
				inline: map[x86.Addr][]byte{testText + 0x400: inlineCalls[0].code, testText + 0x500: inlineCalls[1].code}}
			if c.fn == thunked {
				c.fn, p.thunk = 0, testText+0x600
				p.thunkAt = func(x86.Addr) x86.Addr { return p.thunk }
			}
			p.write(testText, c.fn, c.tail)
			n := len(fromHex(t, c.want))
			require.Equal(t, fromHex(t, c.want), p.img.bytes(testText, n))
		})
	}
}

// Rule: a static call that no code makes, and whose key has no symbol (no KALLSYMS_ALL), is
// updated in its trampoline.
func TestTrampolineWithoutAKey(t *testing.T) {
	img := tableImage(t, fromHex(t, "c3cccccccc"))
	symbols := []Symbol{{Name: "__SCT__apic_call_native_eoi", Addr: testText}, {Name: "native_apic_mem_eoi", Addr: testText + 0x100}}
	img.index.chain(symbols)
	p := &staticCallPatcher{img: img}
	p.update("apic_call_native_eoi", "native_apic_mem_eoi")
	require.Equal(t, fromHex(t, "e9fb000000"), img.bytes(testText, 5))
	p.update("apic_call_native_eoi", "")
	require.Equal(t, retInsn, img.bytes(testText, 5))
}

// Rule: what the scheduler's static calls call follows the configured model.
func TestPreemptionModel(t *testing.T) {
	for model, c := range map[string]struct{ config, cond, schedule string }{
		infer.PreemptVoluntary: {"CONFIG_PREEMPTION=y\nCONFIG_PREEMPT_VOLUNTARY=y\n", "__cond_resched", ""},
		infer.PreemptNone:      {"CONFIG_PREEMPTION=y\nCONFIG_PREEMPT_NONE=y\n", "__cond_resched", ""},
		infer.PreemptFull:      {"CONFIG_PREEMPTION=y\nCONFIG_PREEMPT=y\n", "__static_call_return0", "preempt_schedule_thunk"},
		infer.PreemptLazy:      {"CONFIG_PREEMPTION=y\nCONFIG_PREEMPT_LAZY=y\nCONFIG_PREEMPT_RT=y\n", "__static_call_return0", "preempt_schedule_thunk"},
	} {
		img, err := Open(oracle.Image(t, "oracle"), &Options{Config: writeModule(t, "config", []byte(c.config))})
		require.NoError(t, err)
		require.Equal(t, model, img.facts.Value(infer.FactPreemptModel))
		for key, fn := range map[string]string{"__SCK__cond_resched": c.cond, "__SCK__preempt_schedule": c.schedule} {
			at, _ := img.symbolAddr(key)
			want, _ := img.symbolAddr(fn)
			require.Equal(t, want, opened.Abs64(img.bytes(at, 8)), "%s %s", model, key)
		}
	}
}

// Rule: a real-time kernel cannot begin with voluntary preemption.
func TestPreemptionModelOfRealTime(t *testing.T) {
	for banner, want := range map[string]string{
		"Linux version 6.12.0-rt-amd64 (x@y) (gcc) #1 SMP PREEMPT_RT Debian\n":   infer.PreemptFull,
		"Linux version 6.12.0-amd64 (x@y) (gcc) #1 SMP PREEMPT_DYNAMIC Debian\n": infer.PreemptVoluntary,
	} {
		img := &Image{sections: []*Section{{Name: ".rodata", Addr: testText, Data: append([]byte(banner), 0)}}}
		require.Equal(t, want, infer.PreemptModel(inside{img}, &img.facts), banner)
		require.Equal(t, want, img.facts.Value(infer.FactPreemptModel))
	}
}

// Rule: a call through pv_ops becomes the native operation.
func TestParavirtForms(t *testing.T) {
	fns := []x86.Addr{0, testText + 0x100, testText + 0x140, testText + 0x180}
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
				le.PutUint64(text[0x300+8*i:], uint64(f))
			}
			p := &paravirtPatcher{img: tableImage(t, text), nops: nops{forms: nopl[:9]},
				nop: fns[2], insns: map[x86.Addr][]byte{fns[3]: {0xfa}}}
			p.patch(paravirtSite{addr: testText, len: 6})
			require.Equal(t, fromHex(t, c.want), p.img.bytes(testText, 6))
		})
	}
}

// Rule: with NoBoot the text is the file's; live text is as its kernel left it.
func TestBootOptions(t *testing.T) {
	call, nop := fromHex(t, "e811223344"), nopl[5]
	text := slices.Concat(call, make([]byte, 11), call, make([]byte, 11))
	sites := slices.Concat(appendUint(nil, testText, 8), appendUint(nil, testText+16, 8))
	file := testELF(etExec, testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, addr: testText, data: text},
		testSection{name: "__mcount_loc", typ: 1, flags: shfAlloc, addr: testTable, data: sites})
	live := writeModule(t, "live.bin", fromHex(t, "e955667788"))
	for name, c := range map[string]struct {
		o             Options
		first, second []byte
	}{
		"booted":    {Options{}, nop, nop},
		"no_boot":   {Options{NoBoot: true}, call, call},
		"live_text": {Options{LiveText: live + "@0xffffffff81000000"}, fromHex(t, "e955667788"), nop},
	} {
		t.Run(name, func(t *testing.T) {
			img, err := FromBytes("boot", file, &c.o)
			require.NoError(t, err)
			require.Equal(t, c.first, img.bytes(testText, 5))
			require.Equal(t, c.second, img.bytes(testText+16, 5))
		})
	}
	_, err := FromBytes("boot", file, &Options{CPU: "z80"})
	require.ErrorContains(t, err, "z80")
}

// Rule: a kernel that finds one processor takes the lock prefixes out of its text, not
// out of init text, and writes over nothing else.
func TestLocksOfOneProcessor(t *testing.T) {
	const init = testText + 0x2000
	text := make([]byte, 0x40)
	copy(text, fromHex(t, "f0ff00"))
	copy(text[0x10:], fromHex(t, "3eff00"))
	copy(text[0x20:], fromHex(t, "87f0"))
	file := testELF(etExec, testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, addr: testText, data: text},
		testSection{name: ".init.text", typ: 1, flags: shfAlloc | shfExec, addr: init, data: fromHex(t, "f0ff00c3")},
		testSection{name: ".smp_locks", typ: 1, flags: shfAlloc, addr: testTable,
			data: relTable(testText, testText+0x10, testText+0x20, init)})
	for cpu, first := range map[string]string{"": "f0ff00", "EPYC": "f0ff00", "qemu64,+up": "3eff00", "EPYC,+up,-up": "f0ff00"} {
		img := openBytes(t, file, &Options{CPU: cpu})
		require.Equal(t, fromHex(t, first), img.bytes(testText, 3), cpu)
		require.Equal(t, fromHex(t, "3eff00"), img.bytes(testText+0x10, 3), cpu)
		require.Equal(t, fromHex(t, "87f0"), img.bytes(testText+0x20, 2), cpu)
		require.Equal(t, fromHex(t, "f0ff00c3"), img.bytes(init, 4), cpu)
	}
}

// TestSecurityModuleLayouts: an entry names its module itself, or by an id.
func TestSecurityModuleLayouts(t *testing.T) {
	text := make([]byte, 0x200)
	copy(text, "yama")
	copy(text[0x80:], appendUint(nil, testText, 8))
	p := &bootPatcher{img: tableImage(t, text)}
	for name, c := range map[string]struct {
		size, entry int
		id          bool
		at          uint64
		ok          bool
	}{
		"6.12":             {48, 48, false, testText, true},
		"6.19":             {104, 104, true, testText + 0x80, true},
		"7.3":              {112, 112, true, testText + 0x80, true},
		"other_size":       {104, 112, true, testText + 0x80, false},
		"id_taken_as_name": {104, 104, true, testText, false},
	} {
		t.Run(name, func(t *testing.T) {
			data := make([]byte, 2*c.entry)
			for off := 0; off < len(data); off += c.entry {
				le.PutUint64(data[off:], c.at)
				le.PutUint32(data[off+8:], 1)
				le.PutUint64(data[off+16:], lsmExclusive)
			}
			var want []securityModule
			if c.ok {
				want = []securityModule{{"yama", 0, 1, true}, {"yama", 0, 1, true}}
			}
			require.Equal(t, want, p.securityModulesAs(data, c.size, c.id))
		})
	}
}

// Rule: a jump to the compiler's return thunk becomes a return, also with the CS prefix
// that clang puts before it, and nothing of the jump stays.
func TestReturnForms(t *testing.T) {
	const thunk = testText + 0x200
	for name, c := range map[string]struct{ text, plain, thunked string }{
		"jump":          {"e9fb010000" + "90", "c3cccccccc" + "90", "e9fb020000" + "90"},
		"prefixed_jump": {"2ee9fa010000", "c3cccccccccc", "e9fb020000cc"},
		"other_jump":    {"e9fb000000" + "90", "e9fb000000" + "90", "e9fb000000" + "90"},
	} {
		t.Run(name, func(t *testing.T) {
			for needed, want := range map[string]string{"": c.plain, "srso_return_thunk": c.thunked} {
				text := make([]byte, 0x400)
				copy(text, fromHex(t, c.text))
				site := make([]byte, 4)
				le.PutUint32(site, uint32(x86.Addr(testText).Sub(testTable)))
				img := tableImage(t, text, testSection{name: ".return_sites", data: site})
				img.index.setImage([]Symbol{
					{Name: "__x86_return_thunk", Addr: thunk}, {Name: "srso_return_thunk", Addr: thunk + 0x100},
				}, func(x86.Addr) x86.Addr { return thunk + 0x200 })
				p := &bootPatcher{img: img, feats: &cpuFeatures{returnThunk: needed}}
				p.returns(tableOwner{img: img})
				require.Equal(t, fromHex(t, want), img.bytes(testText, 6), needed)
			}
		})
	}
}

// Rule: where no retpoline is needed, a branch to a thunk becomes an indirect one, as
// long as the compiler's.
func TestRetpolineForms(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"call":           {"e8fb010000", "ffd00f1f00"},         // rax
		"call_r8":        {"2ee8fa020000", "41ffd00f1f00"},     // with the prefix
		"jump":           {"e9fb010000", "ffe0cc6690"},         // int3 stops what runs ahead
		"jump_r8":        {"2ee9fa020000", "41ffe0cc6690"},     //
		"jcc":            {"0f84fa010000", "7504ffe0cc90"},     // je: jne over the jump
		"jcc_r8":         {"2e0f84f9020000", "750541ffe0cc90"}, //
		"another_thunk":  {"e8fb000000", "e8fb000000"},         // no register's
		"call_not_taken": {"ffd0909090", "ffd0909090"},         // no branch to a thunk
	} {
		t.Run(name, func(t *testing.T) {
			text := make([]byte, 0x400)
			code := fromHex(t, c.text)
			copy(text, code)
			site := make([]byte, 4)
			le.PutUint32(site, uint32(x86.Addr(testText).Sub(testTable)))
			img := tableImage(t, text, testSection{name: ".retpoline_sites", data: site})
			img.index.setImage([]Symbol{
				{Name: indirectThunk + "rax", Addr: testText + 0x200}, {Name: indirectThunk + "r8", Addr: testText + 0x300},
			}, func(x86.Addr) x86.Addr { return testText + 0x400 })
			p := &bootPatcher{img: img, feats: &cpuFeatures{has: map[feature]bool{}, retpoline: featRetpoline},
				forms: patchForms{nops: nops{forms: nopl[:9], atomic5: nopl[5]}, int3AfterJump: true}}
			p.retpolines(tableOwner{img: img})
			require.Equal(t, fromHex(t, c.want), img.bytes(testText, len(code)))

			copy(text, code)
			p.feats.has[featRetpoline] = true
			before := append([]byte(nil), img.bytes(testText, len(code))...)
			p.retpolines(tableOwner{img: img})
			require.Equal(t, before, img.bytes(testText, len(code)), "retpolines stay")
		})
	}
}

// Rule: a release to 5.12 chooses its nops by the processor.
func TestNopsByProcessor(t *testing.T) {
	for name, k8 := range map[string]bool{"qemu64": true, "EPYC": false, "kvm64": false, "Nehalem": true, "Haswell": false} {
		require.Equal(t, k8, k8Nops(processor.Named(name)), name)
	}
}
