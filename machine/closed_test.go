package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "kprobelab/machine"
	"kprobelab/x86"
)

// TestUseAfterClose: whatever can fail says that the machine is closed, and
// nothing else does any harm.
func TestUseAfterClose(t *testing.T) {
	m := boot(t, int3Image(), nil)
	at := dataBase + PageSize
	require.NoError(t, m.WriteMem(at, []byte{1}))
	s, err := m.Snapshot()
	require.NoError(t, err)
	m.Close()
	one := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"call": one(m.Call("twice", 1)), "call addr": one(m.CallAddr(textBase)), "run": m.Run(), "go": one(m.Go("t")),
		"read": m.ReadMem(at, []byte{0}), "read nothing": m.ReadMem(at, nil),
		"write": m.WriteMem(at, []byte{0}), "write nothing": m.WriteMem(at, nil), "swap": one(m.SwapWord(at, 1)),
		"poke": m.PokeText(textBase, []byte{0x90}), "poke nothing": m.PokeText(textBase, nil),
		"alloc": one(m.Alloc(8)), "exec": one(m.AllocExec(8, "x")), "callout": one(m.Callout("x", func(x86.Addr, *x86.PtRegs) {})),
		"snapshot": one(m.Snapshot()), "restore": m.Restore(s),
	} {
		require.ErrorIs(t, err, ErrClosed, name)
	}
	require.NotPanics(t, func() {
		m.Discard(s)
		m.SyncCore(0)
		m.Free(at)
		m.Close()
		_ = m.Console()
		_, _, _ = m.Now(), m.Instructions(), m.Crossings()
		_, _ = m.NumCPU(), m.GSBase(0)
		_ = m.Regs()
	})
	require.Empty(t, m.Dirty(s))
}
