package archive

import (
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// A header, and a section, of an archive has no more bytes than the bounds say, whatever the checksums.
func TestPartsThatAreTooLarge(t *testing.T) {
	padded := func(length int) []byte { // a header of JSON with spaces after it
		head := []byte("{}" + strings.Repeat(" ", length-2))
		out := binary.LittleEndian.AppendUint32([]byte(magic), version)
		out = binary.LittleEndian.AppendUint32(out, uint32(length))
		return append(binary.LittleEndian.AppendUint32(out, crc32.Checksum(head, castagnoli)), head...)
	}
	sized := func(size int) []byte { return headed(t, &Header{Sections: []sectionHead{{Name: "a", Size: size}}}) }
	for name, c := range map[string]struct {
		fits, past []byte
		want       string
	}{
		"ArchiveHeader":  {padded(bounded.ArchiveHeader), padded(bounded.ArchiveHeader + 1), "the file ends within its header"},
		"ArchiveSection": {sized(bounded.ArchiveSection), sized(bounded.ArchiveSection + 1), `the file ends within its part "a"`},
		"negative":       {nil, sized(-1), `the file ends within its part "a"`},
	} {
		t.Run(name, func(t *testing.T) {
			if c.fits != nil {
				_, err := parse(c.fits)
				require.NoError(t, err)
			}
			_, err := parse(c.past)
			require.ErrorIs(t, err, ErrFormat)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// The texts of functions that a group has are so long at most all together.
func TestTextsThatAreTooLong(t *testing.T) {
	of := func(sizes ...uint64) texts {
		areas := make([]area, len(sizes))
		at := uint64(0xffffffff81000000)
		for i, n := range sizes {
			areas[i].Text = span{at, at + n}
			at += n
		}
		return textsOf(areas)
	}
	require.True(t, of(bounded.ArchiveText).fits())
	require.True(t, of(bounded.ArchiveText/2, bounded.ArchiveText/2).fits())
	require.False(t, of(bounded.ArchiveText+1).fits())
	require.False(t, of(bounded.ArchiveText/2, 1, bounded.ArchiveText/2).fits())
}
