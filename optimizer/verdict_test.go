package optimizer

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/x86"
)

// ids are the reasons of a Verdict.
func ids(v Verdict) (list []rule.ID) {
	for i := range v.Reasons {
		list = append(list, v.Reasons[i].ID)
	}
	return list
}

// TestHazards: each thing in a function that forbids its optimization, or looks
// as if it did, by release. The probe is at offset 16.
func TestHazards(t *testing.T) {
	const at = 16
	jmpTo := func(op byte, to int) *code { // a short jump at offset 0
		v := nops(0, []byte{op, byte(to - 2)}, 40)
		return v
	}
	far := func(b ...byte) *code { return nops(0, b, 40) }
	probed := func(b ...byte) *code { return nops(at, b, 24) }
	thunk := func(op ...byte) *code {
		d := thunkBase.Sub(base) - int64(len(op)+4)
		return far(append(op, byte(d), byte(d>>8), byte(d>>16), byte(d>>24))...)
	}
	yes := []rule.ID(nil)
	no := func(id ...rule.ID) []rule.ID { return id }
	all := profile.Names()[1:]
	for name, c := range map[string]struct {
		code *code
		on   []string
		want []rule.ID
	}{
		"nothing":                        {nops(at, nil, 24), all, yes},
		"no_optprobes":                   {nops(at, nil, 24), []string{"2.6.18"}, no(rule.NoOptprobes, rule.NotBoostable, rule.NotBoostable, rule.NotBoostable, rule.NotBoostable, rule.NotBoostable)},
		"five_bytes_left":                {nops(at, nil, 5), all, yes},
		"four_bytes_left":                {nops(at, nil, 4), all, no(rule.TooShort, rule.CopyUnreadable)},
		"last_insn_over_the_end":         {&code{bytes: append(make32(16), 0x90, 0x90, 0x90, 0x90, 0xb8, 0, 0, 0, 0), size: at + 5}, all, yes},
		"jump_to_the_probe":              {jmpTo(0xeb, at), all, yes},
		"jump_to_second_byte":            {jmpTo(0xeb, at+1), all, no(rule.JTPRTarget)},
		"jump_to_last_byte":              {jmpTo(0x74, at+4), all, no(rule.JTPRTarget)},
		"jump_to_byte_after":             {jmpTo(0xeb, at+5), all, no(rule.JTPRTarget)},
		"jump_two_bytes_after":           {jmpTo(0xeb, at+6), all, yes},
		"loop_into":                      {jmpTo(0xe2, at+2), all, no(rule.JTPRTarget)},
		"jrcxz_into":                     {jmpTo(0xe3, at+2), all, no(rule.JTPRTarget)},
		"long_jcc_into":                  {far(0x0f, 0x85, at-6+3, 0, 0, 0), all, no(rule.JTPRTarget)},
		"long_jmp_into":                  {far(0xe9, at-5+3, 0, 0, 0), all, no(rule.JTPRTarget)},
		"call_into":                      {far(0xe8, at-5+3, 0, 0, 0), all, yes},
		"jump_backwards_into":            {nops(36, []byte{0xeb, 0xee}, 8), all, no(rule.JTPRTarget)}, // 38-18 = 20
		"vex_opcode_taken_for_a_jump":    {far(0xc5, 0xf9, 0x70, 0xc0, at-5+2), []string{"5.10", "6.1", "6.12"}, no(rule.JTPRTarget)},
		"indirect_jump":                  {far(0xff, 0xe0), []string{"4.4", "5.8", "5.10", "6.1"}, no(rule.IndirectJump)},
		"indirect_jump_with_thunks":      {far(0xff, 0xe0), []string{"6.12"}, yes},
		"indirect_far_jump":              {far(0xff, 0x28), []string{"6.1"}, no(rule.IndirectJump)},
		"notrack_jump":                   {far(0x3e, 0xff, 0xe0), []string{"6.1"}, no(rule.IndirectJump)},
		"indirect_call":                  {far(0xff, 0xd0), all, yes},
		"jump_to_a_thunk":                {thunk(0xe9), []string{"4.4", "5.8", "5.10", "6.1"}, no(rule.ThunkJump)},
		"jcc_to_a_thunk":                 {thunk(0x0f, 0x84), []string{"6.1"}, no(rule.ThunkJump)},
		"jump_to_a_thunk_later":          {thunk(0xe9), []string{"6.12"}, yes},
		"call_of_a_thunk":                {thunk(0xe8), all, yes},
		"int3_elsewhere":                 {far(0xcc), []string{"4.4", "5.8"}, no(rule.Int3InFunction)},
		"int3_elsewhere_is_padding":      {far(0xcc), []string{"5.10", "6.1", "6.12"}, yes},
		"int3_in_the_region":             {probed(0x90, 0x90, 0xcc), []string{"6.1"}, no(rule.CopyInt3)},
		"exception_in_the_function":      {&code{bytes: make32(40), exceptions: []x86.Addr{base + 3}}, all, no(rule.ExceptionEntry)},
		"undecodable":                    {far(0x48, 0xea, 1, 2, 3, 4, 5, 6), []string{"6.1"}, no(rule.OptUndecodable)},
		"call_in_the_region":             {probed(0xe8, 1, 0, 0, 0), all, no(rule.NotBoostable)},
		"jcc_in_the_region":              {probed(0x90, 0x74, 9), all, no(rule.NotBoostable)},
		"jcc_after_the_region":           {probed(0xb8, 1, 0, 0, 0, 0x74, 9), all, yes},
		"shift_in_the_region":            {probed(0x48, 0xc1, 0xe0, 4), []string{"5.10", "6.1"}, no(rule.NotBoostable)},
		"shift_in_the_region_later":      {probed(0x48, 0xc1, 0xe0, 4), []string{"6.12"}, yes},
		"inc_in_the_region":              {probed(0xff, 0xc0), []string{"6.1"}, no(rule.NotBoostable)},
		"not_in_the_region":              {probed(0x48, 0xf7, 0xd0), []string{"6.1"}, no(rule.NotBoostable)},
		"mov_ss_in_the_region":           {probed(0x8e, 0xd0), []string{"5.8", "6.1"}, no(rule.CopyMasksExceptions)},
		"xen_prefix_in_the_region":       {probed(0x0f, 0x0b, 0x78, 0x65, 0x6e, 0x90), []string{"6.1"}, no(rule.CopyEmulatePrefix)},
		"rip_relative_in_the_region":     {probed(0x48, 0x8b, 5, 1, 2, 3, 0), all, yes},
		"rip_relative_out_of_reach":      {probed(0x48, 0x8b, 5, 0, 0, 0, 0x80), []string{"6.1"}, no(rule.CopyDisplacement)},
		"region_of_19_bytes":             {probed(0x90, 0x90, 0x90, 0x90, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90), []string{"6.1"}, yes},
		"jump_label_in_the_region":       {nops(at, nil, 24).site(kimage.SiteJumpLabel, at+4, 2), all, no(rule.ReservedJumpLabel)},
		"jump_label_reaching_in":         {nops(at, nil, 24).site(kimage.SiteJumpLabel, at-4, 5), all, no(rule.ReservedJumpLabel)},
		"jump_label_right_after":         {nops(at, nil, 24).site(kimage.SiteJumpLabel, at+5, 5), all, yes},
		"static_call_in_the_region":      {nops(at, nil, 24).site(kimage.SiteStaticCall, at+4, 5), []string{"5.10", "6.1", "6.12"}, no(rule.ReservedStaticCall)},
		"ftrace_site_in_the_region":      {nops(at, nil, 24).site(kimage.SiteFtrace, at+2, 5), all, no(rule.ReservedFtrace)},
		"ftrace_based":                   {nops(at, nil, 24).site(kimage.SiteFtrace, at, 5), all, no(rule.FtraceBased, rule.ReservedFtrace)},
		"lock_prefix_in_the_region":      {nops(at, nil, 24).site(kimage.SiteSMPLock, at+2, 1), all, yes},
		"alternative_in_the_region":      {nops(at, nil, 24).site(kimage.SiteAlternative, at+2, 3), all, yes},
		"entry_text":                     {&code{bytes: make32(40), entry: x86.Range{Start: base, End: base + 40}}, all, no(rule.EntryText)},
		"no_symbol":                      {&code{bytes: make32(40), noSymbol: true}, all, no(rule.OptNoSymbol)},
		"several_reasons_in_their_order": {nops(0, []byte{0xff, 0xe0, 0xeb, at - 4 + 2}, 40).site(kimage.SiteJumpLabel, at+4, 5), []string{"6.1"}, no(rule.IndirectJump, rule.JTPRTarget, rule.ReservedJumpLabel)},
		"the_earlier_reason_first":       {nops(0, []byte{0xeb, at - 2 + 2, 0xff, 0xe0}, 40), []string{"6.1"}, no(rule.JTPRTarget, rule.IndirectJump)},
	} {
		for _, kernel := range c.on {
			t.Run(name+"/"+kernel, func(t *testing.T) {
				cfg := named(kernel)
				v := Check(c.code, base+at, cfg)
				require.Equal(t, c.want, ids(v))
				require.Equal(t, len(c.want) == 0, v.OK)
				requireSame(t, NewScanner(c.code, cfg).Decide(base+at), v)
				_, err := BuildDetour(c.code, base+at, x86.Addr(cfg.ModuleBase), cfg, DetourParams{Callback: base})
				require.Equal(t, !anyOf(v, rule.Distance), err == nil, "%v", err)
			})
		}
	}
}

