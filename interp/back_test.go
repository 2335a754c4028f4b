package interp

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/decoder"
	"kprobelab/errno"
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

// Steps back lead through the same states, and forwards again too.
func TestStepsBackRestoreTheState(t *testing.T) {
	for _, o := range []*machine.Options{
		{CPUs: 2, Seed: 3, EveryInstruction: true, Slice: 1, HeapSize: 1 << 20},
		{CPUs: 3, Seed: 4, Slice: 20, HeapSize: 1 << 20},
		{CPUs: 1, Seed: 5, EveryInstruction: true, Slice: 3, HeapSize: 1 << 20},
	} {
		s := newStepped(t, o, "busy_worker")
		require.NoError(t, s.m.KeepSteps(1000))
		rapid.Check(t, func(rt *rapid.T) {
			n := rapid.IntRange(1, 12).Draw(rt, "forwards")
			hashes := s.forward(rt, n)
			steps := s.m.Steps()
			back := rapid.IntRange(0, min(n, steps)).Draw(rt, "back")
			// The last run may have found nothing left to do.
			for k := range back {
				require.NoError(rt, s.m.StepBack())
				require.Contains(rt, hashes[:n-k+1], digest(t, s.m))
			}
			if steps >= n && back == n {
				require.Equal(rt, hashes[0], digest(t, s.m))
				require.Equal(rt, hashes, s.forward(rt, n))
			}
		})
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

// A step back over text that was poked and not synced brings the stale block back.
func TestStepBackRestoresStaleText(t *testing.T) {
	// 1: mov $1,%eax; jmp 1b, which a handler makes mov $2.
	img := tiny([]byte{0xb8, 1, 0, 0, 0, 0xcc, 0xeb, 0xf8})
	m, e := boot(t, img, &machine.Options{Slice: 1, EveryInstruction: true, HeapSize: 1 << 20})
	pokes := 0
	m.SetTraps(&traps{OnInt3: func(r *x86.PtRegs) bool {
		if pokes++; pokes == 2 {
			return m.PokeTextNoSync(textBase+1, []byte{2}) == nil
		}
		if pokes == 4 {
			m.SyncCore(0)
		}
		return true
	}})
	_, err := m.Go("t", machine.Invocation{Addr: textBase})
	require.NoError(t, err)
	require.NoError(t, m.KeepSteps(100))
	var hashes [][32]byte
	var ax []uint64
	for range 20 {
		left := 1
		require.NoError(t, m.RunUntil(func() bool { left--; return left < 0 }))
		hashes = append(hashes, digest(t, m))
		ax = append(ax, e.cpus[0].r[rax])
	}
	require.Contains(t, ax, uint64(1))
	require.Equal(t, uint64(2), ax[len(ax)-1])
	for n := len(hashes) - 2; n >= 0; n-- {
		require.NoError(t, m.StepBack())
		require.Equal(t, hashes[n], digest(t, m))
		require.Equal(t, ax[n], e.cpus[0].r[rax])
	}
	pokes = 4 // the handler's own state is not undone: from here it changes nothing
	for range 19 {
		left := 1
		require.NoError(t, m.RunUntil(func() bool { left--; return left < 0 }))
		require.Equal(t, uint64(1), e.cpus[0].r[rax], "the first blocks are back")
	}
}

// Blocks that were dropped are kept for steps back: they count, too.
func TestALogOfBlocksIsBounded(t *testing.T) {
	m, e := boot(t, tiny([]byte{0xeb, 0xfe}), &machine.Options{Slice: 1, EveryInstruction: true, HeapSize: 1 << 20})
	_, err := m.Go("t", machine.Invocation{Addr: textBase})
	require.NoError(t, err)
	require.NoError(t, m.KeepSteps(100))
	left := 1
	require.NoError(t, m.RunUntil(func() bool { left--; return left < 0 }))
	require.Equal(t, 1, m.Steps())
	large := &block{ops: make([]op, maxBlock)}
	for n := 0; m.Steps() > 0; n++ {
		require.Less(t, n, 1<<20)
		require.LessOrEqual(t, e.log.bytes, machine.MaxLog)
		e.log.block(e.cpus[0], large, false)
	}
	require.Zero(t, e.log.bytes)
}

func TestStepsAreBounded(t *testing.T) {
	s := newStepped(t, &machine.Options{CPUs: 2, EveryInstruction: true, Slice: 1, HeapSize: 1 << 20}, "busy_worker")
	require.ErrorIs(t, s.m.StepBack(), errno.ENODATA)
	require.ErrorIs(t, s.m.KeepSteps(-1), errno.EINVAL)
	require.NoError(t, s.m.KeepSteps(16))
	s.forward(t, 40)
	n := s.m.Steps()
	require.LessOrEqual(t, n, 16)
	require.Greater(t, n, 10)
	for range n {
		require.NoError(t, s.m.StepBack())
	}
	require.ErrorIs(t, s.m.StepBack(), errno.ENODATA)
	s.forward(t, 5)
	at, err := s.m.Alloc(8) // what the host changes, no step undoes
	require.NoError(t, err)
	require.Zero(t, s.m.Steps())
	s.m.Free(at)
}
