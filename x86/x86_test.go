package x86

import (
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// The byte offsets are the kernel's (docs/spec 0.3).
func TestPtRegsLayout(t *testing.T) {
	want := map[string]uintptr{
		"R15": 0, "R14": 8, "R13": 16, "R12": 24, "BP": 32, "BX": 40, "R11": 48, "R10": 56, "R9": 64, "R8": 72,
		"AX": 80, "CX": 88, "DX": 96, "SI": 104, "DI": 112, "OrigAX": 120, "IP": 128, "CS": 136, "Flags": 144,
		"SP": 152, "SS": 160,
	}
	typ := reflect.TypeOf(PtRegs{})
	require.Equal(t, len(want), typ.NumField())
	for name, offset := range want {
		f, ok := typ.FieldByName(name)
		require.True(t, ok, name)
		require.Equal(t, offset, f.Offset, name)
	}
	require.EqualValues(t, PtRegsSize, unsafe.Sizeof(PtRegs{}))
}

func TestRegNumbers(t *testing.T) {
	var r PtRegs
	for i, p := range []*uint64{
		&r.AX, &r.CX, &r.DX, &r.BX, &r.SP, &r.BP, &r.SI, &r.DI,
		&r.R8, &r.R9, &r.R10, &r.R11, &r.R12, &r.R13, &r.R14, &r.R15,
	} {
		require.Same(t, p, r.Reg(i), "register %d", i)
	}
}

func TestAddr(t *testing.T) {
	a := Addr(0xffffffff81000000)
	require.Equal(t, "0xffffffff81000000", a.String())
	require.Equal(t, a, a.Add(5).Add(-5))
	require.EqualValues(t, -5, a.Sub(a.Add(5)))
	r := Range{a, a + 4}
	require.True(t, r.Contains(a+3))
	require.False(t, r.Contains(a+4), "half open")
	require.False(t, r.Overlaps(Range{a + 4, a + 8}))
	require.True(t, r.Overlaps(Range{a + 3, a + 8}))
	require.EqualValues(t, 4, r.Len())
}

func TestArg(t *testing.T) {
	r := PtRegs{DI: 10, SI: 11, DX: 12, CX: 13, R8: 14, R9: 15}
	for n := range RegArgs {
		require.EqualValues(t, 10+n, r.Arg(n))
	}
	require.Panics(t, func() { r.Arg(RegArgs) })
	require.Panics(t, func() { r.Arg(-1) })
}

// A register has one place, by every name and number.
func TestRegistersByNameAndNumber(t *testing.T) {
	var r PtRegs
	typ := reflect.TypeOf(r)
	for i := range typ.NumField() {
		name := strings.ToLower(typ.Field(i).Name)
		if name == "origax" {
			name = "orig_ax"
		}
		off, ok := RegOffset(name)
		require.True(t, ok, name)
		require.EqualValues(t, typ.Field(i).Offset, off, name)
		back, ok := RegName(int64(off))
		require.True(t, ok, name)
		require.Equal(t, name, back)
		*r.Named(name) = uint64(i) + 1
		require.EqualValues(t, i+1, r.At(off), name)
	}
	for i, p := range []*uint64{
		&r.AX, &r.DX, &r.CX, &r.BX, &r.SI, &r.DI, &r.BP, &r.SP,
		&r.R8, &r.R9, &r.R10, &r.R11, &r.R12, &r.R13, &r.R14, &r.R15, &r.IP,
	} {
		require.Same(t, p, r.Named(DWARF[i]), "register %d", i)
		n, ok := DWARFNumber(DWARF[i])
		require.True(t, ok)
		require.Equal(t, i, n)
	}
	for n, name := range Params {
		require.Equal(t, *r.Named(name), r.Arg(n), name)
	}
	for _, off := range []int64{-8, 4, PtRegsSize} {
		_, ok := RegName(off)
		require.False(t, ok, off)
	}
	_, ok := RegOffset("rax")
	require.False(t, ok)
	_, ok = DWARFNumber("flags")
	require.False(t, ok)
	require.Nil(t, r.Named("eax"))
	require.Len(t, r.Words(), typ.NumField())
}
