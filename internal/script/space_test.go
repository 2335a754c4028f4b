package script

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"kprobelab/internal/bounded"
)

// halves is memory in both halves of the addresses.
type halves struct{ Context }

func (halves) Read(addr uint64, b []byte, user bool) bool {
	clear(b)
	return !user || addr < UserEnd
}

func TestAddressesBelongToOneSpace(t *testing.T) {
	const program, kernel = 0x400000, 0xffffffff81000000
	for _, c := range []struct {
		space Space
		addr  uint64
		want  bool
	}{
		{KernelSpace, kernel, true}, {KernelSpace, program, false}, {KernelSpace, UserEnd - 1, false}, {KernelSpace, 0, false},
		{UserSpace, program, true}, {UserSpace, kernel, false}, {AnySpace, program, true}, {AnySpace, kernel, true},
	} {
		assert.Equal(t, c.want, c.space.Read(halves{}, c.addr, make([]byte, 1)), "%d %#x", c.space, c.addr)
	}
}

// What is done later keeps its place among what is printed, and is done before there is too much of it.
func TestLaterKeepsTheOrder(t *testing.T) {
	code, err := Compile(&Program{Limits: Limits{StringSize: 16, Entries: 4, Nesting: 1, Memory: 1 << 20}})
	assert.NoError(t, err)
	var out sink
	th := code.NewThread(&out)
	n := 1
	th.Print([]byte("a"))
	th.Later(func() { th.Print([]byte{byte('0' + n)}) })
	th.Print([]byte("b"))
	n = 2
	th.catchUp()
	th.Flush()
	assert.Equal(t, "a2b", string(out))
	done := 0
	for range bounded.ScriptEvents + 1 {
		th.Later(func() { done++ })
	}
	assert.Equal(t, bounded.ScriptEvents, done)
	th.catchUp()
	assert.Equal(t, bounded.ScriptEvents+1, done)
}

type sink []byte

func (s *sink) Write(b []byte) (int, error) { *s = append(*s, b...); return len(b), nil }
