package kimage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage/internal/infer"
	"kprobelab/kimage/internal/patch"
	"kprobelab/kimage/internal/processor"
	"kprobelab/x86"
)

// Rule: a label jumps when its key and its branch bit differ.
func TestJumpLabelFollowsItsKey(t *testing.T) {
	for name, c := range map[string]struct {
		text       string
		on, branch bool
		want       string
	}{
		"short_on_unlikely":  {"6690", true, false, "eb1e"},
		"short_off_unlikely": {"eb1e", false, false, "6690"},
		"short_off_likely":   {"6690", false, true, "eb1e"},
		"short_on_likely":    {"eb1e", true, true, "6690"},
		"long_on_unlikely":   {"0f1f440000", true, false, "e91b000000"},
		"long_on_likely":     {"e91b000000", true, true, "0f1f440000"},
	} {
		t.Run(name, func(t *testing.T) {
			text := make([]byte, 0x40)
			copy(text, fromHex(t, c.text))
			p := &bootPatcher{img: tableImage(t, text), forms: patchForms{Forms: patch.Forms{Nops: patch.NopsFor(false, false, true)}}}
			n := len(fromHex(t, c.want))
			p.jumpLabel(JumpLabel{Addr: testText, Target: testText + 0x20, Len: n, Branch: c.branch}, c.on)
			require.Equal(t, fromHex(t, c.want), p.img.bytes(testText, n))
		})
	}
}

// Rule: every key of the table says why it is turned, and none stands twice
// for the same processors.
func TestBootKeysHaveReasons(t *testing.T) {
	type place struct {
		name string
		off  int64
	}
	seen := map[place]int{}
	for _, k := range bootKeys {
		require.NotEmpty(t, k.why, k.name)
		if k.when == nil {
			seen[place{k.name, k.off}]++
		}
	}
	for k, n := range seen {
		require.Equal(t, 1, n, k.name)
	}
}

// Rule: CONFIG_LSM is the string that names enough modules between commas.
func TestSecurityModulesOrder(t *testing.T) {
	known := map[string]bool{"yama": true, "apparmor": true, "bpf": true, "capability": true}
	for name, c := range map[string]struct {
		data string
		want []string
	}{
		"found":        {"x\x00landlock,yama,loadpin,apparmor,bpf\x00y", []string{"landlock", "yama", "loadpin", "apparmor", "bpf"}},
		"after_others": {"a,yama,b\x00landlock,yama,apparmor,bpf\x00", []string{"landlock", "yama", "apparmor", "bpf"}},
		"too_few":      {"a,yama,b\x00", nil},
		"none":         {"nothing", nil},
		"not_ended":    {"\x00yama,apparmor,yama,bpf", []string{"yama", "apparmor", "yama", "bpf"}},
	} {
		require.Equal(t, c.want, orderAt([]byte(c.data), "yama", known), name)
	}
}

// Rule: a processor's bugs choose the mitigations that the image has.
func TestMitigations(t *testing.T) {
	img := bootedImage(t, "oracle")
	for name, want := range map[string]struct {
		thunk                          string
		pti, swapgsUser, unret, retpol bool
	}{
		"qemu64":     {"", false, false, false, true},
		"Haswell":    {itsReturnThunk, true, false, false, true},
		"EPYC":       {"srso_return_thunk", false, false, true, true},
		"EPYC-Milan": {"srso_alias_return_thunk", false, false, true, true},
	} {
		f := img.features(processor.Named(name))
		require.Equal(t, want.thunk, f.returnThunk, name)
		require.Equal(t, want.pti, f.has[featPTI], name)
		require.Equal(t, want.swapgsUser, f.has[featSwapgsUser], name)
		require.Equal(t, want.unret, f.has[featUnret], name)
		require.Equal(t, want.retpol, f.has[featRetpoline], name)
		require.True(t, f.has[featAlways], name)
	}
	safe := processor.Named("Icelake-Server").Clone()
	safe.Flags["ibrs_enhanced"] = true
	clear(safe.Bugs)
	safe.Bugs["spectre_v2"], safe.Bugs["unknown_to_this_kernel"] = true, true
	f := img.features(safe)
	require.False(t, f.has[featRetpoline])
	require.False(t, f.has[featPTI])
	require.Empty(t, f.returnThunk)
}

