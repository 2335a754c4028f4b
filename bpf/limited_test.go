package bpf

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// TestAnswersWithoutEnd: a guest that lies cannot fill the host's memory.
func TestAnswersWithoutEnd(t *testing.T) {
	w := &limited{&bytes.Buffer{}}
	piece := make([]byte, bounded.BPFAnswer/4)
	for range 4 {
		_, err := w.Write(piece)
		require.NoError(t, err)
	}
	_, err := w.Write([]byte{0})
	require.ErrorIs(t, err, ErrAnswer)
	require.Equal(t, bounded.BPFAnswer, w.Len())
}
