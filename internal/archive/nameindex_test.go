package archive

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/kimage"
)

// The index of names finds those areas that have a symbol of the name.
func TestNameIndexFindsWhatThereIs(t *testing.T) {
	names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", "__pfx_a", "__pfx_ab", "__pfx___pfx_a", "c.1"}), 0, 6)
	rapid.Check(t, func(rt *rapid.T) {
		areas := rapid.SliceOfN(names, 1, 5).Draw(rt, "areas")
		var c columns
		want := map[string][]int{}
		g := &group{}
		for i, list := range areas {
			var syms []kimage.Symbol
			for j, name := range list {
				syms = append(syms, kimage.Symbol{Name: name, Addr: 16, Type: 't'})
				if of := want[name]; len(of) == 0 || of[len(of)-1] != i {
					want[name] = append(of, i)
				}
				g.marks = append(g.marks, byte(j))
			}
			c.add(syms)
			g.Areas = append(g.Areas, area{Symbols: len(syms)})
		}
		c.text = string(c.names)
		for i := range g.Areas {
			g.packed = append(g.packed, c)
			read := c
			require.NoError(rt, c.skip(len(areas[i])))
			syms, err := read.take("", len(areas[i]))
			require.NoError(rt, err)
			for j, name := range areas[i] {
				require.Equal(rt, name, syms[j].Name)
			}
			require.Equal(rt, read, c, "skip goes as far as take")
		}
		for _, name := range []string{"a", "b", "ab", "__pfx_a", "__pfx_ab", "__pfx___pfx_a", "__pfx_c.1", "c.1", "", "\x01", "c"} {
			require.Equal(rt, want[name], g.having(name), name)
		}
	})
}

// Names that are made of each other would grow without a bound.
func TestTwoPaddingsInARow(t *testing.T) {
	var c columns
	c.add([]kimage.Symbol{{Name: "a", Type: 't'}, {Name: "a", Type: 't'}, {Name: "a", Type: 't'}})
	c.text = "\x01\x00\x01\x00a\x00"
	_, err := c.take("", 3)
	require.ErrorIs(t, err, ErrFormat)
}
