package source

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCoverage(t *testing.T) {
	a, b, gone := &header{start: 1}, &header{start: 2}, &header{start: 3}
	c := coverage{{0x40, 0x60, b}, {0x10, 0x20, a}, {0x20, 0x30, a}, {0, 0x18, gone}}.sorted()
	for name, q := range map[string]struct {
		addr uint64
		want *header
	}{
		"first_byte": {0x10, a}, "last_byte": {0x2f, a}, "between_two": {0x30, nil}, "second_unit": {0x5f, b}, "past_the_last": {0x60, nil},
		"before_an_overlap": {0xf, gone}, "in_an_overlap": {0x17, a},
	} {
		require.Equal(t, q.want, c.unit(q.addr), name)
	}
	require.Nil(t, coverage(nil).unit(0))
}
