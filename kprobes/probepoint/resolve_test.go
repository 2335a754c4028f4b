package probepoint_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/x86"
)

// named returns a named profile, or a release's.
func named(t require.TestingT, name string) *profile.Config {
	if c, ok := profile.Named(name); ok {
		return c
	}
	v, ok := profile.ParseVersion(name)
	require.True(t, ok, name)
	return profile.ForRelease(v)
}

// refused asserts that err is a refusal by that rule, with that errno.
func refused(t require.TestingT, err error, e errno.Errno, rule rule.ID) {
	var r *probepoint.Refusal
	require.ErrorAs(t, err, &r)
	require.Equal(t, rule, r.Rule)
	require.Equal(t, e, r.Errno)
	require.ErrorIs(t, err, e)
	require.Equal(t, e, errno.Of(err))
}

// TestResolve goes through docs/spec 1.2, step by step.
func TestResolve(t *testing.T) {
	plain := kernel(movAX, nop, ret)
	plain.symbols = append(plain.symbols,
		kimage.Symbol{Name: "twice", Addr: text + 3, Size: 1},
		kimage.Symbol{Name: "twice", Addr: text + 4, Size: 1, Module: "demo"})
	ibt := kernel(endbr64, nop5, movAX, ret)
	sealedFn := kernel(sealed, nop5, ret)
	hole := kernel(movAX, ret)
	hole.holes = []x86.Range{{Start: text, End: text + 1}}

	tests := map[string]struct {
		view    *fakeView
		request probepoint.Request
		kernel  string
		addr    x86.Addr
		entry   bool
		errno   errno.Errno
		rule    rule.ID
	}{
		"step1_both":                 {view: plain, request: probepoint.Request{Symbol: "fn", Addr: text}, errno: errno.EINVAL, rule: rule.TwoPlaces},
		"step1_neither":              {view: plain, errno: errno.EINVAL, rule: rule.NoPlace},
		"step1_2.6.18_has_no_names":  {view: plain, kernel: "2.6.18", request: probepoint.Request{Symbol: "fn"}, errno: errno.EINVAL, rule: rule.SymbolNames},
		"step2_unknown":              {view: plain, request: probepoint.Request{Symbol: "nosuch"}, errno: errno.ENOENT, rule: rule.UnknownSymbol},
		"step2_unknown_2.6.32":       {view: plain, kernel: "2.6.32", request: probepoint.Request{Symbol: "nosuch"}, errno: errno.EINVAL, rule: rule.UnknownSymbol},
		"step2_unknown_3.2":          {view: plain, kernel: "3.2", request: probepoint.Request{Symbol: "nosuch"}, errno: errno.ENOENT, rule: rule.UnknownSymbol},
		"step2_wrong_module":         {view: plain, request: probepoint.Request{Symbol: "other:twice"}, errno: errno.ENOENT, rule: rule.UnknownSymbol},
		"step2_module":               {view: plain, request: probepoint.Request{Symbol: "demo:twice"}, addr: text + 4},
		"step2_ambiguous_is_first":   {view: plain, request: probepoint.Request{Symbol: "twice"}, addr: text + 3},
		"step3_offset":               {view: plain, request: probepoint.Request{Symbol: "fn", Offset: 3}, addr: text + 3},
		"step3_offset_of_address":    {view: plain, request: probepoint.Request{Addr: text, Offset: 4}, addr: text + 4},
		"step4_outside":              {view: plain, request: probepoint.Request{Symbol: "fn", Offset: 0x7fffffff}, errno: errno.ENOENT, rule: rule.NoSymbol},
		"step4_user":                 {view: plain, request: probepoint.Request{Addr: 0x400000}, errno: errno.ENOENT, rule: rule.NoSymbol},
		"step4_5.10_passes":          {view: plain, kernel: "5.10", request: probepoint.Request{Addr: 0x400000}, addr: 0x400000},
		"step4_5.10_null":            {view: plain, kernel: "5.10", request: probepoint.Request{Addr: ^x86.Addr(0), Offset: 1}, errno: errno.EINVAL, rule: rule.NoPlace},
		"step5_entry":                {view: plain, request: probepoint.Request{Symbol: "fn"}, addr: text, entry: true},
		"step5_6.1_no_endbr_rule":    {view: ibt, request: probepoint.Request{Symbol: "fn"}, addr: text, entry: true},
		"step5_endbr_0":              {view: ibt, kernel: "6.12", request: probepoint.Request{Symbol: "fn"}, addr: text + 4, entry: true},
		"step5_endbr_4":              {view: ibt, kernel: "6.12", request: probepoint.Request{Symbol: "fn", Offset: 4}, addr: text + 4, entry: true},
		"step5_endbr_1_is_not_entry": {view: ibt, kernel: "6.12", request: probepoint.Request{Symbol: "fn", Offset: 1}, addr: text + 1},
		"step5_sealed_endbr":         {view: sealedFn, kernel: "6.12", request: probepoint.Request{Addr: text}, addr: text + 4, entry: true},
		"step5_no_endbr":             {view: plain, kernel: "6.12", request: probepoint.Request{Symbol: "fn"}, addr: text, entry: true},
		"step5_unreadable":           {view: hole, kernel: "6.12", request: probepoint.Request{Symbol: "fn", Offset: 3}, errno: errno.EINVAL, rule: rule.Unreadable},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.kernel == "" {
				tc.kernel = profile.Default
			}
			p, err := probepoint.Resolve(tc.view, tc.request, named(t, tc.kernel))
			if tc.errno != 0 {
				refused(t, err, tc.errno, tc.rule)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.addr, p.Addr)
			require.Equal(t, tc.entry, p.Entry)
		})
	}
}

