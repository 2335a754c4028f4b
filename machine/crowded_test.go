package machine_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/contract"
	"kprobelab/kimage"
	. "kprobelab/machine"
	"kprobelab/x86"
)

// writableText is an image whose text the guest may write, as ld -N makes it.
type writableText struct{ *tinyImage }

func (w writableText) Segments() []kimage.Segment {
	list := w.tinyImage.Segments()
	list[0].Write = true
	return list
}

// rewrites changes its own next block rdi times, and returns the last value.
//
//	mov %rdi,%rcx; 1: mov %cl,2f+1(%rip); jmp 2f; 2: mov $0,%al; dec %rcx; jnz 1b; ret
var rewrites = []byte{0x48, 0x89, 0xf9, 0x88, 0x0d, 3, 0, 0, 0, 0xeb, 0, 0xb0, 0, 0x48, 0xff, 0xc9, 0x75, 0xf1, 0xc3}

// selfWriter stores into the block that runs, rdi times.
//
//	mov %rdi,%rcx; 1: mov %cl,2f+1(%rip); 2: mov $0,%al; dec %rcx; jnz 1b; ret
var selfWriter = []byte{0x48, 0x89, 0xf9, 0x88, 0x0d, 1, 0, 0, 0, 0xb0, 0, 0x48, 0xff, 0xc9, 0x75, 0xf3, 0xc3}

// shortBlocks are n blocks of one short instruction: jmp to the next.
func shortBlocks(n int) []byte { return append(slices.Repeat([]byte{0xeb, 0}, n), 0xc3) }

// longBlock is n instructions that become much host code, in blocks as long as
// the engine makes them.
func longBlock(n int, inst ...byte) []byte { return append(slices.Repeat(inst, n), 0xc3) }

// crowds are the ways in which guest code makes the engine translate.
var crowds = []struct {
	name string
	code []byte
	n    uint64
}{
	{"text that rewrites its next block", rewrites, 120_000},
	{"text that rewrites its own block", selfWriter, 120_000},
	{"many short blocks", shortBlocks(90_000), 0},
	{"long blocks", longBlock(300_000, 0x90), 0},                     // nop
	{"dense blocks", longBlock(200_000, 0x02, 0x07), 0},              // add (%rdi),%al
	{"locked instructions", longBlock(100_000, 0xf0, 0x00, 0x07), 0}, // lock add %al,(%rdi)
}

// nests are the ways in which a handler's run begins inside another run: each
// makes the machine call inner at least once when outer is called.
var nests = []struct {
	name string
	code []byte
	set  func(m *Machine, inner func())
}{
	{"int3", []byte{0xcc, 0xb0, 7, 0xc3}, func(m *Machine, inner func()) {
		m.SetTraps(&trapFuncs{OnInt3: func(*x86.PtRegs) bool { inner(); return true }})
	}},
	{"debug", []byte{0xcc, 0x90, 0xb0, 7, 0xc3}, func(m *Machine, inner func()) {
		m.SetTraps(&trapFuncs{
			OnInt3:  func(r *x86.PtRegs) bool { r.Flags |= x86.FlagTF; return true },
			OnDebug: func(r *x86.PtRegs) bool { r.Flags &^= x86.FlagTF; inner(); return true },
		})
	}},
	{"fault", []byte{0x0f, 0x0b, 0xb0, 7, 0xc3}, func(m *Machine, inner func()) {
		m.SetTraps(&trapFuncs{OnFault: func(r *x86.PtRegs, _ int) bool { inner(); r.IP += 2; return true }})
	}},
	// sub $168,%rsp; mov %rsp,%rdi; call *%rsi; add $168,%rsp; mov $7,%al; ret
	{"callout", []byte{0x48, 0x81, 0xec, 0xa8, 0, 0, 0, 0x48, 0x89, 0xe7, 0xff, 0xd6, 0x48, 0x81, 0xc4, 0xa8, 0, 0, 0, 0xb0, 7, 0xc3},
		func(*Machine, func()) {}},
}

