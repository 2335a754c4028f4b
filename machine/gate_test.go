package machine_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	. "kprobelab/machine"
	"kprobelab/x86"
)

// gateCode adds 30 to rdi, writes 0 to word 0 and goes back with the frame's
// flags, sp and ip: mov 32(%rsp),%rax; mov 8(%rsp),%rcx; mov %rcx,-8(%rax);
// mov 24(%rsp),%rcx; mov %rcx,-16(%rax); add $30,%rdi; lea -16(%rax),%rsp;
// movq $0,%gs:word 0; popfq; ret.
func gateCode(m *Machine) []byte {
	b := []byte{
		0x48, 0x8b, 0x44, 0x24, 0x20, 0x48, 0x8b, 0x4c, 0x24, 0x08, 0x48, 0x89, 0x48, 0xf8,
		0x48, 0x8b, 0x4c, 0x24, 0x18, 0x48, 0x89, 0x48, 0xf0, 0x48, 0x83, 0xc7, 30, 0x48, 0x8d, 0x60, 0xf0,
		0x65, 0x48, 0xc7, 0x04, 0x25,
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(m.LocalOffset()))
	return append(b, 0, 0, 0, 0, 0x9d, 0xc3)
}

func TestGate(t *testing.T) {
	m := boot(t, int3Image(), nil)
	entry, err := m.AllocExec(64, "entry")
	require.NoError(t, err)
	require.NoError(t, m.PokeText(entry, gateCode(m)))
	inGo := 0
	m.SetTraps(&trapFuncs{OnInt3: func(*x86.PtRegs) bool { inGo++; return true }})
	call := func(want uint64, wantInGo int) {
		t.Helper()
		got, err := m.Call("probed", 10)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, wantInGo, inGo)
		require.LessOrEqual(t, m.Local(0)[0], uint64(LocalBusy))
	}
	call(12, 1)
	at := textBase + 3
	require.True(t, m.GateInt3(at, entry, 0x1000))
	call(42, 1)
	require.False(t, m.GateInt3(at+0x1000, entry, 0x1000), "the place is taken")
	m.UngateInt3(at + 0x1000)
	call(42, 1)

	m.Local(0)[0] = LocalBusy
	call(12, 2)
	m.Local(0)[0] = 0
	require.True(t, m.GateInt3(at, entry, 0x2000), "the same again")
	call(42, 2)
	m.UngateInt3(at)
	call(12, 3)

	s, err := m.Snapshot()
	require.NoError(t, err)
	require.True(t, m.GateInt3(at, entry, 0x1000))
	call(42, 3)
	require.NoError(t, m.Restore(s))
	require.Zero(t, m.Local(0)[0], "nobody is inside")
	call(12, 4)
}
