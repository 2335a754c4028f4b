package probepoint_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/x86"
)

func site(kind kimage.SiteKind, off, n int) func(*fakeView) {
	return func(f *fakeView) {
		f.sites[kind] = append(f.sites[kind], kimage.Site{Addr: text.Add(int64(off)), Len: n})
	}
}

// TestAddressChecks has a case for every rule of docs/spec 1.3 that an address can break,
// and for each difference between releases.
func TestAddressChecks(t *testing.T) {
	body := []string{nop5, movAX, nop, ret} // +0 +5 +8 +9
	// A check of an indirect call: +3 mov $-type,%r10d, +9 add -4(%r11),%r10d, +13 je, +15 ud2.
	cfiCheck := []string{movAX, "\x41\xba\x78\x56\x34\x12", "\x45\x03\x53\xfc", "\x74\x02", ud2, ret}
	withTrap := func(f *fakeView) { f.cfiTraps = []x86.Addr{text + 15} }
	tests := map[string]struct {
		body   []string
		setup  func(*fakeView)
		kernel string
		offset uint32
		errno  errno.Errno
		rule   rule.ID
		ftrace bool
		upBoot bool // the kernel has run with one CPU so far
		kcfi   bool // it is built with Clang's checks of indirect calls
	}{
		"accepted":                       {offset: 5},
		"rule4_ftrace_site":              {setup: site(kimage.SiteFtrace, 0, 5), ftrace: true},
		"rule4_inside_site_6.1":          {setup: site(kimage.SiteFtrace, 0, 5), offset: 2, errno: errno.EILSEQ, rule: rule.NotBoundary},
		"rule4_site_3.2":                 {setup: site(kimage.SiteFtrace, 0, 5), kernel: "3.2", errno: errno.EINVAL, rule: rule.FtraceSite},
		"rule4_inside_site_3.2":          {setup: site(kimage.SiteFtrace, 0, 5), kernel: "3.2", offset: 2, errno: errno.EINVAL, rule: rule.FtraceSite},
		"rule4_inside_site_3.10":         {setup: site(kimage.SiteFtrace, 0, 5), kernel: "3.10", offset: 2, errno: errno.EILSEQ, rule: rule.InsideFtrace},
		"rule4_inside_site_5.10":         {setup: site(kimage.SiteFtrace, 0, 5), kernel: "5.10", offset: 2, errno: errno.EILSEQ, rule: rule.InsideFtrace},
		"rule4_no_ftrace_in_2.6.18":      {setup: site(kimage.SiteFtrace, 0, 5), kernel: "2.6.18"},
		"rule5_init_text":                {setup: func(f *fakeView) { f.init = f.span() }, errno: errno.EINVAL, rule: rule.NotText},
		"rule6_gate_area":                {setup: gate, errno: errno.EINVAL, rule: rule.GateArea},
		"rule6_gate_area_in_5.8":         {setup: gate, kernel: "5.8"},
		"rule7_blacklist":                {setup: func(f *fakeView) { f.black = []x86.Range{f.span()} }, offset: 5, errno: errno.EINVAL, rule: rule.Blacklisted},
		"rule7_clone_of_blacklisted":     {setup: clone, offset: 5, errno: errno.EINVAL, rule: rule.Blacklisted},
		"rule7_clone_in_4.4":             {setup: clone, kernel: "4.4", offset: 5},
		"rule7_before_8":                 {setup: func(f *fakeView) { f.black = []x86.Range{f.span()}; site(kimage.SiteJumpLabel, 5, 2)(f) }, offset: 5, errno: errno.EINVAL, rule: rule.Blacklisted},
		"rule8_jump_label":               {setup: site(kimage.SiteJumpLabel, 5, 2), offset: 5, errno: errno.EINVAL, rule: rule.JumpLabel},
		"rule8_inside_jump_label":        {setup: site(kimage.SiteJumpLabel, 5, 2), offset: 6, errno: errno.EINVAL, rule: rule.JumpLabel},
		"rule8_2.6.18":                   {setup: site(kimage.SiteJumpLabel, 5, 2), kernel: "2.6.18", offset: 5},
		"rule9_static_call":              {setup: site(kimage.SiteStaticCall, 4, 5), offset: 5, errno: errno.EINVAL, rule: rule.StaticCall},
		"rule9_static_call_5.8":          {setup: site(kimage.SiteStaticCall, 4, 5), kernel: "5.8", offset: 5},
		"rule10_bug":                     {setup: func(f *fakeView) { f.bugs = []x86.Addr{text + 5} }, offset: 5, errno: errno.EINVAL, rule: rule.BugTable},
		"rule10_bug_4.4":                 {setup: func(f *fakeView) { f.bugs = []x86.Addr{text + 5} }, kernel: "4.4", offset: 5},
		"rule11_pfx":                     {setup: rename("__pfx_fn"), offset: 5, errno: errno.EINVAL, rule: rule.CFISymbol},
		"rule11_cfi":                     {setup: rename("__cfi_fn"), offset: 5, errno: errno.EINVAL, rule: rule.CFISymbol},
		"rule11_pfx_5.8":                 {setup: rename("__pfx_fn"), kernel: "5.8", offset: 5},
		"rule11_swapped_pfx_6.8.1":       {setup: rename("__pfx_fn"), kernel: "6.8.1", offset: 5},
		"rule11_swapped_cfi_5.10":        {setup: rename("__cfi_fn"), kernel: "5.10", offset: 5},
		"rule11_swapped_part_6.8.1":      {setup: rename("__c"), kernel: "6.8.1", offset: 5, errno: errno.EINVAL, rule: rule.CFISymbol},
		"rule11_part_6.12":               {setup: rename("__c"), kernel: "6.12", offset: 5},
		"rule13_module_init":             {setup: func(f *fakeView) { f.init, f.initOf = f.span(), "demo" }, offset: 5, errno: errno.ENOENT, rule: rule.ModuleInit},
		"rule17_smp_lock_accepted":       {setup: site(kimage.SiteSMPLock, 5, 1), offset: 5},
		"rule17_smp_lock_refused":        {setup: site(kimage.SiteSMPLock, 5, 1), upBoot: true, offset: 5, errno: errno.EINVAL, rule: rule.SMPLock},
		"rule17_before_18":               {setup: site(kimage.SiteSMPLock, 6, 1), upBoot: true, offset: 6, errno: errno.EINVAL, rule: rule.SMPLock},
		"rule16_before_17":               {setup: func(f *fakeView) { site(kimage.SiteSMPLock, 0, 1)(f); site(kimage.SiteFtrace, 0, 5)(f) }, upBoot: true, ftrace: true},
		"rule18_middle":                  {offset: 6, errno: errno.EILSEQ, rule: rule.NotBoundary},
		"rule18_2.6.18_has_no_test":      {kernel: "2.6.18", offset: 6},
		"rule18_decode_error":            {body: []string{badVEX, movAX, ret}, offset: 3, errno: errno.EILSEQ, rule: rule.NotBoundary},
		"rule18_padding_int3":            {body: []string{ret, int3, movAX, ret}, offset: 2},
		"rule18_padding_int3_5.8":        {body: []string{ret, int3, movAX, ret}, kernel: "5.8", offset: 2, errno: errno.EILSEQ, rule: rule.NotBoundary},
		"rule18_no_symbol_5.10":          {setup: func(f *fakeView) { f.symbols[0].Size = 5 }, kernel: "5.10", offset: 8, errno: errno.EILSEQ, rule: rule.NotBoundary},
		"rule18_ud2_at_address_6.1":      {body: []string{movAX, ud2}, offset: 3},
		"rule18_ud2_at_address_6.12":     {body: []string{movAX, ud2}, kernel: "6.12", offset: 3, errno: errno.EILSEQ, rule: rule.ExceptionInsn},
		"rule18_int3_6.12":               {body: []string{ret, int3}, kernel: "6.12", offset: 1, errno: errno.EILSEQ, rule: rule.ExceptionInsn},
		"rule18_intn_6.12":               {body: []string{movAX, "\xcd\x80", ret}, kernel: "6.12", offset: 3, errno: errno.EILSEQ, rule: rule.ExceptionInsn},
		"rule18_cfi_mov":                 {body: cfiCheck, kernel: "6.12", setup: withTrap, offset: 3, errno: errno.EILSEQ, rule: rule.CFICheck},
		"rule18_cfi_add":                 {body: cfiCheck, kernel: "6.6", setup: withTrap, offset: 9, errno: errno.EILSEQ, rule: rule.CFICheck},
		"rule18_cfi_je":                  {body: cfiCheck, kernel: "6.12", setup: withTrap, offset: 13},
		"rule18_cfi_no_trap":             {body: cfiCheck, kernel: "6.12", offset: 3},
		"rule18_cfi_before_6.6":          {body: cfiCheck, kernel: "6.1", setup: withTrap, offset: 3},
		"rule18_bad_at_address_6.1":      {body: []string{movAX, badVEX}, offset: 3},
		"rule18_bad_at_address_6.5_kcfi": {body: []string{movAX, badVEX}, kernel: "6.5", kcfi: true, offset: 3},
		"rule18_bad_at_address_6.6":      {body: []string{movAX, badVEX}, kernel: "6.6", offset: 3},
		"rule18_bad_at_address_6.6_kcfi": {body: []string{movAX, badVEX}, kernel: "6.6", kcfi: true, offset: 3, errno: errno.EILSEQ, rule: rule.NotBoundary},
		"rule18_bad_at_address_6.8_kcfi": {body: []string{movAX, badVEX}, kernel: "6.8.12", kcfi: true, offset: 3, errno: errno.EILSEQ, rule: rule.NotBoundary},
		"rule18_bad_at_entry_6.6_kcfi":   {body: []string{badVEX}, kernel: "6.6", kcfi: true, errno: errno.EILSEQ, rule: rule.NotBoundary},
		"rule18_ud2_at_address_6.6_kcfi": {body: []string{movAX, ud2}, kernel: "6.6", kcfi: true, offset: 3},
		"rule18_bad_at_address_6.12":     {body: []string{movAX, badVEX}, kernel: "6.12", offset: 3, errno: errno.EILSEQ, rule: rule.NotBoundary},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.body == nil {
				tc.body = body
			}
			if tc.kernel == "" {
				tc.kernel = profile.Default
			}
			v := kernel(tc.body...)
			if tc.setup != nil {
				tc.setup(v)
			}
			c := named(t, tc.kernel)
			c.Check.SMPLocks, c.Built.KCFI = tc.upBoot, tc.kcfi
			p, err := probepoint.Resolve(v, probepoint.Request{Addr: v.text, Offset: tc.offset}, c)
			require.NoError(t, err)
			err = probepoint.Check(v, &p, c)
			if tc.errno != 0 {
				refused(t, err, tc.errno, tc.rule)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.ftrace, p.Ftrace)
		})
	}
}