func make32(n int) []byte { return nops(n, nil, 0).bytes }

// anyOf reports whether a reason has a rule that prevents the buffer (from and later).
func anyOf(v Verdict, from rule.ID) bool {
	for i := range v.Reasons {
		if v.Reasons[i].ID >= from {
			return true
		}
	}
	return false
}

// requireSame: the decision is the Verdict's first reason.
func requireSame(t require.TestingT, d Decision, v Verdict) {
	require.Equal(t, v.OK, d.OK)
	require.Equal(t, v.Errno(), d.Errno())
	if s := v.Stops(); s != nil {
		require.Equal(t, s.ID, d.Reason)
		require.Equal(t, s.Addr, d.Addr)
		return
	}
	require.Equal(t, v.DCR.End.Sub(v.DCR.Start), int64(d.Size))
}

// TestDocumentedRegionIsShorter: the jump to the byte after the region is marked,
// for the documentation would allow it.
func TestDocumentedRegionIsShorter(t *testing.T) {
	for to, beyond := range map[int]bool{17: false, 20: false, 21: true} {
		v := Check(nops(0, []byte{0xeb, byte(to - 2)}, 40), base+16, named("6.1"))
		require.Equal(t, []rule.ID{rule.JTPRTarget}, ids(v))
		require.Equal(t, beyond, v.Reasons[0].BeyondDoc, "%d", to)
		require.Equal(t, base.Add(int64(to)), v.Reasons[0].Target)
	}
}

