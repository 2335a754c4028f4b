package machine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	. "kprobelab/machine"
	"kprobelab/x86"
)

// TestSuspendedBlocksAreRewritten: guest code that a handler calls overwrites the code after the
// instruction that called the handler, with code of another size, up to past the page's end. The
// run goes on with the new code.
//
// Only the last rewriting is longer than a block of the engine. A store drops the
// blocks that it overwrites, and at times no others of its page (docs/transparency.md).
func TestSuspendedBlocksAreRewritten(t *testing.T) {
	for _, nest := range nests {
		for _, pad := range []int{1, PageSize - 40, PageSize - 16} {
			for _, every := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, pad %d, by instructions %t", nest.name, pad, every), func(t *testing.T) {
					img := &tinyImage{}
					img.Add("pad", slices.Repeat([]byte{0x90}, pad)...)
					outer := img.Add("outer", nest.code...)
					img.Add("room", slices.Repeat([]byte{0xcc}, 2*PageSize)...)
					// mov %rdx,%rcx; rep movsb; ret
					img.Add("copy", 0x48, 0x89, 0xd1, 0xf3, 0xa4, 0xc3)
					m := boot(t, writableText{img}, &Options{EveryInstruction: every})
					buf, err := m.Alloc(2 * PageSize)
					require.NoError(t, err)
					tail := outer.Add(int64(len(nest.code)) - 3)
					var code []byte
					rewrite := func() {
						require.NoError(t, m.WriteMem(buf, code))
						_, err := m.Call("copy", uint64(tail), uint64(buf), uint64(len(code)))
						require.NoError(t, err)
					}
					nest.set(m, rewrite)
					stub, err := m.Callout("stub", func(x86.Addr, *x86.PtRegs) { rewrite() })
					require.NoError(t, err)
					for i, nops := range []int{0, 1, 30, 3, 0, 40, 2, 0, 7, 5000} {
						code = append(slices.Repeat([]byte{0x90}, nops), 0xb0, byte(i), 0xc3)
						got, err := m.CallAddr(outer, 0, uint64(stub))
						require.NoError(t, err)
						require.Equal(t, byte(i), byte(got))
					}
				})
			}
		}
	}
}

// TestHandlersCannotWriteStubs: the machine's own code is read-only to the guest, in
// nested runs too, while one of its blocks is suspended.
func TestHandlersCannotWriteStubs(t *testing.T) {
	for _, nest := range nests {
		if nest.name == "fault" {
			continue // its receiver would take the store's fault
		}
		t.Run(nest.name, func(t *testing.T) {
			img := sevens(&tinyImage{})
			outer := img.Add("outer", nest.code...)
			store := img.Add("store", 0xc6, 0x07, 0xcc, 0xc3) // movb $0xcc,(%rdi); ret
			m := boot(t, writableText{img}, nil)
			var stub x86.Addr
			faults := 0
			inner := func() {
				for _, at := range []x86.Addr{stub, stub + 1, m.InnerEnd(), m.OuterEnd()} {
					_, err := m.CallAddr(store, uint64(at))
					var f *Fault
					require.ErrorAs(t, err, &f)
					require.Equal(t, AccessWrite, f.Access)
					faults++
				}
			}
			stub, err := m.Callout("stub", func(x86.Addr, *x86.PtRegs) { inner() })
			require.NoError(t, err)
			nest.set(m, inner)
			_, err = m.CallAddr(outer, 0, uint64(stub))
			require.NoError(t, err)
			require.Equal(t, 4, faults)
			m.SetTraps(nil)
			got, err := m.Call("seven")
			require.NoError(t, err)
			require.Equal(t, uint64(7), got)
		})
	}
}
