package guestfast

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// textMachine has executable memory only.
type textMachine struct {
	kprobes.Machine
	next x86.Addr
	text map[x86.Addr][]byte
}

func (m *textMachine) AllocExec(size int, _ string) (x86.Addr, error) {
	at := m.next
	m.next = (at + x86.Addr(size) + 63) &^ 63
	return at, nil
}

func (m *textMachine) PokeText(at x86.Addr, b []byte) error {
	m.text[at] = b
	return nil
}

// TestEveryFunctionNeedsItsSymbols: all can be placed when every undefined symbol
// has a value, and without one of the values some cannot.
func TestEveryFunctionNeedsItsSymbols(t *testing.T) {
	c, err := openCode()
	require.NoError(t, err)
	undefined := map[string]bool{}
	for _, s := range c.symbols {
		if s.Name != "" && s.Section == 0 {
			undefined[s.Name] = true
		}
	}
	require.Len(t, undefined, 13)
	undefined[""] = true // without none
	for without := range undefined {
		c, _ := openCode()
		m, refused := &textMachine{next: 0xffffffffc0000000, text: map[x86.Addr][]byte{}}, 0
		for name := range undefined {
			if name != without {
				c.values[name] = 0xffffffff81000000
			}
		}
		for range 3 { // some refer to others that come later
			refused = 0
			for _, s := range c.file.Sections {
				if name, ok := strings.CutPrefix(s.Name, textPrefix); ok {
					if _, err := c.place(m, name); err != nil {
						require.ErrorContains(t, err, "has no value")
						refused++
					}
				}
			}
		}
		require.Equal(t, without == "", refused == 0, without)
	}
}

// TestRelocations: an address from gs, a table, a call-out, and a jump to another
// function stand where the instructions have them.
func TestRelocations(t *testing.T) {
	c, err := openCode()
	require.NoError(t, err)
	m := &textMachine{next: 0xffffffffc0000000, text: map[x86.Addr][]byte{}}
	c.values = map[string]x86.Addr{
		"running": 0x1230, "detours": 0xffff888012345678, "optimized_out": 0xffffffffc0000800,
		"task": 0x1238, "arg": 0x1240, "missed_out": 0xffffffffc0000900, "heads": 1, "trampoline": 0xffffffffc0000a00,
	}
	at, err := c.place(m, "optimized_callback.guest")
	require.NoError(t, err)
	again, err := c.place(m, "optimized_callback.guest")
	require.NoError(t, err)
	require.Equal(t, at, again)
	code := m.text[at]
	word := func(before string, n int) int64 { // the number after these bytes
		i := strings.Index(string(code), before)
		require.GreaterOrEqual(t, i, 0)
		if b := code[i+len(before):]; n == 8 {
			return int64(binary.LittleEndian.Uint64(b))
		} else {
			return int64(int32(binary.LittleEndian.Uint32(b)))
		}
	}
	require.EqualValues(t, 0x1230, word("\x65\x48\x8b\x0c\x25", 4))
	require.EqualValues(t, c.values["detours"], x86.Addr(word("\x48\xb9", 8)))
	jne := at.Add(int64(strings.Index(string(code), "\x0f\x85") + 6))
	require.Equal(t, c.values["optimized_out"], jne.Add(word("\x0f\x85", 4)))

	_, err = c.place(m, "pre_handler_kretprobe")
	require.ErrorContains(t, err, "has no value", "what it jumps to is not placed yet")
	missed, err := c.place(m, "kretprobe_missed")
	require.NoError(t, err)
	c, _ = openCode()
	_, err = c.place(m, "no_such_function")
	require.Error(t, err)
	require.NotZero(t, missed)
}
