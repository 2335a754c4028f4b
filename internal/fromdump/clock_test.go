package fromdump

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage/vmcore"
	"kprobelab/x86"
)

// TestTheTablesOfGatesTellTheVector: the number of the timer's interrupt is the kernel's, not a constant.
func TestTheTablesOfGatesTellTheVector(t *testing.T) {
	const base, handler, other = 0xfffffe0000000000, 0xffffffff812018f0, 0xffffffff81201000
	for name, c := range map[string]struct {
		gates map[int]uint64
		limit uint32
		want  int // 0 for none
	}{
		"of 4.14":                       {map[int]uint64{0xec: other, 0xef: handler}, 0xfff, 0xef},
		"of 4.17 and later":             {map[int]uint64{0xec: handler, 0xef: other}, 0xfff, 0xec},
		"no gate leads to it":           {map[int]uint64{0xec: other}, 0xfff, 0},
		"an exception is none":          {map[int]uint64{14: handler}, 0xfff, 0},
		"past the limit":                {map[int]uint64{0xef: handler}, 0xef*16 + 14, 0},
		"the last one within the limit": {map[int]uint64{0xef: handler}, 0xef*16 + 15, 0xef},
		"no table":                      {map[int]uint64{0xef: handler}, 0, 0},
		"some memory cannot be read":    {map[int]uint64{0x30: ^uint64(0), 0xef: handler}, 0xfff, 0xef},
		"the highest half counts":       {map[int]uint64{0xef: handler &^ (1 << 63)}, 0xfff, 0},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(at x86.Addr, b []byte) error {
				to := c.gates[int(uint64(at)-base)/16]
				if to == ^uint64(0) {
					return errors.New("not there")
				}
				binary.LittleEndian.PutUint16(b, uint16(to))
				binary.LittleEndian.PutUint16(b[6:], uint16(to>>16))
				binary.LittleEndian.PutUint32(b[8:], uint32(to>>32))
				return nil
			}
			v, ok := vectorOf(read, vmcore.Segment{Base: base, Limit: c.limit}, handler)
			require.Equal(t, c.want, v)
			require.Equal(t, c.want != 0, ok)
		})
	}
}
