package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/profile"
)

// What two readers read differently is listed by the place in its symbol, and counted in words.
func TestDifferencesOfReaders(t *testing.T) {
	rules, err := profile.Find(profile.Default)
	require.NoError(t, err)
	s := NewExample([]byte{0x90, 0xf3, 0x0f, 0x1e, 0xfa, 0x90}, rules)
	both := decoder.NewBoth(decoder.X86asm{Bare: true}, decoder.Tables{})
	both.Read([]byte("\xf3\x0f\x1e\xfa\x90"), ExampleBase+1)
	both.Read([]byte("\x90"), ExampleBase)
	var b strings.Builder
	require.Equal(t, 1, WriteDifferences(&b, "it", s.View, both))
	require.Equal(t, "it: example+0x1 (0xffffffff81000001): f3 0f 1e fa: bare x86asm: 1 byte, no branch; tables: 4 bytes, no branch\n"+
		"it: bare x86asm and tables were compared 2 times and differ at one address\n", b.String())
	require.Equal(t, "no address, 2 addresses", Addresses(0)+", "+Addresses(2))
}