// TestFtraceSiteNeedsKprobesOnFtrace: without the configuration the site is
// refused (docs/spec 1.4).
func TestFtraceSiteNeedsKprobesOnFtrace(t *testing.T) {
	v := kernel(nop5, ret)
	site(kimage.SiteFtrace, 0, 5)(v)
	c := named(t, "6.1")
	c.KprobesOnFtrace = false
	p, err := probepoint.Resolve(v, probepoint.Request{Symbol: "fn"}, c)
	require.NoError(t, err)
	refused(t, probepoint.Check(v, &p, c), errno.EINVAL, rule.FtraceSite)
}

func gate(f *fakeView) {
	f.text = 0xffffffffff600000
	f.symbols[0].Addr = f.text
}

func rename(to string) func(*fakeView) {
	return func(f *fakeView) { f.symbols[0].Name = to }
}

// going is a module whose text holds a jump label, and which is going away.
type going struct{ *fakeView }

func (going) ModuleState(string) probepoint.ModuleState { return probepoint.ModuleGoing }

// TestModuleGoingFirst: to 6.13 a reserved place in a module that is going away is EINVAL; later
// the module's reference is taken first.
func TestModuleGoingFirst(t *testing.T) {
	for release, want := range map[string]struct {
		no errno.Errno
		id rule.ID
	}{"6.12": {errno.EINVAL, rule.JumpLabel}, "6.14": {errno.ENOENT, rule.ModuleGoing}, "7.3": {errno.ENOENT, rule.ModuleGoing}} {
		v := kernel(movAX, ret)
		site(kimage.SiteJumpLabel, 0, 2)(v)
		v.symbols[0].Module = "demo"
		c := named(t, release)
		p, err := probepoint.Resolve(v, probepoint.Request{Addr: v.text}, c)
		require.NoError(t, err)
		refused(t, probepoint.Check(going{v}, &p, c), want.no, want.id)
	}
}

