package kimage

import (
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"kprobelab/x86"
)

// member is a member of a structure, at a place in bytes.
func testMember(name string, at int, t btf.Type) btf.Member {
	return btf.Member{Name: name, Type: t, Offset: btf.Bits(8 * at)}
}

// moduleBTF describes the modules of a kernel of before 6.4, or of a later one.
func moduleBTF(t *testing.T, later bool) []byte {
	word := &btf.Int{Name: "unsigned long", Size: 8}
	number := &btf.Int{Name: "unsigned int", Size: 4}
	layout := &btf.Struct{Name: "module_layout", Size: 24, Members: []btf.Member{testMember("base", 0, word), testMember("size", 8, number), testMember("text_size", 12, number)}}
	memory := &btf.Struct{Name: "module_memory", Size: 16, Members: []btf.Member{testMember("base", 0, word), testMember("size", 8, number)}}
	members := []btf.Member{
		testMember("state", 0, number), testMember("list", 8, word), testMember("name", 24, word), testMember("kallsyms", 80, word),
		testMember("bug_table", 88, word), testMember("num_bugs", 96, number),
	}
	if later {
		members = append(members, testMember("mem", 104, &btf.Array{Index: number, Type: memory, Nelems: 7}))
	} else {
		members = append(members, testMember("core_layout", 104, layout), testMember("init_layout", 128, layout))
	}
	b, err := btf.NewBuilder([]btf.Type{
		&btf.Struct{Name: "module", Size: 256, Members: members},
		&btf.Struct{Name: "bug_entry", Size: 12, Members: []btf.Member{testMember("bug_addr_disp", 0, number)}},
		&btf.Struct{Name: "mod_kallsyms", Size: 32, Members: []btf.Member{
			testMember("symtab", 0, word), testMember("num_symtab", 8, number), testMember("strtab", 16, word), testMember("typetab", 24, word),
		}},
	}, nil)
	require.NoError(t, err)
	raw, err := b.Marshal(nil, btf.KernelMarshalOptions())
	require.NoError(t, err)
	return raw
}

// Where the test's module is: its text in a page of its own, then its data.
const (
	moduleText = dataStart + 0x10000
	moduleData = dataStart + 0x11000
	moduleAt   = moduleData + 0x800 // struct module
)

// withModule is a machine with a module that has two functions and a BUG.
func withModule(t *testing.T, later bool) *testMachine {
	m := newTestMachine()
	raw := moduleBTF(t, later)
	const types = dataStart + 0x4000
	copy(m.at(types), raw)
	m.symbol("__start_BTF", types)
	m.symbol("__stop_BTF", types+x86.Addr(len(raw)))
	const modules = dataStart + 0x100
	m.symbol("modules", modules)
	m.word(modules, moduleAt+8, moduleAt+8)
	m.word(moduleAt+8, modules, modules)
	copy(m.at(moduleAt+24), "demo\x00")
	const bug = moduleData + 0x400
	m.word(moduleAt+80, moduleData+0x100, bug, 1)
	le.PutUint32(m.at(bug), uint32(x86.Addr(moduleText+0x20).Sub(bug)))
	if later {
		m.word(moduleAt+104, moduleText, 0x1000)
		m.word(moduleAt+104+16, moduleData, 0x1000)
	} else {
		m.word(moduleAt+104, moduleText, 0x2000|0x1000<<32)
	}
	const symtab, strtab, letters = moduleData + 0x200, moduleData + 0x300, moduleData + 0x380
	m.word(moduleData+0x100, symtab, 5, strtab, letters)
	copy(m.at(strtab), "\x00first\x00second\x00table\x00missing\x00")
	copy(m.at(letters), "?ttdU")
	for i, s := range []struct {
		name  uint32
		info  byte
		shndx uint16
		value x86.Addr
	}{{}, {1, 0x12, 1, moduleText}, {7, 2, 1, moduleText + 0x20}, {14, 1, 2, moduleData}, {20, 0x10, 0, 0}} {
		e := m.at(symtab + x86.Addr(symSize*i))
		le.PutUint32(e, s.name)
		e[4] = s.info
		le.PutUint16(e[6:], s.shndx)
		le.PutUint64(e[8:], uint64(s.value))
	}
	copy(m.at(moduleText+0x20), []byte{0x0f, 0x0b})
	return m
}

func TestDumpModules(t *testing.T) {
	for name, later := range map[string]bool{"to 6.3": false, "from 6.4 on": true} {
		t.Run(name, func(t *testing.T) {
			img := withModule(t, later).open(t, nil)
			require.Equal(t, []string{"demo"}, img.Modules(), img.Facts())
			require.Equal(t, []Symbol{{Name: "first", Addr: moduleText, Size: 0x20, Type: 'T', Module: "demo"}}, img.Lookup("demo:first"))
			second, ok := img.SymbolAt(moduleText + 0x21)
			require.True(t, ok)
			require.Equal(t, "second", second.Name)
			require.EqualValues(t, 't', second.Type)
			require.Empty(t, img.Lookup("demo:missing"))
			require.True(t, img.InText(moduleText+0x20))
			require.False(t, img.InText(moduleData))
			require.True(t, img.BugEntry(moduleText+0x20))
			text, ok := img.ModuleText("demo")
			require.True(t, ok)
			require.Equal(t, x86.Range{Start: moduleText, End: moduleData}, text.Text)
			require.Contains(t, img.Fact("modules").Evidence, "demo")
		})
	}
}

// A module that makes no sense is left out, with the reason.
func TestDumpOddModules(t *testing.T) {
	for want, damage := range map[string]func(m *testMachine){
		"its memory at":          func(m *testMachine) { m.word(moduleAt+104, moduleText, 0x7fffffff) },
		"a module without a nam": func(m *testMachine) { m.word(moduleAt+24, 0) },
		"has no end":             func(m *testMachine) { m.word(moduleAt+8, moduleAt+8) },
	} {
		m := withModule(t, true)
		damage(m)
		img := m.open(t, nil)
		require.Contains(t, img.Fact("modules left out").Evidence, want)
	}
	m := withModule(t, true)
	m.word(moduleAt, moduleUnformed)
	require.Empty(t, m.open(t, nil).Modules())
}
