package machine_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	. "kprobelab/machine"
)

// loads is mov $0xf00000,%ecx: a value that debug register 7 keeps, and that
// makes no breakpoint.
var loads = []byte{0xb9, 0, 0, 0xf0, 0}

// writesAndReads is mov %rcx,%dr7, which is refused; else mov %dr7,%rax; ret.
var writesAndReads = []byte{0x0f, 0x23, 0xf9, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x0f, 0x21, 0xf8, 0xc3}

// TestDebugWriteAfterWhatIsMisread: a write to debug register 7 follows an instruction that a
// decoder may read too long, so that the write would seem to be a part of it.
func TestDebugWriteAfterWhatIsMisread(t *testing.T) {
	for name, before := range map[string][]byte{
		"mov from cr with a mod of memory":    {0x0f, 0x20, 0x90},
		"the same with an address size":       {0x67, 0x0f, 0x20, 0x90, 0x90, 0x90},
		"mov from dr with a mod of memory":    {0x0f, 0x21, 0x90},
		"the same with lock and repne":        {0xf0, 0xf2, 0x0f, 0x21, 0x90, 0x90, 0x90},
		"rex before an operand size":          {0x48, 0x66, 0xb8, 0x90, 0x90},
		"rex before an operand size, no room": {0x48, 0x66, 0xb8, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90},
		"rex before a segment":                {0x48, 0x2e, 0xb8, 0x90, 0x90, 0x90, 0x90},
		"rex before rex":                      {0x48, 0x40, 0xb8, 0x90, 0x90, 0x90, 0x90},
		"two rex":                             {0x4f, 0x48, 0x66, 0xc7, 0xc0, 0x90, 0x90},
	} {
		for _, every := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, by instructions %t", name, every), func(t *testing.T) {
				img := &tinyImage{}
				at := img.Add("f", slices.Concat(loads, before, writesAndReads)...)
				m := boot(t, img, &Options{EveryInstruction: every, Budget: 1000})
				got, err := m.CallAddr(at)
				require.True(t, err != nil || got&0xf00000 == 0, "%#x", got)
			})
		}
	}
}

// TestDebugWriteInRandomCompany is the same after random bytes, with random
// prefixes.
func TestDebugWriteInRandomCompany(t *testing.T) {
	img := &tinyImage{}
	at := img.Add("f", slices.Repeat([]byte{0x90}, 120)...)
	prefixes := []byte{0x48, 0x66, 0x67, 0xf2, 0xf3, 0xf0, 0x2e, 0x64, 0x40, 0x4f}
	maps := [][]byte{nil, nil, {0x0f}, {0x0f}, {0x0f, 0x38}, {0x0f, 0x3a}, {0xc5, 0xf8}}
	rng := rand.New(rand.NewPCG(14, 7))
	m := boot(t, img, &Options{Budget: 1000})
	for range 1500 {
		before := slices.Clone(loads)
		for range rng.IntN(4) {
			before = append(before, prefixes[rng.IntN(len(prefixes))])
		}
		before = append(before, maps[rng.IntN(len(maps))]...)
		before = append(before, byte(rng.Uint32()), byte(rng.Uint32()))
		before = append(before, slices.Repeat([]byte{0x90}, rng.IntN(9))...)
		require.NoError(t, m.PokeText(at, append(before, writesAndReads...)))
		got, err := m.CallAddr(at, uint64(dataBase), uint64(dataBase), uint64(dataBase))
		if errors.Is(err, ErrEngine) {
			m = boot(t, img, &Options{Budget: 1000})
		}
		require.True(t, err != nil || got&0xf00000 == 0, "% x: %#x", before, got)
	}
}

// TestCostlyInstructionsAreCharged: each instruction of the table costs its price, so that a loop
// of them ends with the allowance.
func TestCostlyInstructionsAreCharged(t *testing.T) {
	ofUnicorn(t)
	for name, c := range map[string]struct {
		code []byte
		cost uint64
	}{
		"fxsave":       {[]byte{0x0f, 0xae, 0x07}, 350},
		"fxsave64":     {[]byte{0x48, 0x0f, 0xae, 0x07}, 350},
		"fxrstor":      {[]byte{0x0f, 0xae, 0x0e}, 450},
		"fnsave":       {[]byte{0xdd, 0x37}, 200},
		"frstor":       {[]byte{0xdd, 0x26}, 250},
		"fnstenv":      {[]byte{0xd9, 0x37}, 60},
		"fldenv":       {[]byte{0xd9, 0x26}, 40},
		"fbstp":        {[]byte{0xdf, 0x37}, 60},
		"cmpxchg16b":   {[]byte{0x48, 0x0f, 0xc7, 0x0f}, 30},
		"by rex, late": {[]byte{0x48, 0x66, 0x0f, 0xae, 0x07}, 350}, // by the engine a rex; by a processor none
	} {
		for _, every := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, by instructions %t", name, every), func(t *testing.T) {
				const times = 1000
				img := &tinyImage{}
				body := append(slices.Clone(c.code), 0xeb, byte(-(len(c.code) + 2))) // jmp to the first
				at := img.Add("f", body...)
				m := boot(t, img, &Options{EveryInstruction: every, Budget: 1 << 40})
				buf, err := m.Alloc(1024)
				require.NoError(t, err)
				state, err := m.Alloc(1024) // to load from
				require.NoError(t, err)
				require.NoError(t, m.WriteMem(state, binary.LittleEndian.AppendUint16(nil, 0x37f)))
				require.NoError(t, m.WriteMem(state+24, binary.LittleEndian.AppendUint32(nil, 0x1f80)))
				before := m.Work()
				m.SetAllowed(times * c.cost)
				_, err = m.CallAddr(at, uint64(buf), uint64(state))
				var over *BudgetError
				require.ErrorAs(t, err, &over)
				require.True(t, over.Work)
				require.Greater(t, m.Work()-before, times*c.cost)
				require.Less(t, m.Instructions(), uint64(4*times))
			})
		}
	}
}
