package machine_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	. "kprobelab/machine"
	"kprobelab/x86"
)

// runBytes runs any bytes as kernel code, on two tasks, with handlers that step a trapping
// instruction, and then checks that the machine still computes.
func runBytes(t testing.TB, code []byte) {
	img := &tinyImage{}
	img.Add("twice", 0x48, 0x8d, 0x04, 0x3f, 0xc3)
	fuzz := img.Add("fuzz", append(code[:len(code):len(code)], 0xc3)...)
	m, err := open(img, &Options{CPUs: 2, Budget: 3000, Slice: 100, HeapSize: 1 << 20})
	require.NoError(t, err)
	defer m.Close()
	n := 0
	m.SetTraps(&trapFuncs{
		OnInt3: func(r *x86.PtRegs) bool {
			if n++; n%3 == 0 {
				_, _ = m.CallAddr(fuzz, r.AX)
			}
			r.Flags |= x86.FlagTF
			return n%7 != 0
		},
		OnDebug: func(r *x86.PtRegs) bool { r.Flags &^= x86.FlagTF; return true },
		OnFault: func(r *x86.PtRegs, _ int) bool { r.IP++; n++; return n%5 == 0 },
	})
	data := dataBase + PageSize
	_, _ = m.Call("fuzz", data, data, data, data, data, data)
	for range 2 {
		task, err := m.Go("fuzz", Invoke("fuzz", data, data+PageSize))
		require.NoError(t, err)
		_ = task
	}
	_ = m.Run()
	m.SetTraps(nil)
	_ = m.Now()
}

// FuzzRun: no code of a guest harms the process, or runs on forever.
func FuzzRun(f *testing.F) {
	for _, c := range faultCases {
		f.Add(c.code)
	}
	for _, s := range []string{
		"\xf4", "\xcc\xcc", "\x0f\x01\x10", "\x0f\x22\xc0", "\x0f\x22\xe0", "\x0f\x30", "\x0f\x32", "\x48\xcf", "\x48\x0f\x07",
		"\x0f\x01\xd8", "\x0f\x01\xda", "\x0f\x01\xdd", "\x0f\xaa", "\x0f\x09", "\x0f\xa2\xee", "\xe6\xe0", "\xe6\xe1\xe6\xe2\xe6\xe3",
		"\x9d", "\xea\x00\x00\x00\x00", "\xff\x2f", "\x0f\x00\xd8", "\x8e\xdf", "\xcb", "\x0f\x23\xf8", "\xf1", "\xce", "\xeb\xfe",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		if len(code) > 256 {
			return
		}
		runBytes(t, code)
	})
}

// Random bytes hardly ever get far; random instructions of many kinds do.
func TestRandomCode(t *testing.T) {
	n := 300
	if testing.Short() {
		n = 50
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range n {
		code := make([]byte, 1+rng.IntN(40))
		for i := range code {
			code[i] = byte(rng.Uint32())
			if rng.IntN(4) == 0 {
				code[i] = []byte{0x0f, 0xcc, 0x48, 0xff, 0x8b, 0x01, 0x22, 0xe6}[rng.IntN(8)]
			}
		}
		runBytes(t, code)
	}
}
