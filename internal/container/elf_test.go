package container

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// elfWith returns an ELF header with program and section headers. Each pair is the offset and the size of a part.
func elfWith(programs, sections [][2]uint64, nobits bool) []byte {
	b := make([]byte, ELFHeader+len(programs)*ELFProgram+len(sections)*ELFSection)
	copy(b, "\x7fELF")
	le.PutUint64(b[32:], ELFHeader)
	le.PutUint16(b[56:], uint16(len(programs)))
	le.PutUint64(b[40:], uint64(ELFHeader+len(programs)*ELFProgram))
	le.PutUint16(b[60:], uint16(len(sections)))
	for i, p := range programs {
		h := b[ELFHeader+i*ELFProgram:]
		le.PutUint64(h[8:], p[0])
		le.PutUint64(h[32:], p[1])
	}
	for i, s := range sections {
		h := b[ELFHeader+len(programs)*ELFProgram+i*ELFSection:]
		if nobits {
			le.PutUint32(h[4:], elfNobits)
		}
		le.PutUint64(h[24:], s[0])
		le.PutUint64(h[32:], s[1])
	}
	return b
}

// Rule: an ELF ends where the last of its headers and of the parts that they describe ends.
func TestExtent(t *testing.T) {
	far, farther := [][2]uint64{{1 << 20, 1 << 10}}, [][2]uint64{{5, 5}, {2 << 20, 7}}
	for name, c := range map[string]struct {
		b    []byte
		want int64
	}{
		"header_alone":             {elfWith(nil, nil, false), ELFHeader},
		"no_header":                {elfWith(nil, nil, false)[:ELFHeader-1], 0},
		"headers_are_last":         {elfWith(nil, [][2]uint64{{0, 10}}, false), ELFHeader + ELFSection},
		"section_far_after_header": {elfWith(nil, far, false), 1<<20 + 1<<10},
		"segment_is_last":          {elfWith(farther, far, false), 2<<20 + 7},
		"section_without_bytes":    {elfWith(nil, far, true), ELFHeader + ELFSection},
		"headers_not_read_yet":     {elfWith(farther, far, false)[:ELFHeader], ELFHeader + 2*ELFProgram + ELFSection},
		"end_that_overflows":       {elfWith(nil, [][2]uint64{{1 << 63, 1 << 63}}, false), ELFHeader + ELFSection},
	} {
		require.Equal(t, c.want, elfExtent(c.b), name)
	}
}

// Rule: the error names the place, and the format in which it was found.
func TestErrorsSayWhere(t *testing.T) {
	for name, c := range map[string]struct {
		b    []byte
		at   int64
		want string
	}{
		"text":     {[]byte("hello"), 0, "an ELF or a Linux x86-64 bzImage is wanted; this is a text file"},
		"empty":    {nil, 0, "an ELF or a Linux x86-64 bzImage is wanted; the file is empty"},
		"cut_gzip": {[]byte("\x1f\x8b\x08\x00"), 0, "intact gzip data is wanted: the data is cut off"},
		"dos":      {append([]byte("MZ"), make([]byte, 100)...), 0, "a Linux kernel is wanted, this is a program for MS-DOS"},
	} {
		_, err := Unwrap(c.b, nil)
		require.Equal(t, &Error{c.at, c.want}, err, name)
	}
	_, err := Bootable([]byte("\x7fELF"))
	require.EqualError(t, err, "a vmlinuz is wanted, which a loader can start; this is a vmlinux or another ELF file")
	_, err = Beside([]byte("text"), nil)
	require.EqualError(t, err, "compressed data is wanted (gzip, zstd, xz, lz4, bzip2, lzma or lzo)")
}
