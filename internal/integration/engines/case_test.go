//go:build unicorn && cgo && linux && amd64

package engines

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/interp"
	"kprobelab/x86"
)

// The code page: it loads the vector registers, meets an int3 at which the
// general ones are set, runs the code under test, and ends with storing the
// vector registers.
const (
	startAt  = 0x0f0 // the int3
	testAt   = 0x100
	testSize = 0x80
	endAt    = 0x300
	xmmIn    = dataBase + 3*pageSize
	xmmOut   = xmmIn + 0x100
)

func codePage() []byte {
	page := make([]byte, pageSize)
	for i := range page {
		page[i] = 0xcc
	}
	put := func(at int, op byte, data x86.Addr) int {
		for n := range 16 {
			b := []byte{0x0f, op, byte(n&7)<<3 | 5, 0, 0, 0, 0} // movups
			if n > 7 {
				b = append([]byte{0x44}, b...)
			}
			next := codeBase.Add(int64(at + len(b)))
			binary.LittleEndian.PutUint32(b[len(b)-4:], uint32(data.Add(int64(16*n)).Sub(next)))
			at += copy(page[at:], b)
		}
		return at
	}
	at := put(0, 0x10, xmmIn)
	for ; at < startAt; at++ {
		page[at] = 0x90
	}
	page[put(endAt, 0x11, xmmOut)] = 0xc3
	return page
}

// input is the state at the start of a run.
type input struct {
	code []byte
	regs x86.PtRegs
	data []byte // the four pages
}

// output is the state at the end of a run.
type output struct {
	event  string
	regs   x86.PtRegs
	data   []byte
	instrs uint64
	clock  uint64
	err    string
}

// runner runs inputs on an engine.
type runner struct {
	m    engine
	in   *input
	back x86.PtRegs
	out  output
}

func (r *runner) end(regs *x86.PtRegs, event string) bool {
	r.out.event, r.out.regs = event, *regs
	r.out.regs.OrigAX = 0
	*regs = r.back
	regs.IP = uint64(codeBase + endAt)
	return true
}

func (r *runner) Int3(regs *x86.PtRegs) bool {
	if regs.IP == uint64(codeBase+startAt+1) && r.out.event == "" {
		r.back = *regs
		*regs = r.in.regs
		regs.IP = uint64(codeBase + testAt)
		r.out.event = "ran"
		return true
	}
	return r.end(regs, "int3")
}

func (r *runner) Debug(regs *x86.PtRegs) bool { return r.end(regs, "debug") }

func (r *runner) Fault(regs *x86.PtRegs, vector int) bool {
	return r.end(regs, fmt.Sprintf("vector %d", vector))
}

func (r *runner) TaskExit(int) {}

func (r *runner) run(t testing.TB, in *input) output {
	r.in, r.out = in, output{}
	code := make([]byte, testSize)
	for i := range code {
		code[i] = 0xcc
	}
	copy(code, in.code)
	require.NoError(t, r.m.PokeText(codeBase+testAt, code))
	require.NoError(t, r.m.WriteMem(dataBase, in.data))
	instrs, clock := r.m.Instructions(), r.m.Now()
	_, err := r.m.CallAddr(codeBase)
	if err != nil {
		r.out.err, _, _ = strings.Cut(err.Error(), ", at")
	}
	r.out.instrs, r.out.clock = r.m.Instructions()-instrs, r.m.Now()-clock
	r.out.data = make([]byte, len(in.data))
	require.NoError(t, r.m.ReadMem(dataBase, r.out.data))
	return r.out
}

// samples are instructions of every row of the tables that an engine may know.
var samples = sync.OnceValue(func() (list [][]byte) {
	for _, e := range []decoder.Encoding{
		decoder.EncPrimary, decoder.Enc0F, decoder.Enc0F38, decoder.Enc0F3A, decoder.EncVex0F38, decoder.EncVex0F3A,
	} {
		list = append(list, decoder.Samples(e, 6)...)
	}
	return list
})

// integers are the samples that compilers make most of.
var integers = sync.OnceValue(func() (list [][]byte) {
	for _, s := range samples() {
		i, err := decoder.Decode(s)
		if err == nil && slices.Contains([]string{"I86", "I186", "I386", "I486REAL", "LONGMODE", "CMOV"}, i.Extension()) {
			list = append(list, s)
		}
	}
	return list
})

