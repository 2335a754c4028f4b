package optimizer

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/x86"
)

// otherwise is a Reader that is wrong about one address.
type otherwise struct {
	decoder.X86asm
	at x86.Addr
	r  decoder.Reading
}

func (o otherwise) Read(b []byte, at x86.Addr) decoder.Reading {
	if at == o.at {
		return o.r
	}
	return o.X86asm.Read(b, at)
}

// TestReaderDecides: lengths, branches and targets are the Reader's, if it
// stands alone.
func TestReaderDecides(t *testing.T) {
	const at = base + 16
	c := named("6.1")
	v := nops(0, []byte{0xeb, 0x20}, 40)
	for name, k := range map[string]struct {
		at   x86.Addr
		r    decoder.Reading
		want []rule.ID
		size int
	}{
		"as_it_is":      {base, decoder.Reading{Length: 2, Kind: decoder.KindJump, Target: base + 34}, nil, 5},
		"jump_into":     {base, decoder.Reading{Length: 2, Kind: decoder.KindJump, Target: at + 5}, []rule.ID{rule.JTPRTarget}, 5},
		"no_jump":       {base, decoder.Reading{Length: 2, Kind: decoder.KindPlain, Target: at + 5}, nil, 5},
		"indirect":      {base, decoder.Reading{Length: 2, Kind: decoder.KindIndirectJump}, []rule.ID{rule.IndirectJump}, 5},
		"no_insn":       {base, decoder.Reading{}, []rule.ID{rule.OptUndecodable}, 5},
		"longer_in_dcr": {at + 4, decoder.Reading{Length: 3, Kind: decoder.KindPlain}, nil, 7},
	} {
		t.Run(name, func(t *testing.T) {
			r := otherwise{at: k.at, r: k.r}
			got := Check(kimage.ReadBy(v, decoder.Alone{Reader: r}), at, c)
			require.Equal(t, k.want, ids(got))
			require.EqualValues(t, k.size, got.DCR.Len())
			require.Empty(t, got.Overruled)
			// The kernel's decoder wins.
			got = Check(kimage.ReadBy(v, r), at, c)
			require.True(t, got.OK)
			require.EqualValues(t, 5, got.DCR.Len())
			require.Equal(t, name != "as_it_is", len(got.Overruled) == 1)
		})
	}
}

// TestOverruled: a vector instruction that the kernel's decoder takes for a
// jump is in the verdict, with whether that matters.
func TestOverruled(t *testing.T) {
	c := named("6.1")
	vzeroupper := []byte{0xc5, 0xf8, 0x77}
	for name, k := range map[string]struct {
		off     int64
		matters bool
	}{"jump_into_jtpr": {0, true}, "in_dcr": {4, true}, "elsewhere": {20, false}} {
		t.Run(name, func(t *testing.T) {
			v := nops(4, vzeroupper, 40)
			got := Check(v, base.Add(k.off), c)
			require.Equal(t, "x86asm", got.Reader)
			want := Insn{Addr: base + 4, Len: 3}
			copy(want.Code[:], vzeroupper)
			require.Equal(t, []Overruled{{
				Insn: want, Read: decoder.Reading{Length: 3, Kind: decoder.KindPlain},
				Kernel: decoder.Reading{Length: 3, Kind: decoder.KindJump, Target: base + 7}, Matters: k.matters,
			}}, got.Overruled)
			require.Equal(t, name == "elsewhere", got.OK)
		})
	}
}

// TestReadersGiveTheSameVerdicts: of any bytes, x86asm with its overrides and
// the tables, each under the kernel's decoder. Alone they do where both know
// every instruction.
func TestReadersGiveTheSameVerdicts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := &code{bytes: rapid.SliceOfN(rapid.Byte(), 8, 60).Draw(t, "code")}
		c := named(rapid.SampledFrom(profile.Names()).Draw(t, "profile"))
		at := base.Add(rapid.Int64Range(0, int64(len(v.bytes))-1).Draw(t, "at"))
		both := decoder.NewBoth(decoder.X86asm{}, decoder.Tables{})
		one, other := kimage.ReadBy(v, both), kimage.ReadBy(v, decoder.Tables{})
		require.Equal(t, verdict(one, at, c), verdict(other, at, c))
		alone := func(r decoder.Reader) Verdict { return verdict(kimage.ReadBy(v, decoder.Alone{Reader: r}), at, c) }
		a, b := alone(both), alone(decoder.Tables{})
		if len(both.Differences()) == 0 {
			require.Equal(t, a, b)
		}
	})
}

// verdict is Check's without who was overruled.
func verdict(v kimage.View, at x86.Addr, c *profile.Config) Verdict {
	got := Check(v, at, c)
	got.Overruled, got.Reader, got.Reasons = nil, "", slices.Clone(got.Reasons)
	return got
}
