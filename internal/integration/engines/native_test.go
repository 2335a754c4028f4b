//go:build unicorn && cgo && linux && amd64

package engines

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/interp"
)

// vectorExtensions lists the instruction set extensions that TestVectorsAsTheProcessor tests.
var vectorExtensions = []string{"SSE", "SSE2", "SSE3", "SSSE3", "SSE4", "SSE42"}

// record is an instruction with the registers before it, or after (testdata/native.c).
type record struct {
	Code              [16]byte
	XMM               [4][16]byte
	AX, CX, DX, BX, F uint64
}

// onProcessor executes instructions on the processor that there is.
func onProcessor(t testing.TB, list []record) []record {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc on PATH: no program that executes instructions on this processor")
	}
	flags, err := os.ReadFile("/proc/cpuinfo")
	if err != nil || !bytes.Contains(flags, []byte("sse4_2")) {
		t.Skip("this processor has no SSE4.2")
	}
	bin := filepath.Join(t.TempDir(), "native")
	out, err := exec.Command(gcc, "-O1", "-o", bin, "testdata/native.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	var in bytes.Buffer
	require.NoError(t, binary.Write(&in, binary.LittleEndian, list))
	cmd := exec.Command(bin)
	cmd.Stdin = &in
	raw, err := cmd.Output()
	require.NoError(t, err)
	after := make([]record, len(list))
	require.NoError(t, binary.Read(bytes.NewReader(raw), binary.LittleEndian, after))
	return after
}

// vectorInstructions are the instructions of the extensions that have no operand in memory, with
// xmm1 or ecx and xmm2 or edx as operands; with REX.W too.
func vectorInstructions(t testing.TB) (list [][]byte) {
	seen := map[string]bool{}
	for _, e := range []decoder.Encoding{decoder.Enc0F, decoder.Enc0F38, decoder.Enc0F3A} {
		for _, b := range decoder.Samples(e, 6) {
			i, err := decoder.Decode(b)
			if err != nil || !slices.Contains(vectorExtensions, i.Extension()) || !i.HasModRM || i.VexLen > 0 {
				continue
			}
			for _, prefix := range []string{"", "\x66", "\xf2", "\xf3"} {
				for _, rex := range []string{"", "\x48"} {
					code := slices.Concat([]byte(prefix), []byte(rex), i.Bytes()[i.OpcodeOff:i.ModRMOff], []byte{0xca}, make([]byte, 2))
					if i.Encoding == decoder.Enc0F && i.Opcode >= 0x71 && i.Opcode <= 0x73 {
						code[len(code)-3] = 0xc2 | i.ModRM&0x38
					}
					if e != decoder.Enc0F {
						code = slices.Concat([]byte(prefix), []byte(rex), []byte{0x0f, map[decoder.Encoding]byte{decoder.Enc0F38: 0x38, decoder.Enc0F3A: 0x3a}[e], i.Opcode, 0xca, 0})
					}
					j, err := decoder.Decode(code)
					if err != nil || !slices.Contains(vectorExtensions, j.Extension()) || j.Mnemonic() == "maskmovdqu" || approximate(&j) || seen[string(j.Bytes())] {
						continue
					}
					if ok, err := interp.Executes(model(), j.Bytes()); err != nil || !ok || knownDifference(&j) != nil {
						continue
					}
					seen[string(j.Bytes())] = true
					list = append(list, slices.Clone(j.Bytes()))
				}
			}
		}
	}
	return list
}

// vectorOf draws a register: text of few letters with zeros, limits of integers, floats, anything.
func vectorOf(r *rand.Rand, kind int) (v [16]byte) {
	for i := range v {
		v[i] = byte(r.Uint32())
	}
	switch kind {
	case 0: // text
		for i := range v {
			v[i] = "abc\x00"[r.IntN(4)]
		}
		if r.IntN(2) == 0 {
			for i := range v {
				v[i] = "ab"[r.IntN(2)]
			}
		}
	case 1: // words
		for i := 0; i < 16; i += 2 {
			binary.LittleEndian.PutUint16(v[i:], []uint16{0, 1, 0x7fff, 0x8000, 0xffff, 0x8001, 0xff80, 0x0080}[r.IntN(8)])
		}
	case 2: // floats of 32 bits
		for i := 0; i < 16; i += 4 {
			binary.LittleEndian.PutUint32(v[i:], 0x3f000000^r.Uint32()>>uint(r.IntN(3)*4)&0xc7ffffff)
		}
	case 3:
		for i := 0; i < 16; i += 8 {
			binary.LittleEndian.PutUint64(v[i:], 0x3fe0000000000000^r.Uint64()>>uint(r.IntN(2)*4)&0xc07fffffffffffff)
		}
	}
	return v
}