func TestPreemptionWithoutOptimization(t *testing.T) {
	c := named("4.4")
	c.Preemption = true
	require.Equal(t, []rule.ID{rule.NoOptprobes}, ids(Check(nops(0, nil, 40), base+16, c)), "to 4.14")
}

func TestSMPLocksThatMayBePatched(t *testing.T) {
	c := named("6.1")
	c.Check.SMPLocks = true
	v := Check(nops(0, nil, 40).site(kimage.SiteSMPLock, 18, 1), base+16, c)
	require.Equal(t, []rule.ID{rule.ReservedSMPLock}, ids(v))
	require.Equal(t, errno.EBUSY, v.Errno())
}

// TestDistanceHasItsSignWrong: the buffer's distance counts 5 bytes too many
// forwards, and so too few backwards.
func TestDistanceHasItsSignWrong(t *testing.T) {
	at := base
	for rel, want := range map[int64]bool{
		0x7fffffff - 5: false, 0x7fffffff - 4: true, -0x7fffffff - 5: false, -0x7fffffff - 6: true,
	} {
		require.Equal(t, want, tooFar(at, at.Add(rel)), "%#x", rel)
	}
	v := NewScannerAt(nops(0, nil, 40), base.Add(-1<<32), named("6.1")).Check(base + 16)
	require.Equal(t, []rule.ID{rule.Distance}, ids(v))
	require.Equal(t, errno.ERANGE, v.Errno())
	_, err := BuildDetour(nops(0, nil, 40), base+16, base.Add(-1<<32), named("6.1"), DetourParams{})
	require.ErrorIs(t, err, errno.ERANGE)
}

