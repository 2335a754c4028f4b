package vmcore

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// withSegment is a dump of machine() whose first segment, which has the notes, is replaced by b.
func withSegment(t *testing.T, b []byte) []byte {
	out := written(t, machine())
	p := out[elfHeaderSize:]
	require.EqualValues(t, elfNote, le.Uint32(p))
	le.PutUint64(p[8:], uint64(len(out)))
	le.PutUint64(p[32:], uint64(len(b)))
	return append(out, b...)
}

// prstatuses are the notes of n processors.
func prstatuses(n int) []byte {
	one := note{"CORE", notePrstatus, (&CPU{}).prstatus()}.appendTo(nil)
	return bytes.Repeat(one, n)
}

// The sizes in a dump's headers are accepted up to the bound, and refused in one sentence past it.
func TestHeadersThatAskForMuch(t *testing.T) {
	memory := func(size uint64) []byte {
		b := written(t, machine())
		p := b[elfHeaderSize+2*elfProgramSize:]
		le.PutUint64(p[24:], 1<<40) // of a machine's that has nothing else there
		le.PutUint64(p[40:], size)
		for i := range 2 { // the others have none
			le.PutUint64(b[elfHeaderSize+(1+2*i)*elfProgramSize+32:], 0)
			le.PutUint64(b[elfHeaderSize+(1+2*i)*elfProgramSize+40:], 0)
		}
		return b
	}
	kdumpNotes := func(n int) []byte {
		b := kdumpOf(t, evenMachine(), whole())
		le.PutUint64(b[PageSize+kdumpNotesAt:], uint64(len(b)))
		le.PutUint64(b[PageSize+kdumpNotesAt+8:], uint64(n))
		return append(b, make([]byte, n)...)
	}
	for name, c := range map[string]struct {
		at, past []byte
		want     string
	}{
		"DumpMemory":      {memory(bounded.DumpMemory), memory(bounded.DumpMemory + PageSize), "more than 64 GiB of memory"},
		"DumpCPUs":        {withSegment(t, prstatuses(bounded.DumpCPUs)), withSegment(t, prstatuses(bounded.DumpCPUs+1)), "more than 8192 CPUs"},
		"DumpNotes":       {withSegment(t, make([]byte, bounded.DumpNotes)), withSegment(t, make([]byte, bounded.DumpNotes+1)), "its notes have 0x4000001 bytes, at most 0x4000000 are read"},
		"DumpNotes_kdump": {kdumpNotes(bounded.DumpNotes), kdumpNotes(bounded.DumpNotes + 1), "its notes have 0x4000001 bytes, at most 0x4000000 are read"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fromBytes(c.at)
			require.NoError(t, err)
			_, err = fromBytes(c.past)
			require.ErrorIs(t, err, ErrFormat)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// A VMCOREINFO that is longer than the bound is none, wherever it stands.
func TestLongVMCoreInfo(t *testing.T) {
	text := func(n int) []byte { return append([]byte(info), bytes.Repeat([]byte{'x'}, n-len(info))...) }
	for name, open := range map[string]func(n int) []byte{
		"note": func(n int) []byte { return withSegment(t, note{"VMCOREINFO", noteNone, text(n)}.appendTo(nil)) },
		"kdump": func(n int) []byte {
			img := evenMachine()
			img.VMCoreInfo = text(n)
			return kdumpOf(t, img, whole())
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := fromBytes(open(bounded.DumpInfo))
			require.NoError(t, err)
			require.Equal(t, "6.1.0", c.VMCoreInfo()["OSRELEASE"])
			c, err = fromBytes(open(bounded.DumpInfo + 1))
			require.NoError(t, err)
			require.Nil(t, c.VMCoreInfo())
		})
	}
	t.Run("memory", func(t *testing.T) { // a page says how long it is, and no more is read
		img := machine()
		img.VMCoreInfo, img.Also = nil, nil
		page := note{"VMCOREINFO", noteNone, []byte(info)}.appendTo(nil)
		le.PutUint32(page[4:], 1<<31)
		data := append(page, make([]byte, 2*bounded.DumpInfo-len(page))...)
		img.Memory[1].Data, img.Memory[1].Size = bytes.NewReader(data), uint64(len(data))
		c, err := fromBytes(written(t, img))
		require.NoError(t, err)
		require.Len(t, c.RawVMCoreInfo(), bounded.DumpInfo)
	})
}

// A stream says how large a window its unpacking takes. More than the bound is refused.
func TestWindowsOfStreams(t *testing.T) {
	pack := func(window int) []byte {
		var b bytes.Buffer
		z, err := zstd.NewWriter(&b, zstd.WithWindowSize(window), zstd.WithSingleSegment(false), zstd.WithEncoderLevel(zstd.SpeedFastest))
		require.NoError(t, err)
		_, err = z.Write(written(t, machine()))
		require.NoError(t, err)
		require.NoError(t, z.Flush()) // the size is not known before the window is
		require.NoError(t, z.Close())
		return b.Bytes()
	}
	_, err := fromBytes(pack(bounded.UnpackWindow))
	require.NoError(t, err)
	_, err = fromBytes(pack(2 * bounded.UnpackWindow))
	require.ErrorContains(t, err, "its compressed data is broken: window size exceeded")
}

// The disk that a dump is unpacked on is not filled, however the dump is packed.
func TestADumpTakesNoMoreOfTheDisk(t *testing.T) {
	for name, write := range map[string]func(s *spool, off int64) error{
		"pages":       func(s *spool, off int64) error { return s.writeAt(bytes.Repeat([]byte{1}, PageSize), off) },
		"overwritten": func(s *spool, off int64) error { return s.overwriteAt([]byte{0}, off) },
	} {
		t.Run(name, func(t *testing.T) {
			c := &Core{}
			s, err := c.newSpool()
			require.NoError(t, err)
			defer c.Close()
			s.onDisk, c.spilled = true, bounded.DumpOnDisk-PageSize
			require.NoError(t, write(s, 0))
			require.NoError(t, write(s, 0), "it is there already")
			err = write(s, PageSize)
			require.ErrorIs(t, err, errOnDisk)
			require.EqualError(t, err, "more than 16 GiB of it would have to be kept on the disk")
		})
	}
}
