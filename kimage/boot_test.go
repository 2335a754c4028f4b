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
	"kprobelab/kimage/internal/patch"
	"kprobelab/kimage/internal/processor"
	"kprobelab/x86"
)

func fromHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

// Rule: a static call that no code makes, and whose key has no symbol (no KALLSYMS_ALL), is
// updated in its trampoline.
func TestTrampolineWithoutAKey(t *testing.T) {
	img := tableImage(t, fromHex(t, "c3cccccccc"))
	symbols := []Symbol{{Name: "__SCT__apic_call_native_eoi", Addr: testText}, {Name: "native_apic_mem_eoi", Addr: testText + 0x100}}
	img.index.chain(symbols)
	p := (&bootPatcher{img: img}).newStaticCalls(tableOwner{img: img})
	p.update("apic_call_native_eoi", "native_apic_mem_eoi")
	require.Equal(t, fromHex(t, "e9fb000000"), img.bytes(testText, 5))
	p.update("apic_call_native_eoi", "")
	require.Equal(t, patch.RetInsn, img.bytes(testText, 5))
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

// Rule: with NoBoot the text is the file's; live text is as its kernel left it.
func TestBootOptions(t *testing.T) {
	call, nop := fromHex(t, "e811223344"), patch.Nopl[5]
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
				forms: patchForms{Forms: patch.Forms{Nops: patch.Nops{Forms: patch.Nopl[:9], Atomic5: patch.Nopl[5]}, Int3AfterJump: true}}}
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