// instruction returns a random instruction of a row: other operands, prefixes and immediates.
func instruction(r *rand.Rand) []byte {
	for {
		list := samples()
		if r.IntN(2) == 0 {
			list = integers()
		}
		b := slices.Clone(list[r.IntN(len(list))])
		i, err := decoder.Decode(b)
		if err != nil {
			continue
		}
		if i.HasModRM {
			m := &b[i.ModRMOff]
			switch r.IntN(3) {
			case 0:
				*m = *m&^7 | byte(r.IntN(8)) // another operand
			case 1:
				*m = *m&^0xc7 | byte(r.IntN(256))&0xc7
			}
			if r.IntN(2) == 0 {
				*m = *m&^0x38 | byte(r.IntN(8))<<3
			}
		}
		for n := int(i.OpcodeOff+i.OpcodeLen) + 1; n < len(b); n++ {
			b[n] = byte(r.IntN(256))
			if r.IntN(3) == 0 {
				b[n] = 0
			}
		}
		// A displacement of 32 bits is small, so that it stays in the data.
		if j, err := decoder.Decode(b); err == nil && j.DispLen == 4 {
			binary.LittleEndian.PutUint32(b[j.DispOff:], uint32(r.IntN(64)-32))
			if j.RIPRelative {
				binary.LittleEndian.PutUint32(b[j.DispOff:], uint32(dataBase-codeBase-testAt)+uint32(r.IntN(pageSize)))
			}
		}
		for _, p := range []struct {
			b    byte
			odds int
		}{{0x67, 40}, {0x64, 60}, {0x65, 60}, {0x66, 30}, {0xf3, 40}, {0xf2, 60}, {0xf0, 40}} {
			if i.VexLen == 0 && r.IntN(p.odds) == 0 {
				b = append([]byte{p.b}, b...)
			}
		}
		i, err = decoder.Decode(b)
		if err != nil {
			continue
		}
		if i.VexLen == 0 && r.IntN(2) == 0 { // REX
			b = slices.Insert(b, int(i.OpcodeOff), 0x40|byte(r.IntN(16)))
			if i.REX != 0 {
				b = slices.Delete(b, int(i.OpcodeOff)-1, int(i.OpcodeOff))
			}
			if i, err = decoder.Decode(b); err != nil {
				continue
			}
		}
		if i.HasTarget { // to an instruction: the next, the end, itself
			to := []int64{0, 0x7f, -int64(i.Length)}[r.IntN(3)]
			for n := range i.ImmLen {
				b[i.ImmOff+n] = byte(to >> (8 * n))
			}
		}
		if ok, err := interp.Executes(model(), b[:i.Length]); err == nil && ok {
			if i, err = decoder.Decode(b); err == nil && knownDifference(&i) == nil {
				return b[:i.Length]
			}
		}
	}
}

func word(r *rand.Rand) uint64 {
	switch r.IntN(8) {
	case 0:
		return uint64(r.IntN(4))
	case 1:
		return -uint64(r.IntN(4))
	case 2:
		return 1 << r.IntN(64)
	case 3:
		return 1<<r.IntN(64) - 1
	case 4:
		return r.Uint64()
	}
	return uint64(dataBase) + pageSize + uint64(r.IntN(pageSize))
}

var dataOf = func(r *rand.Rand) []byte {
	b := make([]byte, 4*pageSize)
	for i := 0; i < len(b); i += 8 {
		w := r.Uint64()
		switch r.IntN(4) {
		case 0:
			w = word(r)
		case 1: // floats
			w = 0x3ff0000000000000 + w>>12
		}
		binary.LittleEndian.PutUint64(b[i:], w)
	}
	return b
}

func newInput(r *rand.Rand, data []byte) *input {
	in := &input{data: data}
	for range 1 + r.IntN(4) {
		if b := instruction(r); len(in.code)+len(b) < testSize-16 {
			in.code = append(in.code, b...)
			if i, _ := decoder.Decode(b); bitOperation(&i) { // it leaves flags undefined
				break
			}
		}
	}
	for n := range 16 {
		*in.regs.Reg(n) = word(r)
	}
	in.regs.SP = uint64(dataBase) + 2*pageSize + uint64(r.IntN(256))*8
	in.regs.Flags = 0x202 | r.Uint64()&0x8d5
	if r.IntN(8) == 0 {
		in.regs.Flags |= x86.FlagDF
	}
	if r.IntN(2) == 0 {
		in.regs.CX = uint64(r.IntN(70)) // counts
	}
	return in
}

// names are the instructions of some code.
func names(code []byte) (list []string) {
	for len(code) > 0 {
		i, err := decoder.Decode(code)
		if err != nil {
			return append(list, "(bad)")
		}
		list = append(list, i.Mnemonic())
		code = code[i.Length:]
	}
	return list
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}
