package kimage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage/evidence"
	"kprobelab/x86"
)

// testObject is a relocatable file: two functions, a table, bss, a common
// variable, and references among them and to the outside.
func testObject() []byte {
	text := make([]byte, 0x40)
	text[0] = 0xe8                      // call __fentry__
	text[5] = 0xe8                      // call ext
	text[10], text[11] = 0x48, 0x8d     // lea table(%rip)
	text[0x20] = 0xe9                   // jmp __x86_return_thunk
	text[0x28], text[0x29] = 0xff, 0x15 // call *callee@GOTPCREL(%rip)
	text[0x30], text[0x31] = 0x8b, 0x05 // mov common@GOTPCREL(%rip)
	symtab, strtab := testSymbols(6,
		elfSymbol{name: "f", info: 0x12, shndx: 1},
		elfSymbol{name: "callee", info: 0x12, shndx: 1, value: 0x20},
		elfSymbol{name: "table", info: 0x01, shndx: 2},
		elfSymbol{name: "zero", info: 0x11, shndx: 3},
		elfSymbol{name: "__fentry__"}, elfSymbol{name: "ext"}, elfSymbol{name: "__x86_return_thunk"},
		elfSymbol{name: "common", info: 0x11, shndx: shnCommon, value: 4, size: 4},
		elfSymbol{name: "absolute", info: 0x10, shndx: shnAbs, value: 0x1234},
	)
	return testELF(etRel,
		testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, data: text},
		testSection{name: ".rodata", typ: 1, flags: shfAlloc, data: make([]byte, 16)},
		testSection{name: ".bss", typ: shtNobits, flags: shfAlloc | shfWrite, size: 64},
		testRela(5, 1, rela{off: 1, typ: rPLT32, sym: 5, addend: -4}, rela{off: 6, typ: rPLT32, sym: 6, addend: -4},
			rela{off: 13, typ: rPC32, sym: 3, addend: -4}, rela{off: 0x21, typ: rPLT32, sym: 7, addend: -4},
			rela{off: 0x2a, typ: rGotPCRelX, sym: 2, addend: -4}, rela{off: 0x32, typ: rGotPCRelX, sym: 8, addend: -4},
			rela{off: 0x38, typ: 23, sym: 1}),
		symtab, strtab,
		testRela(5, 2, rela{off: 0, typ: r64, sym: 2, addend: 4}, rela{off: 8, typ: r32S, sym: 4}),
	)
}

func TestOpenObject(t *testing.T) {
	img := openBytes(t, testObject(), nil)
	require.Equal(t, KindObject, img.Kind())
	addr := func(name string) x86.Addr { return lookup1(t, img, name) }
	require.Equal(t, x86.Addr(objectBase), addr("f"))
	require.Equal(t, x86.Addr(objectBase+0x20), addr("callee"))
	text := img.section(".text").Data
	rel := func(at int) x86.Addr { return (objectBase + x86.Addr(at) + 4).Add(int64(int32(le.Uint32(text[at:])))) }
	require.Equal(t, []byte{0x0f, 0x1f, 0x44, 0, 0}, text[:5], "the tracer's call is a no-op")
	require.True(t, rel(6).In(externBase, objectBase), "an undefined function is where nothing is")
	require.Equal(t, evidence.Fact{Name: "undefined", Value: "ext",
		Evidence: "not in the file: " + rel(6).String() + ", where nothing is, stands for it"}, fact(t, img, "undefined"))
	require.Equal(t, addr("table"), rel(13))
	require.Equal(t, []byte{0xc3, 0xcc, 0xcc, 0xcc, 0xcc}, text[0x20:0x25], "the return thunk is a return")
	require.Equal(t, []byte{0x67, 0xe8}, text[0x28:0x2a])
	require.Equal(t, addr("callee"), rel(0x2a))
	require.Equal(t, byte(0x8d), text[0x30], "mov is lea")
	require.Equal(t, addr("common"), rel(0x32))
	ro := img.section(".rodata").Data
	require.Equal(t, uint64(addr("callee")+4), le.Uint64(ro))
	require.Equal(t, uint32(addr("zero")), le.Uint32(ro[8:]))
	s, ok := img.SymbolAt(addr("callee") + 1)
	require.True(t, ok)
	require.Equal(t, Symbol{Name: "callee", Addr: objectBase + 0x20, Size: 0x20, Type: 'T'}, s)
	require.Equal(t, x86.Addr(0x1234), addr("absolute"))
	require.True(t, img.InText(addr("f")))
	require.False(t, img.InText(addr("zero")))
	require.Equal(t, evidence.Fact{Name: "relocations left alone", Value: "1 of type 23",
		Evidence: "they need a linker (a global offset table, or thread-local storage)"}, fact(t, img, "relocations left alone"))
	var exec, write int
	for _, g := range img.Segments() {
		if g.Exec {
			exec++
		}
		if g.Write {
			write++
		}
	}
	require.Equal(t, []int{1, 2}, []int{exec, write})
}

func TestObjectDamage(t *testing.T) {
	text := testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, data: make([]byte, 16)}
	symtab, strtab := testSymbols(3, elfSymbol{name: "f", info: 0x12, shndx: 1})
	cases := []struct {
		name string
		r    rela
		want string
	}{
		{"symbol_outside", rela{typ: rPC32, sym: 9}, "a relocation names symbol 9 of 2"},
		{"place_outside", rela{off: 13, typ: rPC32, sym: 1}, "the place lies outside the section"},
		{"place_wraps", rela{off: ^uint64(1), typ: rPC32, sym: 1}, "the place lies outside the section"},
		{"too_far", rela{typ: r32, sym: 1}, "the value does not fit"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := FromBytes("o", testELF(etRel, text, symtab, strtab, testRela(2, 1, c.r)), nil)
			require.ErrorIs(t, err, ErrFormat)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestSymtabKernel: a kernel without tables of its own has its symbol table
// sorted as the kernel's build would.
func TestSymtabKernel(t *testing.T) {
	symtab, strtab := testSymbols(3,
		elfSymbol{name: "weak_alias", info: 0x22, shndx: 1, value: testBase + 8},
		elfSymbol{name: "__start_thing", info: 0x12, shndx: 1, value: testBase + 8},
		elfSymbol{name: "___three", info: 0x12, shndx: 1, value: testBase + 8},
		elfSymbol{name: "_one", info: 0x02, shndx: 1, value: testBase + 8},
		elfSymbol{name: "_stext", info: 0x10, shndx: 1, value: testBase},
		elfSymbol{name: ".L1", shndx: 1, value: testBase},
		elfSymbol{name: "_etext", info: 0x10, shndx: 1, value: testBase + 0x20},
	)
	img := openBytes(t, testELF(etExec,
		testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, addr: testBase, data: make([]byte, 0x20)}, symtab, strtab), nil)
	require.Equal(t, KindKernel, img.Kind())
	var names []string
	for _, s := range img.Symbols() {
		names = append(names, string(s.Type)+" "+s.Name)
	}
	require.Equal(t, []string{"T _stext", "t _one", "T ___three", "T __start_thing", "W weak_alias", "T _etext"}, names)
}
