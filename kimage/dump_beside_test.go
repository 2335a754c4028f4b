package kimage

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// besideObject is a module of one function and a word of data, with a section more if it
// has a name.
func besideObject(name string, more string) []byte {
	symtab, strtab := testSymbols(4,
		elfSymbol{name: name, info: 0x12, shndx: 1, size: 7},
		elfSymbol{name: name + "_word", info: 0x11, shndx: 2, size: 8},
	)
	sections := []testSection{
		{name: ".text", typ: 1, flags: shfAlloc | shfExec, data: []byte{0x48, 0x8b, 0x05, 0, 0, 0, 0, 0xc3}}, // mov word(%rip),%rax; ret
		{name: ".data", typ: 1, flags: shfAlloc | shfWrite, data: make([]byte, 8)},
		symtab, strtab,
		testRela(3, 1, rela{off: 3, typ: rPC32, sym: 2, addend: -4}),
	}
	if more != "" {
		sections = append(sections, testSection{name: more, typ: 1, flags: shfAlloc, data: make([]byte, 8)})
	}
	return testELF(etRel, sections...)
}

// Rule: modules beside a booted kernel lie where it maps nothing, one after the other, and
// their code can be probed.
func TestModulesBesideABootedKernel(t *testing.T) {
	m := newTestMachine()
	plain := m.open(t, nil)
	require.Empty(t, plain.Beside())
	img := m.open(t, &Options{Modules: []string{
		writeModule(t, "first.o", besideObject("first", ".rodata.str1.1")), writeModule(t, "second.o", besideObject("second", "")),
	}})
	require.Equal(t, []string{"first", "second"}, img.Modules())
	require.Len(t, img.Segments(), len(plain.Segments())+5)
	require.Equal(t, img.Segments()[len(plain.Segments()):], img.Beside())
	last := besideStart
	for _, s := range img.Beside() {
		require.GreaterOrEqual(t, s.Addr, last)
		require.Zero(t, s.Addr%pageSize)
		last = s.Addr.Add(int64(s.Size))
	}
	for _, name := range []string{"first", "second"} {
		f, word := img.Lookup(name), img.Lookup(name+"_word")
		require.Len(t, f, 1)
		require.Len(t, word, 1)
		require.True(t, img.InText(f[0].Addr))
		require.False(t, img.InText(word[0].Addr))
		var b [7]byte
		require.Equal(t, len(b), img.CodeAt(f[0].Addr, b[:]))
		require.Equal(t, int32(word[0].Addr.Sub(f[0].Addr.Add(7))), int32(le.Uint32(b[3:])), "it is relocated")
	}
}

// Rule: what the kernel's loader would read or run is refused.
func TestModulesThatCannotBeBesideABootedKernel(t *testing.T) {
	m := newTestMachine()
	for _, section := range []string{".data..percpu", ".init.text", "__ex_table", ".altinstructions", "__mcount_loc", ".gnu.linkonce.this_module", ".textual"} {
		path := writeModule(t, "odd.o", besideObject("odd", section))
		_, err := FromBytes("dump", m.dump(t, kallsymsLayouts[3]), &Options{Modules: []string{path}})
		require.ErrorIs(t, err, ErrFormat, section)
		require.ErrorContains(t, err, fmt.Sprintf("module odd has a section %s, which the booted kernel itself would have to load", section))
	}
}