// clone makes the function a compiler's clone of a blacklisted one.
func clone(f *fakeView) {
	f.symbols[0].Name = "fn.isra.0"
	f.symbols = append(f.symbols, kimage.Symbol{Name: "fn", Addr: text + 0x1000, Size: 16})
	f.black = []x86.Range{{Start: text + 0x1000, End: text + 0x1010}}
}

// TestBoundaryAgreesWithDecoder: the chunked walk accepts exactly the starts
// that decoding from the symbol on visits.
// See docs/spec 1.5.
func TestBoundaryAgreesWithDecoder(t *testing.T) {
	c := named(t, "6.1")
	rapid.Check(t, func(t *rapid.T) {
		insns := rapid.SliceOfN(rapid.SampledFrom([]string{nop, nop5, movAX, ret, int3, ud2, sealed,
			"\x48\x8d\x05\x00\x00\x00\x00", "\xe8\x00\x00\x00\x00",
			"\x66\x66\x66\x66\x66\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00"}), 1, 200).Draw(t, "insns")
		v := kernel(insns...)
		starts := map[int]bool{}
		for off := 0; off < len(v.code)-16; {
			k, err := decoder.DecodeKernel(v.code[off:], &c.Decoder)
			require.NoError(t, err)
			starts[off] = true
			off += k.Length
		}
		off := rapid.IntRange(0, len(v.code)-17).Draw(t, "offset")
		p := probepoint.Point{Addr: text.Add(int64(off)), Symbol: v.symbols[0], Offset: uint64(off)}
		err := probepoint.Check(v, &p, c)
		require.Equal(t, starts[off], err == nil, "offset %d: %v", off, err)
	})
}

func BenchmarkCheck(b *testing.B) {
	insns := make([]string, 300)
	for i := range insns {
		insns[i] = movAX
	}
	v := kernel(insns...)
	c := named(b, "6.1")
	p := probepoint.Point{Addr: text + 897, Symbol: v.symbols[0], Offset: 897}
	b.ReportAllocs()
	for b.Loop() {
		if err := probepoint.Check(v, &p, c); err != nil {
			b.Fatal(err)
		}
	}
}