// Rule: with indirect target selection a return in the second half of a cache
// line is a plain one.
func TestReturnThunkByAddress(t *testing.T) {
	img := bootedImage(t, "oracle")
	p := &bootPatcher{img: img, feats: &cpuFeatures{returnThunk: itsReturnThunk}}
	thunk, _ := img.symbolAddr(itsReturnThunk)
	require.NotZero(t, thunk)
	for at, want := range map[x86.Addr]x86.Addr{0x1000: thunk, 0x101f: thunk, 0x1020: 0, 0x103f: 0, 0x1040: thunk} {
		require.Equal(t, want, p.returnThunkAt(at), at)
	}
	p.feats.returnThunk = "srso_return_thunk"
	require.NotZero(t, p.returnThunkAt(0x1020))
}

// Rule: to 6.7 a key says whether buffers are cleared on the way to user mode. Boot turns it on
// processors that leak, unless the kernel is built without what clears them.
func TestBuffersAreClearedByAKey(t *testing.T) {
	for name, c := range map[string]struct {
		bugs  []string
		flags []string
		mds   uint32
		on    bool
	}{
		"mds":                  {[]string{"mds"}, nil, 1, true},
		"mds_left_out":         {[]string{"mds"}, nil, 0, false},
		"none":                 {nil, nil, 1, false},
		"taa_and_transactions": {[]string{"taa"}, []string{"rtm"}, 1, true},
		"taa_without":          {[]string{"taa"}, nil, 1, false},
		"mmio_alone":           {[]string{"mmio_stale_data"}, nil, 1, false},
		"meltdown":             {[]string{"cpu_meltdown"}, nil, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			text := make([]byte, 0x400)
			text[0], text[1] = 0xeb, 0x1e // skips what clears them
			le.PutUint32(text[0x300:], c.mds)
			img := tableImage(t, text, testSection{name: ".rodata", data: []byte("Linux version 5.17.0\x00")})
			img.index.setImage([]Symbol{
				{Name: "mds_user_clear", Addr: testText + 0x200, Type: 'D'}, {Name: "mds_mitigation", Addr: testText + 0x300, Type: 'd'},
				{Name: "_end", Addr: testText + 0x3f0, Type: 'D'},
			}, func(x86.Addr) x86.Addr { return testText + 0x400 })
			img.tables.jumpLabels = []JumpLabel{{Addr: testText, Target: testText + 0x20, Key: testText + 0x200, Len: 2, Branch: true}}
			img.mitigationOptions(infer.New(inside{img}, &img.facts, infer.Configuration{}))
			cpu := processor.Named(DefaultCPU).Clone()
			clear(cpu.Bugs)
			for _, b := range c.bugs {
				cpu.Bugs[b] = true
			}
			for _, f := range c.flags {
				cpu.Flags[f] = true
			}
			p := &bootPatcher{img: img, cpu: cpu, feats: img.features(cpu), forms: patchForms{Forms: patch.Forms{Nops: patch.NopsFor(false, false, true)}}}
			p.turnKeys()
			require.Equal(t, c.on, p.keyOn("mds_user_clear"))
			want := "eb1e"
			if c.on {
				want = "6690"
			}
			require.Equal(t, fromHex(t, want), img.bytes(testText, 2))
		})
	}
}

// Rule: the random numbers of a processor make the kernel's ready at boot, unless the kernel is built
// so that it does not trust them.
func TestRandomNumbersOfTheProcessor(t *testing.T) {
	for name, c := range map[string]struct {
		flag, symbol bool
		trust        byte
		ready        bool
	}{
		"trusted":              {true, true, 1, true},
		"not_trusted":          {true, true, 0, false},
		"none":                 {false, true, 1, false},
		"nothing_tells":        {true, false, 0, true},
		"none_nothing_tells":   {false, false, 0, false},
		"none_and_not_trusted": {false, true, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			data := make([]byte, 0x400)
			data[0x100] = c.trust
			img := tableImage(t, data)
			symbols := []Symbol{{Name: "crng_is_ready", Addr: testText + 0x200, Type: 'D'}, {Name: "_end", Addr: testText + 0x300, Type: 'D'}}
			if c.symbol {
				symbols = append([]Symbol{{Name: "trust_cpu", Addr: testText + 0x100, Type: 'd'}}, symbols...)
			}
			img.index.setImage(symbols, func(x86.Addr) x86.Addr { return testText + 0x400 })
			cpu := processor.Named(DefaultCPU).Clone()
			delete(cpu.Flags, "rdrand")
			if c.flag {
				cpu.Flags["rdrand"] = true
			}
			p := &bootPatcher{img: img, cpu: cpu, feats: img.features(cpu)}
			p.turnKeys()
			require.Equal(t, c.ready, p.keyOn("crng_is_ready"))
		})
	}
}
