package frame_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/qemu/frame"
)

func TestFrames(t *testing.T) {
	b := frame.Append(nil, frame.Booted, nil)
	b = frame.Append(b, frame.List, []byte("ffffffff81000000  k  a+0x0\n"))
	r := bytes.NewReader(b)
	name, data, err := frame.Read(r)
	require.NoError(t, err)
	require.Equal(t, frame.Booted, name)
	require.Empty(t, data)
	name, data, err = frame.Read(r)
	require.NoError(t, err)
	require.Equal(t, frame.List, name)
	require.Equal(t, "ffffffff81000000  k  a+0x0\n", string(data))
	_, _, err = frame.Read(r)
	require.ErrorIs(t, err, io.EOF)
}

// What is no frame, or only its beginning, is an error and never a large buffer.
func TestNoFrame(t *testing.T) {
	whole := frame.Append(nil, "name", []byte("data"))
	for name, b := range map[string][]byte{
		"other_magic": append([]byte("XXXX"), whole[4:]...),
		"huge":        []byte(frame.Magic + "\x04\x00\x00\x00\xff\xff\xff\xff"),
		"cut_off":     whole[:len(whole)-1],
	} {
		_, _, err := frame.Read(bytes.NewReader(b))
		require.ErrorIs(t, err, frame.ErrFrame, name)
	}
}
