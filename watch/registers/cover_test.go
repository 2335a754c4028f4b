package registers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/x86"
)

func TestCover(t *testing.T) {
	for name, c := range map[string]struct {
		at   x86.Addr
		n    uint64
		want []Piece
	}{
		"aligned":                  {0x1000, 8, []Piece{{0x1000, 8}}},
		"one_byte_off":             {0x1001, 4, []Piece{{0x1001, 1}, {0x1002, 2}, {0x1004, 1}}},
		"half_a_word":              {0x1004, 8, []Piece{{0x1004, 4}, {0x1008, 4}}},
		"more_than_four_registers": {0x1001, 38, []Piece{{0x1001, 1}, {0x1002, 2}, {0x1004, 4}, {0x1008, 8}, {0x1010, 8}, {0x1018, 8}, {0x1020, 4}, {0x1024, 2}, {0x1026, 1}}},
		"nothing":                  {0x1000, 0, nil},
		"past_the_last_address":    {^x86.Addr(0) - 1, 4, []Piece{{^x86.Addr(0) - 1, 2}}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Cover(c.at, c.n)) })
	}
}

// The reasons begin with the kernel's answer, and each piece of a cover is accepted.
func TestRefusalsBeginWithTheAnswer(t *testing.T) {
	for _, a := range []Attr{
		{Type: Write, Addr: 0x1001, Len: 4},
		{Type: Read, Addr: 0x1001, Len: 3},
		{Type: Execute, Addr: noted, Len: 4},
		{Type: Write, Addr: gdt + 1, Len: 2},
		{Type: Read | Write, Addr: 0x1000, Len: 8},
	} {
		s := New(kernel())
		all := s.Refusals(a, 0)
		_, err := s.RegisterWide(a)
		if len(all) == 0 {
			require.NoError(t, err)
			continue
		}
		require.Equal(t, all[0], err)
	}
	for _, p := range Cover(0x1003, 7) {
		require.Empty(t, New(kernel()).Refusals(Attr{Type: Write, Addr: p.Addr, Len: p.Len}, 0))
	}
}
