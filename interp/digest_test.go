package interp

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/decoder"
	"kprobelab/machine"
	"kprobelab/x86"
)

// stepped is a guest with tasks, and with an int3 that is stepped over and counted
// in guest memory, which goes n slices at a time.
type stepped struct {
	m      *machine.Machine
	probe  x86.Addr
	copied x86.Addr
}

func newStepped(t testing.TB, o *machine.Options, fn string) *stepped {
	m, img := bootGuest(t, o)
	s := &stepped{m: m}
	count, err := s.m.Alloc(8)
	require.NoError(t, err)
	s.probe = img.Lookup(fn)[0].Addr
	s.copied, err = s.m.AllocExec(32, "copy")
	require.NoError(t, err)
	var code [16]byte
	require.NoError(t, s.m.ReadMem(s.probe, code[:]))
	i, err := decoder.Decode(code[:])
	require.NoError(t, err)
	require.NoError(t, s.m.PokeText(s.copied, i.Bytes()))
	require.NoError(t, s.m.PokeText(s.probe, []byte{0xcc}))
	s.m.SetTraps(&traps{
		OnInt3: func(r *x86.PtRegs) bool {
			var b [8]byte
			if s.m.ReadMem(count, b[:]) != nil {
				return false
			}
			n := binary.LittleEndian.Uint64(b[:]) + 1
			if s.m.WriteMem(count, binary.LittleEndian.AppendUint64(nil, n)) != nil {
				return false
			}
			r.IP = uint64(s.copied)
			r.Flags |= x86.FlagTF
			return true
		},
		OnDebug: func(r *x86.PtRegs) bool {
			r.IP = r.IP - uint64(s.copied) + uint64(s.probe)
			r.Flags &^= x86.FlagTF
			return true
		},
	})
	for range 3 {
		_, err := s.m.Go("task", machine.Invoke(fn, 7), machine.Invoke("sleepy_worker", 3), machine.Invoke(fn, 5))
		require.NoError(t, err)
	}
	return s
}

func digest(t require.TestingT, m *machine.Machine) [32]byte {
	h, err := m.StateHash()
	require.NoError(t, err)
	return h
}

// forward runs n slices and returns the digest before each, and at the end.
func (s *stepped) forward(t require.TestingT, n int) [][32]byte {
	hashes := [][32]byte{digest(t, s.m)}
	for range n {
		left := 1
		require.NoError(t, s.m.RunUntil(func() bool { left--; return left < 0 }))
		hashes = append(hashes, digest(t, s.m))
	}
	return hashes
}

// A run repeats to the byte: two machines alike go through the same states.
func TestRunsRepeatToTheByte(t *testing.T) {
	for _, o := range []*machine.Options{
		{CPUs: 2, Seed: 3, EveryInstruction: true, Slice: 1, HeapSize: 1 << 20},
		{CPUs: 3, Seed: 4, Slice: 20, HeapSize: 1 << 20},
		{CPUs: 1, Seed: 5, EveryInstruction: true, Slice: 3, HeapSize: 1 << 20},
	} {
		one, other := newStepped(t, o, "busy_worker"), newStepped(t, o, "busy_worker")
		hashes := one.forward(t, 200)
		require.Equal(t, hashes, other.forward(t, 200))
		require.NotEqual(t, hashes[0], hashes[len(hashes)-1])
	}
}

// Each byte of each page is in the digest, whoever wrote it.
func TestTheDigestSeesEveryWriter(t *testing.T) {
	m, e := boot(t, tiny([]byte{0xb8, 1, 0, 0, 0, 0xc3}), &machine.Options{HeapSize: 1 << 20})
	at, err := m.Alloc(2 * pageSize)
	require.NoError(t, err)
	seen := map[[32]byte]bool{}
	for _, change := range []func() error{
		func() error { return nil },
		func() error { return m.WriteMem(at.Add(pageSize-1), []byte{1, 2}) },
		func() error { return m.WriteMem(at.Add(pageSize-1), []byte{2, 1}) },
		func() error { return m.PokeText(textBase+1, []byte{9}) },
		func() error { _, err := m.CallAddr(textBase); return err },
		func() error { e.region(at).at(uint64(at-e.region(at).Start) / pageSize)[7]++; return nil },
	} {
		require.NoError(t, change())
		require.False(t, seen[digest(t, m)], "the change is not in the digest")
		seen[digest(t, m)] = true
	}
}

// A byte that changes changes the sum of its page.
func TestThePagesSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPage()
		for i := range rapid.IntRange(0, 50).Draw(t, "bytes") {
			p[(i*7919)%pageSize] = rapid.Byte().Draw(t, "byte")
		}
		before := p.sum()
		i, x := rapid.IntRange(0, pageSize-1).Draw(t, "at"), byte(rapid.IntRange(1, 255).Draw(t, "by"))
		p[i] ^= x
		require.NotEqual(t, before, p.sum())
		p[i] ^= x
		require.Equal(t, before, p.sum())
	})
}
