package decoder

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/x86"
)

// branches are the direct branches: opcode bytes, class, displacement size.
func branches() (list []struct {
	opcode []byte
	class  Class
	size   int
}) {
	add := func(class Class, size int, opcode ...byte) {
		list = append(list, struct {
			opcode []byte
			class  Class
			size   int
		}{opcode, class, size})
	}
	add(ClassCall, 4, 0xE8)
	add(ClassJmp, 4, 0xE9)
	add(ClassJmp, 1, 0xEB)
	for cc := range byte(16) {
		add(ClassJcc, 1, 0x70|cc)
		add(ClassJcc, 4, 0x0F, 0x80|cc)
	}
	for op := byte(0xE0); op <= 0xE3; op++ {
		add(ClassLoop, 1, op)
	}
	return list
}

// prefixSets are every REX, alone and after any legacy prefix but LOCK.
func prefixSets() (list [][]byte) {
	for _, legacy := range [][]byte{nil, {0x66}, {0x67}, {0xF2}, {0xF3}, {0x2E}, {0x3E}, {0x64}, {0x66, 0xF2}, {0x66, 0x67}} {
		list = append(list, legacy)
		for rex := byte(0x40); rex <= 0x4F; rex++ {
			list = append(list, append(append([]byte{}, legacy...), rex))
		}
	}
	return list
}

// TestEveryFormOfDirectBranch: class, target and where the displacement is, in
// both views, with every REX and legacy prefix.
func TestEveryFormOfDirectBranch(t *testing.T) {
	const at = x86.Addr(0xffffffff81000000)
	for _, br := range branches() {
		for _, prefixes := range prefixSets() {
			for _, rel := range []int64{0, 1, -1, 0x7F, -0x80, 0x12345678, -0x80000000} {
				if br.size == 1 && rel != int64(int8(rel)) {
					continue
				}
				b := append(append([]byte{}, prefixes...), br.opcode...)
				off := len(b)
				for n := range br.size {
					b = append(b, byte(rel>>(8*n)))
				}
				i, err := Decode(padded(b))
				name := fmt.Sprintf("% x", b)
				require.NoError(t, err, name)
				require.Equal(t, []any{len(b), br.class, true, rel, uint8(off), uint8(br.size), false},
					[]any{i.Length, i.Class, i.HasTarget, i.Rel, i.ImmOff, i.ImmLen, i.RIPRelative}, name)
				target, _ := i.Target(at)
				require.Equal(t, at.Add(int64(len(b))+rel), target, name)
				k, err := DecodeKernel(padded(b), nil)
				require.NoError(t, err, name)
				require.Equal(t, []any{len(b), off, br.size, rel, target}, []any{k.Length, k.ImmOff, k.ImmLen, k.Imm, k.Target(at)}, name)
			}
		}
	}
}

// TestEveryFormOfIndirectBranchAndReturn has no target, and memory operands
// may be RIP-relative.
func TestEveryFormOfIndirectBranchAndReturn(t *testing.T) {
	for _, tt := range []struct {
		bytes string
		class Class
		rip   int // offset of the displacement from the end of the prefixes, 0 for none
	}{
		{"c3", ClassRet, 0}, {"c2 08 00", ClassRet, 0}, {"cb", ClassFar, 0}, {"ca 08 00", ClassFar, 0}, {"cf", ClassFar, 0},
		{"ff d0", ClassIndirectCall, 0}, {"ff 10", ClassIndirectCall, 0}, {"ff 15 10 00 00 00", ClassIndirectCall, 2},
		{"ff e0", ClassIndirectJmp, 0}, {"ff 20", ClassIndirectJmp, 0}, {"ff 25 10 00 00 00", ClassIndirectJmp, 2},
		{"ff 1d 10 00 00 00", ClassFar, 2}, {"ff 2d 10 00 00 00", ClassFar, 2}, {"ff 6c 24 08", ClassFar, 0},
	} {
		for _, prefixes := range prefixSets() {
			b := append(append([]byte{}, prefixes...), unhex(t, tt.bytes)...)
			i, err := Decode(padded(b))
			name := fmt.Sprintf("% x", b)
			require.NoError(t, err, name)
			require.Equal(t, []any{len(b), tt.class, false, tt.rip != 0}, []any{i.Length, i.Class, i.HasTarget, i.RIPRelative}, name)
			if tt.rip != 0 {
				require.Equal(t, []any{uint8(len(prefixes) + tt.rip), uint8(4), int32(0x10)}, []any{i.DispOff, i.DispLen, i.Disp}, name)
			}
			k, err := DecodeKernel(padded(b), nil)
			require.NoError(t, err, name)
			require.Equal(t, []any{len(b), tt.rip != 0}, []any{k.Length, k.RIPRelative()}, name)
		}
	}
}

// TestEveryRowWithRIPRelativeOperand: every encoding that takes memory, legacy,
// VEX, XOP and EVEX, with each of its prefixes: the displacement's place in
// both views, where the kernel knows the encoding.
func TestEveryRowWithRIPRelativeOperand(t *testing.T) {
	forms, kernels := 0, 0
	for e := EncPrimary; e < numEncodings; e++ {
		rows := opcodesOf(e).rows
		for n := range rows {
			r := &rows[n]
			if r.form.flags&hasModRM == 0 || r.form.flags&registerOnly != 0 || r.mod&1 == 0 || r.rm>>5&1 == 0 {
				continue
			}
			for sel := range e.selectors() {
				for reg := range byte(8) {
					if r.sel>>sel&1 == 0 || r.reg>>reg&1 == 0 {
						continue
					}
					b := r.encode(e, sel, reg<<3|5)
					if e == Enc3DNow {
						continue // its sample has no room for a displacement
					}
					b = append(b[:len(b)-1], 0x78, 0x56, 0x34, 0x12, 1, 2, 3, 4)
					i, err := Decode(padded(b))
					if err != nil || i.Encoding != e || &opcodesOf(e).rows[i.row] != r {
						continue // another row's
					}
					off := len(b) - 8
					require.Equal(t, []any{true, uint8(off), uint8(4), int32(0x12345678)}, []any{i.RIPRelative, i.DispOff, i.DispLen, i.Disp}, "% x", b)
					forms++
					k, err := DecodeKernel(padded(b), nil)
					if err != nil || !k.HasModRM || e >= EncXop8 && e <= EncXopA {
						continue // the kernel takes XOP for pop
					}
					require.Equal(t, []any{true, off, 4, int32(0x12345678)}, []any{k.RIPRelative(), k.DispOff, k.DispLen, k.Disp}, "% x", b)
					kernels++
				}
			}
		}
	}
	t.Logf("%d forms, %d of them in the kernel's view", forms, kernels)
	require.Greater(t, forms, 10_000)
}