// TestPoison: each release recognizes its own nop as a sealed ENDBR, and not the other's.
func TestPoison(t *testing.T) {
	for nop, newer := range map[string]bool{sealed: false, "\x0f\x1f\x40\xd6": true} {
		for _, rule := range []bool{false, true} {
			c := named(t, "6.12")
			c.Resolve.NoplPoison = rule
			p, err := probepoint.Resolve(kernel(nop, nop5, ret), probepoint.Request{Symbol: "fn"}, c)
			require.NoError(t, err)
			want := text
			if rule == newer {
				want += 4
			}
			require.EqualValues(t, want, p.Addr)
			require.True(t, p.Entry)
		}
	}
}

// If a kernel takes no names, the refusal prints the address to use.
func TestRefusalTellsTheAddress(t *testing.T) {
	v, c := kernel(movAX, nop, ret), named(t, "2.6.18")
	_, err := probepoint.Resolve(v, probepoint.Request{Symbol: "fn", Offset: 3}, c)
	require.EqualError(t, err, "probe fn+0x3: this kernel takes an address, not a symbol name; it is at "+(text+3).String()+" (EINVAL)")
	_, err = probepoint.Resolve(v, probepoint.Request{Symbol: "nosuch"}, c)
	require.EqualError(t, err, "probe nosuch: this kernel takes an address, not a symbol name (EINVAL)")
}

func TestRefusalText(t *testing.T) {
	v := kernel(movAX, ret)
	c := named(t, "6.1")
	tests := map[string]struct {
		request probepoint.Request
		text    string
	}{
		"middle":  {probepoint.Request{Symbol: "fn", Offset: 1}, "probe fn+0x1: not at an instruction boundary (EILSEQ)"},
		"unknown": {probepoint.Request{Symbol: "nosuch", Offset: 16}, "probe nosuch+0x10: no such symbol (ENOENT)"},
		"address": {probepoint.Request{Addr: 0x1000}, "probe 0x1000: no symbol covers the address (ENOENT)"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := probepoint.Resolve(v, tc.request, c)
			if err == nil {
				err = probepoint.Check(v, &p, c)
			}
			require.EqualError(t, err, tc.text)
		})
	}
}

// TestResolveProperties: for every request, the result is the requested address (or the one past
// the ENDBR), and a refusal has one of two errnos.
func TestResolveProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := kernel(rapid.SampledFrom([]string{endbr64, sealed, nop5}).Draw(t, "first"), movAX, movAX, ret)
		c := named(t, rapid.SampledFrom(profile.Names()).Draw(t, "kernel"))
		r := probepoint.Request{
			Addr:   text.Add(int64(rapid.IntRange(-20, 40).Draw(t, "addr"))),
			Offset: rapid.Uint32Range(0, 64).Draw(t, "offset"),
		}
		p, err := probepoint.Resolve(v, r, c)
		if err != nil {
			require.True(t, errors.Is(err, errno.ENOENT) || errors.Is(err, errno.EINVAL))
			return
		}
		asked := r.Addr.Add(int64(r.Offset))
		require.True(t, p.Addr == asked || p.Addr == asked+4 && p.Entry)
		if p.Symbol.Name != "" {
			require.Equal(t, p.Symbol.Addr.Add(int64(p.Offset)), p.Addr)
		}
	})
}
