package callsyntax

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseProbe(t *testing.T) {
	for text, want := range map[string]Probe{
		"vfs_read":           {Symbol: "vfs_read"},
		"vfs_read+16":        {Symbol: "vfs_read", Offset: 16},
		"vfs_read+0x1f":      {Symbol: "vfs_read", Offset: 31},
		"demo:leaf+1":        {Symbol: "demo:leaf", Offset: 1},
		"0xffffffff81000000": {Addr: 0xffffffff81000000},
		"foo.constprop.0":    {Symbol: "foo.constprop.0"},
	} {
		got, err := ParseKprobe(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		want.Return = true
		got, err = ParseKretprobe(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	got, err := ParseKretprobe("demo:leaf:7")
	require.NoError(t, err)
	require.Equal(t, Probe{Return: true, Symbol: "demo:leaf", MaxActive: 7}, got)
	require.Equal(t, "vfs_read+0x10", Probe{Symbol: "vfs_read", Offset: 16}.String())
	require.Equal(t, "0x1000", Probe{Addr: 0x1000}.String())
}

func TestParseProbeErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":              `kretprobe "": a symbol or an address is missing`,
		"+1":            `kretprobe "+1": a symbol or an address is missing`,
		"f+":            `kretprobe "f+": the offset "" is not a number of 32 bits`,
		"f+-1":          `kretprobe "f+-1": the offset "-1" is not a number of 32 bits`,
		"f+0x100000000": `kretprobe "f+0x100000000": the offset "0x100000000" is not a number of 32 bits`,
		"12xy":          `kretprobe "12xy": "12xy" is not an address of 64 bits`,
		"f:":            `kretprobe "f:": MAXACTIVE "" is not a number of instances`,
		"f:-1":          `kretprobe "f:-1": MAXACTIVE "-1" is not a number of instances`,
	} {
		_, err := ParseKretprobe(text)
		require.EqualError(t, err, want)
	}
}
