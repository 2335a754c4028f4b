package booted

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// attributes reads struct nlattr after struct nlattr.
func attributes(t *testing.T, b []byte) map[uint16][]byte {
	t.Helper()
	list := map[uint16][]byte{}
	for len(b) > 0 {
		n, kind := int(binary.LittleEndian.Uint16(b)), binary.LittleEndian.Uint16(b[2:])
		require.GreaterOrEqual(t, n, 4)
		list[kind] = b[4:n]
		b = b[(n+3)&^3:]
	}
	return list
}

// TestRequestOfAPair: the request has the lengths that the kernel checks, the first name outside and the second within.
func TestRequestOfAPair(t *testing.T) {
	b := newPair()
	require.EqualValues(t, len(b), binary.LittleEndian.Uint32(b))
	require.Zero(t, len(b)%4)
	link := attributes(t, b[16+16:])
	require.Equal(t, "veth0\x00", string(link[3]), "IFLA_IFNAME")
	info := attributes(t, link[18])
	require.Equal(t, "veth", string(info[1]), "IFLA_INFO_KIND")
	peer := attributes(t, info[2])[1]
	require.Equal(t, make([]byte, 16), peer[:16], "struct ifinfomsg")
	require.Equal(t, "veth1\x00", string(attributes(t, peer[16:])[3]))
}
