//go:build unicorn && cgo && linux && amd64

package engines

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/emu"
	"kprobelab/internal/integration/dumps"
	"kprobelab/interp"
	"kprobelab/kimage"
	"kprobelab/machine"
	"kprobelab/x86"
)

// Functions that access the board with interrupts off: rdmsr, wrmsr, in of four bytes and of one, a read of memory.
var boardCode = [][]byte{
	{0x9c, 0xfa, 0x89, 0xf9, 0x0f, 0x32, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0, 0x9d, 0xc3},
	{0x9c, 0xfa, 0x89, 0xf9, 0x89, 0xf0, 0x48, 0x89, 0xf2, 0x48, 0xc1, 0xea, 0x20, 0x0f, 0x30, 0x9d, 0xc3},
	{0x89, 0xfa, 0xed, 0xc3},
	{0x31, 0xc0, 0x89, 0xfa, 0xec, 0xc3},
	{0x48, 0x8b, 0x07, 0xc3},
	{0x8b, 0x07, 0xc3},
}

// boardAccess is an access of one of boardCode's functions.
type boardAccess struct {
	code int
	args [2]uint64
}

// randomAccess draws registers of the local APIC and what is beside, some values of which mean something.
func randomAccess(r *rand.Rand, hpet uint64) boardAccess {
	msrs := []uint64{0x10, 0x1b, 0x277, 0x6e0, 0xc0000080, 0xc0000103, 0x1234}
	msr := 0x800 + uint64(r.IntN(0x40))
	if r.IntN(4) == 0 {
		msr = msrs[r.IntN(len(msrs))]
	}
	ports := []uint64{0x20, 0xa0, 0x64, 0x71, 0x608, 0x3f8, 0x3f9, 0x3fa, 0x3fd, 0x3fe, 0x1f0}
	codes := len(boardCode)
	if hpet == 0 { // the kernel has given it up
		codes = 4
	}
	switch code := r.IntN(codes); code {
	case 1:
		return boardAccess{1, [2]uint64{0x800 + uint64(r.IntN(0x40)), uint64(r.Uint32()) >> r.IntN(32)}}
	case 2, 3:
		return boardAccess{code, [2]uint64{ports[r.IntN(len(ports))]}}
	case 4, 5:
		return boardAccess{code, [2]uint64{hpet + []uint64{0, 4, 0x10, 0xf0, 0xf4, 0x100}[r.IntN(6)]}}
	}
	return boardAccess{0, [2]uint64{msr}}
}

// TestTheBoardAnswersAlikeOnBothEngines: the rules of the local APIC, its timer, the counters, the ports and the
// model specific registers are in C and in package board.
func TestTheBoardAnswersAlikeOnBothEngines(t *testing.T) {
	img, err := kimage.Open(dumps.File(t, "6.1"), nil)
	require.NoError(t, err)
	u, err := emu.New(img, nil)
	require.NoError(t, err)
	defer u.Close()
	g, err := interp.New(img, nil)
	require.NoError(t, err)
	defer g.Close()
	var at [2][]x86.Addr
	for i, m := range []*machine.Machine{u, g} {
		for _, code := range boardCode {
			a, err := m.AllocExec(len(code), "board")
			require.NoError(t, err)
			require.NoError(t, m.PokeText(a, code))
			at[i] = append(at[i], a)
		}
	}
	hpet := hpetOf(t, img, g)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range runs(t, 3000) {
		a := randomAccess(r, hpet)
		if a.code == 1 && !harmless(a.args[0]) {
			continue
		}
		x, err := u.CallAddr(at[0][a.code], a.args[:]...)
		require.NoError(t, err, "%d: %+v", i, a)
		y, err := g.CallAddr(at[1][a.code], a.args[:]...)
		require.NoError(t, err, "%d: %+v", i, a)
		require.Equal(t, x, y, "%d: code %d of %#x: Unicorn, then the engine in Go", i, a.code, a.args)
		require.Equal(t, u.Now(), g.Now(), "%d: %+v", i, a)
	}
}

// harmless: a write after which the kernel goes on: of all but the command register and what sends an interrupt, whose
// vectors the kernel does not expect.
func harmless(msr uint64) bool { return msr != 0x830 && msr != 0x83f && msr != 0x80b }

// hpetOf is the address at which the kernel has the HPET's registers.
func hpetOf(t *testing.T, img *kimage.Image, m *machine.Machine) uint64 {
	t.Helper()
	at := img.Lookup("hpet_virt_address")
	require.Len(t, at, 1)
	var b [8]byte
	require.NoError(t, m.ReadMem(at[0].Addr, b[:]))
	return binary.LittleEndian.Uint64(b[:])
}