func TestEveryReasonHasASentence(t *testing.T) {
	for _, id := range rule.Of(rule.Optimization) {
		r := Reason{ID: id, Addr: base + 1, Target: base + 2}
		require.Regexp(t, `^\S.*[^.]$`, r.Sentence())
		require.NotContains(t, r.Sentence(), "{")
	}
}

// TestScannerAgreesWithCheck on random code under random rules.
func TestScannerAgreesWithCheck(t *testing.T) {
	// Bytes that make jumps, prefixes and exceptions likely.
	likely := rapid.OneOf(
		rapid.SampledFrom([]byte{0x90, 0xeb, 0x74, 0xe8, 0xcc, 0x48, 0x89, 0x05, 0xff, 0x0f, 0xc3, 4, 8, 0xf8, 0x55}),
		rapid.Byte(),
	)
	rapid.Check(t, func(rt *rapid.T) {
		v := &code{bytes: rapid.SliceOfN(likely, 1, 80).Draw(rt, "code")}
		for _, kind := range []kimage.SiteKind{kimage.SiteFtrace, kimage.SiteJumpLabel, kimage.SiteStaticCall} {
			if rapid.IntRange(0, 9).Draw(rt, "site") == 0 {
				v.site(kind, rapid.IntRange(0, len(v.bytes)).Draw(rt, "at"), 5)
			}
		}
		if rapid.IntRange(0, 5).Draw(rt, "fault") == 0 {
			v.exceptions = []x86.Addr{base.Add(int64(rapid.IntRange(0, len(v.bytes)).Draw(rt, "faulting")))}
		}
		c := named(rapid.SampledFrom(profile.Names()).Draw(rt, "kernel"))
		s := NewScanner(v, c)
		for off := range len(v.bytes) {
			at := base.Add(int64(off))
			requireSame(rt, s.Decide(at), Check(v, at, c))
		}
	})
}

// TestInt3Tail: from 5.11 on int3s at the function's end are padding; others
// forbid until 6.1.1.
func TestInt3Tail(t *testing.T) {
	for name, tc := range map[string]struct {
		code *code
		tail bool
		want bool
	}{
		"tail":               {nops(40, bytes.Repeat([]byte{0xcc}, 20), 0), true, true},
		"tail_before_5.11":   {nops(40, bytes.Repeat([]byte{0xcc}, 20), 0), false, false},
		"code_after_padding": {nops(40, bytes.Repeat([]byte{0xcc}, 20), 1), true, false},
		"after_a_return":     {nops(30, []byte{0xc3, 0xcc}, 30), true, false},
		// As thunks that boot wrote back to returns leave it; no part of it is UTF-8.
		"two_returns": {nops(30, []byte{0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xc3, 0xcc, 0xcc, 0xcc, 0xcc}, 0), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := named("6.1")
			c.Optimize.Int3Blocks, c.Optimize.Int3Tail = true, tc.tail
			v := Check(tc.code, base+4, c)
			require.Equal(t, tc.want, len(v.Reasons) == 0, v.Reasons)
		})
	}
}
