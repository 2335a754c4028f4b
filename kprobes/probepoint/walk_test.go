package probepoint_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/profile"
)

const slotAt = 0xffffffffc0000000

// TestWalkedPointsAreAnsweredAlike: whatever the bytes, a function walked once
// gets the answers of a walk for each point, and what the walk passes over is
// no boundary.
func TestWalkedPointsAreAnsweredAlike(t *testing.T) {
	insns := rapid.OneOf(
		rapid.SampledFrom([]string{nop, nop5, movAX, ret, int3, ud2, endbr64, sealed, badVEX, "\xff\x17", "\x17"}),
		rapid.StringOfN(rapid.RuneFrom([]rune("\x00\x0f\x48\x66\x70\x7f")), 1, 4, -1),
	)
	rapid.Check(t, func(t *rapid.T) {
		v := kernel(rapid.SliceOfN(insns, 1, 30).Draw(t, "code")...)
		v.symbols[0].Size = uint64(len(v.code))
		v.sites[kimage.SiteJumpLabel] = []kimage.Site{{Addr: text + 3, Len: 5}}
		c := named(t, rapid.SampledFrom(profile.Names()).Draw(t, "profile"))
		c.Check.PaddingInt3 = rapid.Bool().Draw(t, "padding")
		walked := map[uint64]bool{}
		probepoint.Walk(v, v.symbols[0], c, func(s *probepoint.Step) bool {
			walked[s.Offset] = true
			sameAnswer(t, v, s, c)
			return true
		})
		if !c.Check.Boundary {
			return
		}
		for off := range uint32(len(v.code)) {
			p, err := probepoint.Resolve(v, probepoint.Request{Addr: text, Offset: off}, c)
			if err == nil && !walked[p.Offset] {
				require.Error(t, probepoint.Check(v, &p, c), "%d", off)
			}
		}
	})
}

func sameAnswer(t require.TestingT, v kimage.View, s *probepoint.Step, c *profile.Config) {
	at := text.Add(int64(s.Offset))
	p, err := probepoint.Resolve(v, probepoint.Request{Addr: at}, c)
	if err != nil || p.Addr != at {
		return
	}
	q := p
	want, wantErr := probepoint.Place(v, &p, slotAt, false, c)
	got, gotErr := probepoint.PlaceStep(v, &q, s, slotAt, false, c)
	require.Equal(t, want, got, "%+v", s)
	require.Equal(t, wantErr, gotErr, "%+v", s)
	require.Equal(t, p, q)
}

func TestWalkEnds(t *testing.T) {
	c := named(t, "6.1")
	for name, k := range map[string]struct {
		insns []string
		size  uint64
		want  []uint64
	}{
		"with_the_symbol":       {[]string{movAX, nop5, ret, nop}, 9, []uint64{0, 3, 8}},
		"instruction_over_end":  {[]string{movAX, nop5, ret}, 4, []uint64{0, 3}},
		"where_decoder_fails":   {[]string{nop, badVEX, ret}, 5, []uint64{0, 1}},
		"no_size_no_steps":      {[]string{nop}, 0, nil},
		"behind_the_text_read0": {[]string{nop}, 1 << 40, []uint64{0, 1, 3, 5, 7, 9, 11, 13, 15, 17}},
	} {
		t.Run(name, func(t *testing.T) {
			v := kernel(k.insns...)
			v.symbols[0].Size = k.size
			var got []uint64
			probepoint.Walk(v, v.symbols[0], c, func(s *probepoint.Step) bool {
				got = append(got, s.Offset)
				return true
			})
			require.Equal(t, k.want, got)
		})
	}
}
