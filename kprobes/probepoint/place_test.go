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

// TestWalkedPointsAreAnsweredAlike: whatever the bytes, one walk over a function gives the same
// answers as a walk for each point, and an address that the walk passes over is no boundary.
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
		for s := range kimage.NewWalker(v, &c.Decoder).Function(v.symbols[0]) {
			walked[uint64(s.Addr.Sub(text))] = true
			sameAnswer(t, v, s, c)
		}
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

func sameAnswer(t require.TestingT, v kimage.View, s *kimage.Step, c *profile.Config) {
	p, err := probepoint.Resolve(v, probepoint.Request{Addr: s.Addr}, c)
	if err != nil || p.Addr != s.Addr {
		return
	}
	q := p
	want, wantErr := probepoint.Place(v, &p, slotAt, false, c)
	got, gotErr := probepoint.PlaceStep(v, &q, s, slotAt, false, c)
	require.Equal(t, want, got, "%+v", s)
	require.Equal(t, wantErr, gotErr, "%+v", s)
	require.Equal(t, p, q)
}