// TestGuestCodeCannotOverrunTheTranslations: however guest code fills the
// buffer of translations, and wherever its run is nested, the engine never
// empties the buffer under a run, and the machine goes on.
func TestGuestCodeCannotOverrunTheTranslations(t *testing.T) {
	for i, crowd := range crowds {
		for j, nest := range nests {
			for _, every := range []bool{false, true} {
				if i > 0 && j > 0 && (testing.Short() || every) {
					continue // the worst of each kind is among the others
				}
				t.Run(fmt.Sprintf("%s in %s, by instructions %t", crowd.name, nest.name, every), func(t *testing.T) {
					img := writableText{&tinyImage{}}
					outer := img.Add("outer", nest.code...)
					at := img.Add("crowd", crowd.code...)
					m := boot(t, img, &Options{EveryInstruction: every, Budget: 1 << 40})
					buf, err := m.Alloc(8)
					require.NoError(t, err)
					arg := cmp.Or(crowd.n, uint64(buf))
					var failed error
					inner := func() {
						before := resident(t)
						_, failed = m.CallAddr(at, arg)
						if errors.Is(failed, ErrCrowded) { // the buffer has not been emptied
							require.Less(t, resident(t)-before, translations*7/8)
						}
					}
					nest.set(m, inner)
					stub, err := m.Callout("stub", func(x86.Addr, *x86.PtRegs) { inner() })
					require.NoError(t, err)

					got, err := m.CallAddr(outer, 0, uint64(stub))
					require.NoError(t, err)
					require.Equal(t, uint64(7), got&0xff)
					if failed != nil {
						require.ErrorIs(t, failed, ErrCrowded)
					}
					got, err = m.CallAddr(outer, 0, uint64(stub))
					require.NoError(t, err)
					require.Equal(t, uint64(7), got&0xff)
				})
			}
		}
	}
}

// FuzzNestedRuns: guest code that writes its own text, called by a handler,
// does the process no harm.
func FuzzNestedRuns(f *testing.F) {
	for i, c := range crowds[:2] {
		f.Add(c.code, uint8(i))
	}
	for i, c := range faultCases {
		f.Add(c.code, uint8(i))
	}
	f.Fuzz(func(t *testing.T, code []byte, way uint8) {
		nest := nests[int(way)%(len(nests)-1)]
		img := writableText{&tinyImage{}}
		outer := img.Add("outer", nest.code...)
		at := img.Add("fuzz", append(code[:len(code):len(code)], 0xc3)...)
		m := boot(t, img, &Options{Budget: 2_000_000, HeapSize: 1 << 20})
		inner := func() { _, _ = m.CallAddr(at, 70_000) }
		nest.set(m, inner)
		stub, err := m.Callout("stub", func(x86.Addr, *x86.PtRegs) { inner() })
		require.NoError(t, err)
		for range 3 {
			_, _ = m.CallAddr(outer, 0, uint64(stub))
		}
	})
}

// TestFaultHandlersThatRecurse: a receiver of faults that calls a faulting function again is
// refused at some depth, and within one budget.
func TestFaultHandlersThatRecurse(t *testing.T) {
	img := &tinyImage{}
	at := img.Add("faults", 0x0f, 0x0b, 0x0f, 0x0b, 0xc3)
	m := boot(t, img, &Options{Budget: 1_000_000})
	depth, deepest := 0, 0
	m.SetTraps(&trapFuncs{OnFault: func(r *x86.PtRegs, _ int) bool {
		depth++
		deepest = max(deepest, depth)
		_, err := m.CallAddr(at)
		if depth == deepest {
			require.Error(t, err)
		}
		depth--
		r.IP += 2
		return true
	}})
	_, err := m.CallAddr(at)
	require.ErrorIs(t, err, ErrBudget)
	require.Equal(t, contract.MaxDepth, deepest)
	m.SetTraps(&trapFuncs{OnFault: func(r *x86.PtRegs, _ int) bool { r.IP += 2; return true }})
	_, err = m.CallAddr(at)
	require.NoError(t, err)
}
