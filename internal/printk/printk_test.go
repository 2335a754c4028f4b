package printk

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// The rings of a log have no more numbers and positions than the bound says, whatever a dump has there.
func TestRingsThatAreTooLarge(t *testing.T) {
	const descs, infos, data = 0x10000, 0x20000, 0x30000
	log := func(bits, size uint64) *Log {
		words := map[x86.Addr]uint64{0: bits, 8: descs, 16: infos, 24: 0, 32: 0, 40: size, 48: data}
		return &Log{
			read: func(at x86.Addr, b []byte) error {
				clear(b)
				var word [8]byte
				binary.LittleEndian.PutUint64(word[:], words[at])
				copy(b, word[:])
				return nil
			},
			at: map[string]x86.Addr{
				"desc_ring.count_bits": 0, "desc_ring.descs": 8, "desc_ring.infos": 16, "desc_ring.head_id": 24, "desc_ring.tail_id": 32,
				"text_data_ring.size_bits": 40, "text_data_ring.data": 48,
			},
			desc: 24, info: 80,
		}
	}
	list, err := log(bounded.PrintkBits, 2*bounded.PrintkBits).Since(0)
	require.NoError(t, err)
	require.Empty(t, list)
	_, err = log(bounded.PrintkBits+1, 10).Since(0)
	require.ErrorIs(t, err, ErrUnknown)
	_, err = log(10, 2*bounded.PrintkBits+1).Since(0)
	require.ErrorIs(t, err, ErrUnknown)
}
