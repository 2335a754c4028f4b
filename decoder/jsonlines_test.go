package decoder

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestJSONLinesKeepsTheOrder: many batches on all processors are answered as one line
// after the other is.
func TestJSONLinesKeepsTheOrder(t *testing.T) {
	var lines, want bytes.Buffer
	for n := range 60_000 {
		b := []byte{0x48, 0x81, 0xC0, byte(n), byte(n >> 8), byte(n >> 16), 0}
		if n%5 == 0 {
			b = []byte{0x06, byte(n)} // no instruction
		}
		fmt.Fprintf(&lines, "%x\n", b)
		object, _ := AppendJSON(nil, b, 0, nil)
		want.Write(object)
	}
	var got bytes.Buffer
	n, err := JSONLines(&lines, &got, 0, nil)
	require.NoError(t, err)
	require.Equal(t, Lines{NoInstruction: 12_000}, n)
	require.True(t, bytes.Equal(want.Bytes(), got.Bytes()))
}

type fullWriter struct{ err error }

func (w fullWriter) Write([]byte) (int, error) { return 0, w.err }

// endless is an input without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return copy(b, "90\n"), nil }

// TestJSONLinesEndsWithItsWriter: a writer that fails ends it, however much there is to
// read, with the writer's error.
func TestJSONLinesEndsWithItsWriter(t *testing.T) {
	full := errors.New("no space")
	_, err := JSONLines(endless{}, fullWriter{full}, 0, nil)
	require.ErrorIs(t, err, full)
	_, err = JSONLines(io.LimitReader(endless{}, 3), fullWriter{full}, 0, nil)
	require.ErrorIs(t, err, full)
}

// Lines without an instruction are one sentence, with the numbers in words where there is one line.
func TestLinesWithoutAnInstruction(t *testing.T) {
	require.NoError(t, Lines{}.Wrong())
	require.EqualError(t, Lines{NoBytes: 1}.Wrong(), "one line holds no bytes in hex, 0 lines hold no instruction")
	require.EqualError(t, Lines{NoBytes: 2, NoInstruction: 1}.Wrong(), "2 lines hold no bytes in hex, one line holds no instruction")
}
