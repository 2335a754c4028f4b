package frame_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
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

// A frame's header asks for no more memory than the bounds say.
func TestFramesThatAreTooLarge(t *testing.T) {
	head := func(name, data uint32) io.Reader {
		b := binary.LittleEndian.AppendUint32([]byte(frame.Magic), name)
		return bytes.NewReader(binary.LittleEndian.AppendUint32(b, data))
	}
	name := strings.Repeat("n", bounded.FrameName)
	got, _, err := frame.Read(bytes.NewReader(frame.Append(nil, name, nil)))
	require.NoError(t, err)
	require.Equal(t, name, got)
	_, _, err = frame.Read(bytes.NewReader(frame.Append(nil, name+"n", nil)))
	require.ErrorIs(t, err, frame.ErrFrame)
	_, _, err = frame.Read(head(0, bounded.FrameData))
	require.ErrorIs(t, err, io.EOF, "it is wanted, and is not there")
	for _, size := range []uint32{bounded.FrameData + 1, 1<<32 - 1} {
		_, _, err = frame.Read(head(0, size))
		require.ErrorIs(t, err, frame.ErrFrame)
		require.NotErrorIs(t, err, io.EOF)
	}
}
