package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "kprobelab/machine"
	"kprobelab/x86"
)

// lockedRegister is lock bts %eax,%eax: #UD on a processor. The engine aborts
// while it translates that.
var lockedRegister = []byte{0xf0, 0x0f, 0xab, 0xc0, 0xc3}

// TestEngineThatAborts: it ends the run and its machine, not the process, wherever
// the run is nested. Other machines go on.
func TestEngineThatAborts(t *testing.T) {
	ofUnicorn(t)
	other := boot(t, sevens(&tinyImage{}), nil)
	for _, nest := range nests {
		for _, every := range []bool{false, true} {
			t.Run(nest.name, func(t *testing.T) {
				img := sevens(&tinyImage{})
				outer := img.Add("outer", nest.code...)
				at := img.Add("aborts", lockedRegister...)
				m := boot(t, img, &Options{EveryInstruction: every, CPUs: 2})
				inner := func() {
					_, err := m.CallAddr(at)
					require.ErrorIs(t, err, ErrEngine)
				}
				nest.set(m, inner)
				stub, err := m.Callout("stub", func(x86.Addr, *x86.PtRegs) { inner() })
				require.NoError(t, err)
				_, err = m.CallAddr(outer, 0, uint64(stub))
				require.ErrorIs(t, err, ErrEngine)
				_, err = m.Call("seven")
				require.ErrorIs(t, err, ErrEngine)
				require.NoError(t, m.PokeText(at, []byte{0x90}))
				got, err := other.Call("seven")
				require.NoError(t, err)
				require.Equal(t, uint64(7), got)
			})
		}
	}
}

func sevens(img *tinyImage) *tinyImage {
	img.Add("seven", 0xb8, 7, 0, 0, 0, 0xc3)
	return img
}
