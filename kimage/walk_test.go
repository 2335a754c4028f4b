package kimage_test

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/x86"
)

const walkStart x86.Addr = 0xffffffff81000000

// codeView is a View of code alone.
type codeView struct {
	kimage.View
	code   string
	reader decoder.Reader
}

func (v codeView) Reader() decoder.Reader { return cmp.Or[decoder.Reader](v.reader, decoder.X86asm{}) }

func (v codeView) CodeAt(at x86.Addr, b []byte) int {
	off := at.Sub(walkStart)
	if off < 0 || off >= int64(len(v.code)) {
		return 0
	}
	return copy(b, v.code[off:])
}

func TestWalkEnds(t *testing.T) {
	const (
		nop    = "\x90"
		nop5   = "\x0f\x1f\x44\x00\x00"
		movAX  = "\x48\x89\xc3"
		ret    = "\xc3"
		int3   = "\xcc"
		badVEX = "\xc5\xf8\x04\xc0"
		long   = "\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08"
	)
	for name, k := range map[string]struct {
		kernel, code string
		size         uint64
		want         []int64
		err          error
	}{
		"with_the_symbol":       {"6.1", movAX + nop5 + ret + nop, 9, []int64{0, 3, 8}, nil},
		"instruction_over_end":  {"6.1", movAX + nop5 + ret, 4, []int64{0, 3}, nil},
		"no_size_no_steps":      {"6.1", nop, 0, nil, nil},
		"where_memory_ends":     {"6.1", nop + ret, 1 << 40, []int64{0, 1, 2}, kimage.ErrUnreadable},
		"past_the_first_chunk":  {"6.1", repeat(long, 30), 300, multiples(30, 10), nil},
		"no_error_but_no_bytes": {"5.8", nop + "\x66", 3, []int64{0, 1, 2}, kimage.ErrUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := profile.Named(k.kernel)
			got, last := walk(codeView{code: k.code}, k.size, c)
			require.Equal(t, k.want, got)
			require.Equal(t, k.err, last.Err)
		})
	}
	t.Run("where_decoder_fails", func(t *testing.T) {
		c, _ := profile.Named("6.1")
		got, last := walk(codeView{code: nop + badVEX + ret}, 6, c)
		require.Equal(t, []int64{0, 1}, got)
		require.Error(t, last.Err)
	})
	t.Run("after_int3", func(t *testing.T) {
		c, _ := profile.Named("6.1")
		var after, padding []bool
		v := codeView{code: nop + int3 + nop + "\xf3" + int3}
		for s := range kimage.NewWalker(v, &c.Decoder).Function(kimage.Symbol{Addr: walkStart, Size: 5}) {
			after, padding = append(after, s.AfterInt3), append(padding, s.IsPadding())
		}
		require.Equal(t, []bool{false, false, true, true}, after)
		require.Equal(t, []bool{false, true, false, false}, padding)
	})
}

func repeat(code string, n int) (all string) {
	for range n {
		all += code
	}
	return all
}

func multiples(n, of int) (list []int64) {
	for i := range n {
		list = append(list, int64(i*of))
	}
	return list
}

// walk returns the offsets of the steps, and the last of them.
func walk(v codeView, size uint64, c *profile.Config) (offsets []int64, last kimage.Step) {
	for s := range kimage.NewWalker(v, &c.Decoder).Function(kimage.Symbol{Addr: walkStart, Size: size}) {
		offsets, last = append(offsets, s.Addr.Sub(walkStart)), *s
	}
	return offsets, last
}

// TestKernelDecoderWins: if the Reader and the kernel's decoder read an instruction
// differently, the kernel's reading counts, unless the Reader stands alone.
func TestKernelDecoderWins(t *testing.T) {
	const (
		vzeroupper = "\xc5\xf8\x77"                 // a jump to the kernel: opcode 77
		prefixed   = "\x0f\x0bxen\x0f\xa2"          // ud2, or a prefix of cpuid
		bad        = "\xea\xa7\x08\x00\x01\x08\x00" // in 64-bit mode, to a processor
	)
	c, _ := profile.Named("6.1")
	for name, k := range map[string]struct {
		code         string
		read, counts decoder.Reading
	}{
		"plain":    {"\x48\x89\xe5", decoder.Reading{Length: 3, Kind: decoder.KindPlain}, decoder.Reading{Length: 3, Kind: decoder.KindPlain}},
		"a_jump":   {vzeroupper, decoder.Reading{Length: 3, Kind: decoder.KindPlain}, decoder.Reading{Length: 3, Kind: decoder.KindJump, Target: walkStart + 3}},
		"longer":   {prefixed, decoder.Reading{Length: 2, Kind: decoder.KindTrap}, decoder.Reading{Length: 7, Kind: decoder.KindPlain}},
		"accepted": {bad, decoder.Reading{}, decoder.Reading{Length: 7, Kind: decoder.KindIndirectJump}},
		"refused":  {"\xc5\xf8\x04\xc0", decoder.Reading{}, decoder.Reading{}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []decoder.Reader{decoder.X86asm{}, decoder.Tables{}} {
				v := codeView{code: k.code + repeat("\x90", 15), reader: r}
				s := kimage.NewWalker(v, &c.Decoder).At(walkStart)
				require.Equal(t, k.read, s.Read)
				require.Equal(t, k.counts, s.Reading)
				require.Equal(t, k.read != k.counts, s.Overruled())
				require.Equal(t, k.counts == decoder.Reading{}, s.Err != nil)
				s = kimage.NewWalker(kimage.ReadBy(v, decoder.Alone{Reader: r}), &c.Decoder).At(walkStart)
				require.Equal(t, k.read, s.Reading)
				require.False(t, s.Overruled())
				require.Equal(t, k.read == decoder.Reading{}, s.Err != nil)
			}
		})
	}
}
