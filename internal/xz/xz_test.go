package xz

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// x86Filtered undoes the filter over b, which comes in pieces.
func x86Filtered(t require.TestingT, b []byte, piece int) []byte {
	got, err := io.ReadAll(&x86Filter{r: &pieces{b, piece}, prev: -1})
	require.NoError(t, err)
	return got
}

type pieces struct {
	b []byte
	n int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.b[:min(p.n, len(p.b))])
	p.b = p.b[n:]
	return n, nil
}

// TestX86FilterOverlap has calls in each other's operands, as packed by xz: it ends,
// and where the data is cut into pieces changes nothing.
func TestX86FilterOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.SampledFrom([]byte{0xe8, 0xe9, 0, 0xff, 1, 0x7f}), 0, 64).Draw(t, "code")
		whole := x86Filtered(t, b, len(b)+1)
		require.Len(t, whole, len(b))
		require.Equal(t, whole, x86Filtered(t, b, rapid.IntRange(1, 7).Draw(t, "piece")))
	})
}
