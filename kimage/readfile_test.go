package kimage

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDebugHoles(t *testing.T) {
	const strs = "\x00.text\x00.debug_info\x00.rela.debug_info\x00.debug_line\x00"
	section := func(name, flags uint32, from, size uint64) []byte {
		h := make([]byte, shdrSize)
		binary.LittleEndian.PutUint32(h, name)
		binary.LittleEndian.PutUint32(h[4:], 1)
		binary.LittleEndian.PutUint64(h[8:], uint64(flags))
		binary.LittleEndian.PutUint64(h[24:], from)
		binary.LittleEndian.PutUint64(h[32:], size)
		return h
	}
	const text, info, relocations, lines = 1, 7, 19, 36
	for name, c := range map[string]struct {
		sections [][]byte
		want     []span
		left     int64
	}{
		"code_is_read":                  {[][]byte{section(text, 0, 100, 100)}, nil, 1000},
		"relocations_are_after_the_end": {[][]byte{section(info, 0, 100, 100), section(relocations, 0, 800, 200), section(lines, 0, 200, 300)}, []span{{100, 200}, {200, 500}, {800, 1000}}, 400},
		"overlap":                       {[][]byte{section(info, 0, 100, 100), section(lines, 0, 150, 100)}, []span{{100, 200}}, 900},
		"past_the_file":                 {[][]byte{section(info, 0, 950, 100)}, nil, 1000},
		"size_wraps":                    {[][]byte{section(info, 0, 950, 1<<64-10)}, nil, 1000},
		"negative_place":                {[][]byte{section(info, 0, 1<<64-20, 20)}, nil, 1000},
		"loaded_with_the_kernel":        {[][]byte{section(info, shfAlloc, 100, 100)}, nil, 1000},
	} {
		var table []byte
		for _, s := range c.sections {
			table = append(table, s...)
		}
		holes, left := debugHoles(table, strs, 1000)
		require.Equal(t, c.want, holes, name)
		require.Equal(t, c.left, left, name)
	}
}
