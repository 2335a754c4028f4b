package machine_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	. "kprobelab/machine"
	"kprobelab/x86"
)

// Whatever never ends by itself ends with the budget, and the machine goes on.
func TestWhatNeverEnds(t *testing.T) {
	nowhere := x86.Addr(0xffffffff00000000)
	for _, c := range []struct {
		name   string
		code   []byte
		traps  *trapFuncs
		fixups map[x86.Addr]x86.Addr
	}{
		{name: "jump to itself", code: []byte{0xeb, 0xfe}},
		{name: "yields", code: []byte{0xe6, 0xe1, 0xeb, 0xfc}},
		{name: "sleeps", code: []byte{0x31, 0xff, 0xe6, 0xe2, 0xeb, 0xfa}},
		{name: "prints", code: []byte{0xb0, 0x0a, 0xe6, 0xe4, 0xeb, 0xfc}},
		{name: "fixup goes where nothing is", code: []byte{0xff, 0xe6}, fixups: map[x86.Addr]x86.Addr{nowhere: nowhere}}, // jmp *%rsi
		{name: "fixup goes back", code: []byte{0x8b, 0x06, 0xc3}, fixups: map[x86.Addr]x86.Addr{textBase: textBase}},
		{name: "fault handler changes nothing", code: []byte{0xff, 0xe6}, traps: &trapFuncs{OnFault: func(*x86.PtRegs, int) bool { return true }}},
		{name: "int3 handler goes back", code: []byte{0xcc}, traps: &trapFuncs{OnInt3: func(r *x86.PtRegs) bool { r.IP--; return true }}},
		{name: "steps on and on", code: []byte{0xcc, 0xeb, 0xfe}, traps: &trapFuncs{
			OnInt3:  func(r *x86.PtRegs) bool { r.Flags |= x86.FlagTF; return true },
			OnDebug: func(r *x86.PtRegs) bool { return true },
		}},
		{name: "steps a pause again", code: []byte{0xcc, 0xf3, 0x90, 0xc3}, traps: &trapFuncs{
			OnInt3:  func(r *x86.PtRegs) bool { r.Flags |= x86.FlagTF; return true },
			OnDebug: func(r *x86.PtRegs) bool { r.IP = uint64(textBase) + 1; return true },
		}},
	} {
		for _, every := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				img := &tinyImage{Fixups: c.fixups}
				at := img.Add("endless", c.code...)
				img.Add("seven", 0xb8, 7, 0, 0, 0, 0xc3)
				m := boot(t, img, &Options{Budget: 100_000, EveryInstruction: every})
				m.SetTraps(nil)
				if c.traps != nil {
					m.SetTraps(c.traps)
				}
				for range 2 {
					_, err := m.CallAddr(at, 0, uint64(nowhere))
					require.ErrorIs(t, err, ErrBudget)
					got, err := m.Call("seven")
					require.NoError(t, err)
					require.Equal(t, uint64(7), got)
				}
			})
		}
	}
}

// A handler whose guest code hits the handler's own probe again and again is refused at some depth.
// So is a handler that calls an endless function.
func TestHandlersThatRecurse(t *testing.T) {
	img := int3Image()
	spin := img.Add("spin", 0xeb, 0xfe)
	m := boot(t, img, &Options{Budget: 1_000_000})
	depth, deepest := 0, 0
	m.SetTraps(&trapFuncs{OnInt3: func(*x86.PtRegs) bool {
		depth++
		deepest = max(deepest, depth)
		_, err := m.Call("probed", 1)
		if deepest == depth {
			require.Error(t, err)
		}
		depth--
		return true
	}})
	for range 3 {
		_, err := m.Call("probed", 1)
		require.NoError(t, err)
		require.Greater(t, deepest, 3)
	}
	m.SetTraps(&trapFuncs{OnInt3: func(*x86.PtRegs) bool {
		_, err := m.CallAddr(spin)
		require.ErrorIs(t, err, ErrBudget)
		return true
	}})
	_, err := m.Call("probed", 1)
	require.ErrorIs(t, err, ErrBudget)
	m.SetTraps(&trapFuncs{OnInt3: func(*x86.PtRegs) bool { return true }})
	_, err = m.Call("probed", 1)
	require.NoError(t, err)
}

// TestWorkIsBounded: few instructions that take long end by an allowance of their own, and neither
// the clock nor the budget counts that time.
func TestWorkIsBounded(t *testing.T) {
	again := func(r *x86.PtRegs) bool { return true }
	for _, c := range []struct {
		name  string
		code  []byte
		arg   uint64
		traps *trapFuncs
	}{
		{name: "many blocks", code: append(slices.Repeat([]byte{0x74, 0}, 40_000), 0xe9, 0x7b, 0xc7, 0xfe, 0xff)}, // jz .+2 …; jmp to the first
		{name: "self-modifying text", code: rewrites, arg: 1 << 40},
		{name: "its own block", code: selfWriter, arg: 1 << 40},
		{name: "probed loop", code: []byte{0xcc, 0xeb, 0xfd}, traps: &trapFuncs{OnInt3: again}},
		{name: "mov to cr3", code: []byte{0x0f, 0x20, 0xd8, 0x0f, 0x22, 0xd8, 0xeb, 0xf8}},
		{name: "yields", code: []byte{0xe6, 0xe1, 0xeb, 0xfc}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "mov to cr3" {
				ofUnicorn(t) // it costs interp no more than another instruction
			}
			img := writableText{&tinyImage{}}
			at := img.Add("endless", c.code...)
			img.Add("seven", 0xb8, 7, 0, 0, 0, 0xc3)
			m := boot(t, img, &Options{Budget: 1 << 40, HeapSize: 1 << 20})
			m.SetAllowed(20_000_000)
			m.SetTraps(nil)
			if c.traps != nil {
				m.SetTraps(c.traps)
			}
			_, err := m.CallAddr(at, c.arg)
			var over *BudgetError
			require.ErrorAs(t, err, &over)
			require.True(t, over.Work)
			got, err := m.Call("seven")
			require.NoError(t, err)
			require.Equal(t, uint64(7), got)
		})
	}
}
