package archive

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Parse reads a file of which checksums and lengths are put right first, so that a
// damaged one is read as far as its own content allows.
func Parse(b []byte) (*Kernel, error) {
	f, err := parse(mended(b))
	if err != nil {
		return nil, err
	}
	return newKernel("fuzz", f)
}

func mended(b []byte) []byte {
	le := binary.LittleEndian
	if len(b) < fixedLen {
		return b
	}
	n := int(le.Uint32(b[12:]))
	if n > len(b)-fixedLen || n < 0 {
		return b
	}
	var h Header
	body := b[fixedLen+n:]
	if json.Unmarshal(b[fixedLen:fixedLen+n], &h) != nil {
		return b
	}
	rest := body
	for i := range h.Sections {
		s := &h.Sections[i]
		if s.Packed < 0 || s.Packed > len(rest) {
			return b
		}
		s.CRC = crc32.Checksum(rest[:s.Packed], castagnoli)
		rest = rest[s.Packed:]
	}
	head, err := json.Marshal(&h)
	if err != nil {
		return b
	}
	out := append([]byte(nil), b[:12]...)
	out = le.AppendUint32(out, uint32(len(head)))
	out = le.AppendUint32(out, crc32.Checksum(head, castagnoli))
	return append(append(out, head...), body...)
}

// WithoutHazards is a file as it was made before there were hazards.
func WithoutHazards(t testing.TB, b []byte) []byte {
	f, err := parse(b)
	require.NoError(t, err)
	c := contents{header: f.Header}
	c.header.Sections = slices.DeleteFunc(slices.Clone(f.Sections), func(s sectionHead) bool { return s.Name == hazardSection })
	require.Len(t, c.header.Sections, len(f.Sections)-1)
	for _, s := range c.header.Sections {
		c.body = append(c.body, f.parts[s.Name].packed...)
	}
	out, err := c.bytes()
	require.NoError(t, err)
	return out
}

// WithBase is a file that says that it is a difference from another one.
func WithBase(t testing.TB, b []byte, base string) []byte {
	f, err := parse(b)
	require.NoError(t, err)
	c := contents{header: f.Header}
	c.header.Base = base
	for _, s := range f.Sections {
		c.body = append(c.body, f.parts[s.Name].packed...)
	}
	out, err := c.bytes()
	require.NoError(t, err)
	return out
}
