package compare

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"kprobelab/decoder"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSameSeedSameWindows(t *testing.T) {
	a, b, other := NewGenerator(1), NewGenerator(1), NewGenerator(2)
	x, y, z := make([]byte, decoder.MaxInsnSize), make([]byte, decoder.MaxInsnSize), make([]byte, decoder.MaxInsnSize)
	same := 0
	for range 10_000 {
		a.Next(x)
		b.Next(y)
		other.Next(z)
		require.Equal(t, x, y)
		if bytes.Equal(x, z) {
			same++
		}
	}
	require.Less(t, same, 10)
}

// kind is the map, the mandatory prefix or pp, and the opcode of a window.
func kind(w []byte) string {
	n := 0
	for n < decoder.MaxInsnSize-6 && bytes.IndexByte([]byte{0x66, 0xF2, 0xF3, 0xF0, 0x67, 0x2E, 0x36, 0x3E, 0x26, 0x64, 0x65}, w[n]) >= 0 {
		n++
	}
	if n < decoder.MaxInsnSize-6 && w[n]&0xF0 == 0x40 {
		n++
	}
	switch w = w[n:]; {
	case w[0] == 0xC5:
		return fmt.Sprintf("vex 1 %d %02x", w[1]&3, w[2])
	case w[0] == 0xC4:
		return fmt.Sprintf("vex %d %d %02x", w[1]&0x1F, w[2]&3, w[3])
	case w[0] == 0x62:
		return fmt.Sprintf("evex %d %d %02x", w[1]&7, w[2]&3, w[4])
	case w[0] == 0x8F && w[1]&0x1F >= 8:
		return fmt.Sprintf("xop %d %02x", w[1]&0x1F, w[3])
	case w[0] == 0x0F && (w[1] == 0x38 || w[1] == 0x3A):
		return fmt.Sprintf("0f%02x %02x", w[1], w[2])
	case w[0] == 0x0F:
		return fmt.Sprintf("0f %02x", w[1])
	}
	return fmt.Sprintf("primary %02x", w[0])
}

// Every opcode of every map comes up, with every pp where that is a field.
func TestEveryOpcodeComesUp(t *testing.T) {
	g, seen := NewGenerator(3), map[string]bool{}
	w := make([]byte, decoder.MaxInsnSize)
	for range 1_000_000 {
		g.Next(w)
		seen[kind(w)] = true
	}
	for op := range 256 {
		for _, m := range []string{"0f", "0f38", "0f3a", "xop 8", "xop 9", "xop 10"} {
			if m != "0f" || op != 0x38 && op != 0x3A {
				require.True(t, seen[fmt.Sprintf("%s %02x", m, op)], "%s %02x", m, op)
			}
		}
		for pp := range 4 {
			for _, m := range []string{"vex 1", "vex 2", "vex 3", "evex 1", "evex 2", "evex 3", "evex 5", "evex 6"} {
				require.True(t, seen[fmt.Sprintf("%s %d %02x", m, pp, op)], "%s %d %02x", m, pp, op)
			}
		}
	}
	for _, op := range []int{0x00, 0x8F, 0x90, 0xC7, 0xE8, 0xFF} {
		require.True(t, seen[fmt.Sprintf("primary %02x", op)], "primary %02x", op)
	}
}

// What Shrink returns has the property, and is no more than it began with.
func TestShrink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.SliceOfN(rapid.Byte(), decoder.MaxInsnSize, decoder.MaxInsnSize).Draw(t, "window")
		want := rapid.SampledFrom(w).Draw(t, "byte")
		keeps := func(s []byte) bool { return len(s) == decoder.MaxInsnSize && bytes.IndexByte(s, want) >= 0 }
		s := shrinkWindow(w, keeps)
		require.True(t, keeps(s))
		require.LessOrEqual(t, weight(s), weight(w))
	})
}

func TestShrinkLeavesOutWhatDoesNotMatter(t *testing.T) {
	w := []byte{0x66, 0x2E, 0x48, 0x0F, 0xAF, 0x84, 0xC5, 1, 2, 3, 4, 5, 6, 7, 8}
	s := shrinkWindow(w, func(s []byte) bool { return bytes.Contains(s, []byte{0x0F, 0xAF}) })
	require.Equal(t, []byte{0x0F, 0xAF, 0, 0}, s[:4])
}

func ExampleGenerator() {
	g := NewGenerator(1)
	w := make([]byte, decoder.MaxInsnSize)
	for range 3 {
		g.Next(w)
		fmt.Printf("% x\n", w)
	}
	// Output:
	// 42 0f 00 19 4e f2 80 75 3a a6 c9 f3 4e f2 80
	// f3 0f 38 8b cb aa 38 4a 44 a6 7e 80 cb aa 38
	// 46 30 67 dc 94 26 f8 2d 31 db 7f dc 94 26 f8
}

func BenchmarkNext(b *testing.B) {
	g, w := NewGenerator(1), make([]byte, decoder.MaxInsnSize)
	b.ReportAllocs()
	for b.Loop() {
		g.Next(w)
	}
}

// TestEveryStringIsAsked: all strings of Enumerate are questions, in its order, the last ones too.
func TestEveryStringIsAsked(t *testing.T) {
	if testing.Short() {
		t.Skip("short: three and a half million strings")
	}
	visited, asked := crc32.NewIEEE(), crc32.NewIEEE()
	total, n := 0, 0
	Enumerate(func(b []byte) { visited.Write(b); total++ })
	var last int64
	_, err := enumerated(func(b *questions) error {
		for _, w := range b.windows[:b.n] {
			asked.Write(w)
		}
		n += b.n
		return nil
	}, func(done, _ int64) { last = done })
	require.NoError(t, err)
	require.Equal(t, total, n)
	require.Equal(t, int64(total), last)
	require.Equal(t, visited.Sum32(), asked.Sum32())
	require.Greater(t, total, 3_500_000)
}
