package machine_test

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	. "kprobelab/machine"
	"kprobelab/x86"
)

// resident returns the process's resident memory in bytes (proc(5), statm). For the engine in Go,
// whose memory is all in Go's heap, it returns the size of the heap.
func resident(t *testing.T) int {
	if engine.name == "interp" {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	b, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	var size, pages int
	_, err = fmt.Sscan(string(b), &size, &pages)
	require.NoError(t, err)
	return pages * os.Getpagesize()
}

// growth returns the resident memory that n more rounds take, after so many rounds that
// translations were dropped once. Rounds that leak take memory each time. Other memory of the
// process, a growing heap or the race detector's records, is taken once.
func growth(t *testing.T, n int, round func()) int {
	for range n {
		round()
	}
	least := math.MaxInt
	for tries := 0; tries < 3 && least >= growthLimit; tries++ {
		debug.FreeOSMemory()
		before := resident(t)
		for range n {
			round()
		}
		debug.FreeOSMemory()
		least = min(least, resident(t)-before)
	}
	return least
}

func growthRounds() int {
	if testing.Short() {
		return 20_000
	}
	return 30_000
}

// translations is the size of Unicorn's buffer of translations, in bytes.
const translations = 128 << 20

// The translation buffer is emptied at 8 MiB, and its resident part stops growing there. A round that kept anything would show.
const growthLimit = 8 << 20

// Code that is patched between calls again and again executes its current bytes, and old
// translations of it do not accumulate.
func TestPatchedCodeDoesNotPileUp(t *testing.T) {
	img := &tinyImage{}
	at := img.Add("answer", 0xb8, 0, 0, 0, 0, 0xc3) // mov $0,%eax; ret
	for _, every := range []bool{false, true} {
		m := boot(t, img, &Options{EveryInstruction: every})
		n := byte(0)
		require.Less(t, growth(t, growthRounds(), func() {
			n++
			require.NoError(t, m.PokeText(at+1, []byte{n}))
			got, err := m.CallAddr(at)
			if err != nil || got != uint64(n) {
				require.NoError(t, err)
				require.Equal(t, uint64(n), got)
			}
		}), growthLimit)
	}
}

// A long block patched far from its beginning is counted anew: by its size it
// would fill the buffer first.
func TestLongPatchedBlocksDoNotPileUp(t *testing.T) {
	code := []byte{0x31, 0xc0} // xor %eax,%eax
	for range 500 {
		code = append(code, 0x03, 0x07, 0x90) // add (%rdi),%eax; nop
	}
	code = append(code, 0xc3)
	img := &tinyImage{}
	at := img.Add("sum", code...)
	last := at.Add(int64(len(code)) - 2)
	m := boot(t, img, nil)
	buf, err := m.Alloc(8)
	require.NoError(t, err)
	require.NoError(t, m.WriteMem(buf, []byte{2, 0, 0, 0, 0, 0, 0, 0}))
	inc := false
	require.Less(t, growth(t, 800, func() {
		inc = !inc
		require.NoError(t, m.PokeText(last, []byte{map[bool]byte{true: 0xf8, false: 0x90}[inc]})) // clc or nop
		got, err := m.CallAddr(at, uint64(buf))
		require.NoError(t, err)
		require.Equal(t, uint64(1000), got)
	}), growthLimit)
}

// One call whose handlers call guest code and patch it fills the buffer many
// times over: it is emptied in the middle of the call, and the call takes the same time each time.
func TestHandlersDoNotPileUp(t *testing.T) {
	img := &tinyImage{}
	// mov %rdi,%rcx; xor %eax,%eax; 1: nop; add $3,%rax; dec %rcx; jnz 1b; ret
	at := img.Add("count", 0x48, 0x89, 0xf9, 0x31, 0xc0, 0x90, 0x48, 0x83, 0xc0, 0x03, 0x48, 0xff, 0xc9, 0x75, 0xf6, 0xc3)
	inner := img.Add("inner", 0xb8, 0, 0, 0, 0, 0xc3)
	run := func(rounds int) uint64 {
		m := boot(t, img, nil)
		hits := uint64(0)
		m.SetTraps(&trapFuncs{OnInt3: func(r *x86.PtRegs) bool {
			hits++
			if err := m.PokeText(inner+1, []byte{byte(hits)}); err != nil {
				return false
			}
			got, err := m.CallAddr(inner)
			return err == nil && got == hits&0xff
		}})
		require.NoError(t, m.PokeText(at+5, []byte{0xcc}))
		var got uint64
		var err error
		require.Less(t, growth(t, 1, func() { got, err = m.CallAddr(at, uint64(rounds)) }), growthLimit)
		require.NoError(t, err)
		require.Equal(t, uint64(3*rounds), got)
		require.Equal(t, uint64(2*rounds), hits)
		return m.Now()
	}
	require.Equal(t, run(growthRounds()), run(growthRounds()))
}

// A single handler that calls more guest code than there is room for is
// refused, and the machine is as good as before.
func TestOneHandlerCallsTooMuch(t *testing.T) {
	ofUnicorn(t) // the other engine translates nothing
	img := &tinyImage{}
	at := img.Add("outer", 0x90, 0xb8, 7, 0, 0, 0, 0xc3) // nop; mov $7,%eax; ret
	inner := img.Add("inner", 0xc3)
	m := boot(t, img, nil)
	calls := 0
	m.SetTraps(&trapFuncs{OnInt3: func(*x86.PtRegs) bool {
		for {
			_, err := m.CallAddr(inner)
			if err != nil {
				require.ErrorIs(t, err, ErrCrowded)
				return true
			}
			calls++
		}
	}})
	require.NoError(t, m.PokeText(at, []byte{0xcc}))
	for range 3 {
		calls = 0
		got, err := m.CallAddr(at)
		require.NoError(t, err)
		require.Equal(t, uint64(7), got)
		require.Greater(t, calls, 10_000)
	}
}

// Machines that are closed give their memory back.
func TestClosedMachinesAreGone(t *testing.T) {
	img := &tinyImage{}
	at := img.Add("ret", 0xc3)
	require.Less(t, growth(t, 40, func() {
		m, err := open(img, nil)
		require.NoError(t, err)
		_, err = m.CallAddr(at)
		require.NoError(t, err)
		m.Close()
	}), growthLimit)
}