func drawRecord(r *rand.Rand, code []byte) (x record) {
	kind := r.IntN(5)
	for i := range x.XMM {
		x.XMM[i] = vectorOf(r, kind)
	}
	if r.IntN(4) == 0 { // one that contains the other
		n := r.IntN(16)
		copy(x.XMM[2][n:], x.XMM[1][:])
	}
	for _, w := range []*uint64{&x.AX, &x.CX, &x.DX, &x.BX} {
		*w = r.Uint64()
		if r.IntN(2) == 0 {
			*w = uint64(int64(r.IntN(44) - 22))
		}
	}
	x.F = 0x202 | r.Uint64()&0x8d5
	for i := range x.Code {
		x.Code[i] = 0x90
	}
	copy(x.Code[:], code)
	if i, err := decoder.Decode(code); err == nil && i.ImmLen > 0 {
		x.Code[i.ImmOff] = byte(r.Uint32())
		if r.IntN(2) == 0 {
			x.Code[i.ImmOff] &= 0x1f
		}
	}
	return x
}

// onEngine is a record after its instruction on an engine.
func (x record) onEngine(t testing.TB, r *runner) (record, string) {
	in := &input{code: x.Code[:], data: make([]byte, 4*pageSize)}
	for i, v := range x.XMM {
		copy(in.data[3*pageSize+16*i:], v[:])
	}
	in.regs.AX, in.regs.CX, in.regs.DX, in.regs.BX, in.regs.Flags = x.AX, x.CX, x.DX, x.BX, x.F
	in.regs.SP = uint64(dataBase) + 2*pageSize
	out := r.run(t, in)
	for i := range x.XMM {
		copy(x.XMM[i][:], out.data[3*pageSize+0x100+16*i:])
	}
	x.AX, x.CX, x.DX, x.BX, x.F = out.regs.AX, out.regs.CX, out.regs.DX, out.regs.BX, out.regs.Flags
	return x, out.event + out.err
}

func (x record) String() string {
	const arithmetic = 0x8d5
	return fmt.Sprintf("%x rax=%x rcx=%x rdx=%x rbx=%x flags=%x", x.XMM, x.AX, x.CX, x.DX, x.BX, x.F&arithmetic)
}

// approximate are instructions whose results each kind of processor makes its own way.
var approximate = named("rcpps", "rcpss", "rsqrtps", "rsqrtss")

// dots choose among NaNs by the processor's maker.
var dots = named("dpps", "dppd")

// Instructions of SSE to SSE4.2 on both engines end as on this processor.
func TestVectorsAsTheProcessor(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	draws := runs(t, 8000) / 100
	var list []record
	for _, code := range vectorInstructions(t) {
		n := draws
		if i, err := decoder.Decode(code); err == nil && i.Encoding == decoder.Enc0F3A && i.Opcode&0xf0 == 0x60 {
			n *= 10 // of modes and lengths
		}
		for range n {
			list = append(list, drawRecord(r, code))
		}
	}
	after := onProcessor(t, list)
	p := newPair(t)
	defer p.close()
	failed := map[string]int{}
	info, err := os.ReadFile("/proc/cpuinfo")
	require.NoError(t, err)
	intel := bytes.Contains(info, []byte("GenuineIntel")) // as the model of the engines
	for n, x := range list {
		i, err := decoder.Decode(x.Code[:])
		require.NoError(t, err)
		for name, run := range map[string]*runner{"interp": p.g, "unicorn": p.u} {
			if name == "unicorn" && knownDifference(&i) != nil {
				continue
			}
			got, event := x.onEngine(t, run)
			want := after[n]
			if name == "unicorn" || !intel && dots(&i) {
				for v := range got.XMM {
					sameNaNsIn(got.XMM[v][:], want.XMM[v][:])
				}
			}
			key := name + " " + i.Mnemonic()
			if got.String() != want.String() || event != "int3" {
				if failed[key]++; failed[key] <= 2 {
					t.Errorf("%s: % x\nfrom      %s\nprocessor %s\nengine    %s (%s)", key, i.Bytes(), x, want, got, event)
				}
			}
		}
	}
	require.Greater(t, len(list), 20*draws, "instructions are missing")
	t.Logf("%d instructions with drawn operands", len(list))
}
