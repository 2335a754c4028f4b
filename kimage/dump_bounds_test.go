package kimage

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
	kbtf "kprobelab/kimage/btf"
	"kprobelab/x86"
)

// chained is the memory of an endless kernel: the words of an object are found by their offset in
// it. An object takes 4 kB, and a word may lead to the object n after it.
type chained struct {
	words map[x86.Addr]int64
	last  x86.Addr
	reads int
}

func (c *chained) read(at x86.Addr, b []byte) error {
	c.reads++
	clear(b)
	if at < firstObject {
		return nil
	}
	base := at &^ 0xfff
	if next, ok := c.words[at-base]; ok && len(b) == 8 && (c.last == 0 || base < c.last) {
		binary.LittleEndian.PutUint64(b, uint64(base.Add(next<<12)))
	}
	return nil
}

const firstObject = 0xffff888000000000

// inMemory is a dump whose memory read reads.
func inMemory(img *Image, read func(at x86.Addr, b []byte) error) *dump {
	return &dump{img: img, Kernel: *img.inMemory(read)}
}

// A list of a dump, its tables and its tree have no more elements than are read.
func TestDumpsWhoseListsDoNotEnd(t *testing.T) {
	t.Run("DumpList", func(t *testing.T) {
		for n, want := range map[int]string{bounded.DumpList - 1: "is broken", bounded.DumpList + 100: "has no end"} {
			memory := &chained{words: map[x86.Addr]int64{0: 1}, last: firstObject + x86.Addr(n)<<12}
			k := (&Image{}).inMemory(memory.read)
			visited := 0
			err := k.List(firstObject, 0, func(x86.Addr) bool { visited++; return true })
			require.ErrorContains(t, err, want)
			require.Equal(t, min(n, bounded.DumpList), visited)
		}
	})
	t.Run("DumpRead", func(t *testing.T) {
		k := (&Image{}).inMemory((&chained{}).read)
		require.Len(t, k.Read(firstObject, bounded.DumpRead), bounded.DumpRead)
		require.Nil(t, k.Read(firstObject, bounded.DumpRead+1))
		require.Nil(t, k.Read(firstObject, -1))
	})
	word := &btf.Int{Name: "unsigned long", Size: 8}
	number := &btf.Int{Name: "unsigned int", Size: 4}
	of := func(t *testing.T, list ...btf.Type) *kbtf.Types {
		b, err := btf.NewBuilder(list, nil)
		require.NoError(t, err)
		raw, err := b.Marshal(nil, btf.KernelMarshalOptions())
		require.NoError(t, err)
		types, err := kbtf.New(raw, nil)
		require.NoError(t, err)
		return types
	}
	symbols := func(t *testing.T, types *kbtf.Types, list ...Symbol) *Image {
		m := newTestMachine()
		for _, s := range list {
			m.symbol(s.Name, s.Addr)
		}
		img := m.open(t, nil)
		img.tables.btf.once.Do(func() {})
		img.tables.btf.types = types
		return img
	}
	t.Run("DumpTimers", func(t *testing.T) {
		node := &btf.Struct{Name: "rb_node", Size: 24, Members: []btf.Member{testMember("rb_right", 8, word), testMember("rb_left", 16, word)}}
		root := &btf.Struct{Name: "rb_root", Size: 8, Members: []btf.Member{testMember("rb_node", 0, &btf.Pointer{Target: node})}}
		cached := &btf.Struct{Name: "rb_root_cached", Size: 8, Members: []btf.Member{testMember("rb_root", 0, root)}}
		queue := &btf.Struct{Name: "timerqueue_head", Size: 8, Members: []btf.Member{testMember("rb_root", 0, cached)}}
		queued := &btf.Struct{Name: "timerqueue_node", Size: 32, Members: []btf.Member{testMember("node", 0, node), testMember("expires", 24, word)}}
		clock := &btf.Struct{Name: "hrtimer_clock_base", Size: 4096, Members: []btf.Member{testMember("active", 0, queue)}}
		types := of(t, &btf.Struct{Name: "hrtimer_cpu_base", Size: 4096, Members: []btf.Member{testMember("clock_base", 0, &btf.Array{Index: number, Type: clock, Nelems: 1})}},
			&btf.Struct{Name: "hrtimer", Size: 64, Members: []btf.Member{testMember("node", 0, queued), testMember("function", 40, word)}}, node)
		img := symbols(t, types, Symbol{Name: "hrtimer_bases", Addr: dataStart + 0x100})
		at, _ := img.symbolAddr("hrtimer_bases")
		for n, want := range map[int]int{10: 10, bounded.DumpTimers: bounded.DumpTimers, bounded.DumpTimers + 100: bounded.DumpTimers} {
			// Each timer has another one on its right.
			memory := &chained{words: map[x86.Addr]int64{0: 1, 8: 1}, last: firstObject + x86.Addr(n)<<12}
			list, err := img.TimersIn(memory.read, []x86.Addr{firstObject - at})
			require.NoError(t, err)
			require.Len(t, list, want, n)
		}
	})
	t.Run("DumpRecords", func(t *testing.T) {
		// A page of records, and one that is followed by itself; none of the records is in the text.
		for name, c := range map[string]struct {
			index uint32
			next  x86.Addr
			want  int
		}{
			"fits":     {bounded.DumpRecords - 1, 0, bounded.DumpRecords - 1},
			"as_many":  {bounded.DumpRecords, 0, bounded.DumpRecords},
			"one_more": {bounded.DumpRecords + 1, 0, bounded.DumpRecords},
			"most":     {1<<32 - 1, 0, bounded.DumpRecords},
			"a_ring":   {1<<32 - 1, firstObject, bounded.DumpList - bounded.DumpList/(bounded.DumpRecords+1)},
			"of_none":  {0, firstObject, 0},
		} {
			t.Run(name, func(t *testing.T) {
				img := newTestMachine().open(t, nil)
				d := inMemory(img, func(at x86.Addr, b []byte) error {
					clear(b)
					switch at {
					case firstObject - 0x1000:
						binary.LittleEndian.PutUint64(b, firstObject)
					case firstObject:
						binary.LittleEndian.PutUint64(b, uint64(c.next))
					case firstObject + 8:
						binary.LittleEndian.PutUint64(b, firstObject+0x2000)
					case firstObject + 16:
						binary.LittleEndian.PutUint32(b, c.index)
					case firstObject + 0x2000:
						for i := 0; i < len(b); i += 16 {
							b[i] = 1
						}
					}
					return nil
				})
				require.NoError(t, d.ftraceSites(firstObject-0x1000))
				require.Equal(t, c.want, img.IgnoredEntries()["ftrace_pages"])
			})
		}
	})
}

// A module of a dump takes no more than its bounds, and all of them together no more than theirs.
func TestDumpsWhoseModulesAskForMuch(t *testing.T) {
	one := func(change func(m *testMachine)) *Image {
		m := withModule(t, true)
		change(m)
		return m.open(t, nil)
	}
	t.Run("ModuleMemory", func(t *testing.T) {
		// Where nothing is mapped there is no memory to take.
		img := one(func(m *testMachine) { m.word(moduleAt+104+32, 0xffffffffa0000000, bounded.ModuleMemory) })
		require.Equal(t, []string{"demo"}, img.Modules(), img.Facts())
		img = one(func(m *testMachine) { m.word(moduleAt+104+32, 0xffffffffa0000000, bounded.ModuleMemory+1) })
		require.Empty(t, img.Modules())
		require.Contains(t, img.Fact("modules left out").Evidence, "its memory at 0xffffffffa0000000 has 0x8000001 bytes")
	})
	t.Run("Image", func(t *testing.T) {
		img := one(func(*testMachine) {})
		m := &loadedModule{d: inMemory(img, img.ReadKernel)}
		m.d.space, m.d.used.memory = img.space, bounded.Image-0x1000
		require.NoError(t, m.layOut(x86.Range{Start: moduleText, End: moduleText + 0x1000}))
		require.ErrorContains(t, m.layOut(x86.Range{Start: moduleText, End: moduleText + 0x1000}), "the modules have more than 1024 MiB of memory")
	})
	t.Run("ModuleSymbols", func(t *testing.T) {
		const kallsyms, symtab, strings = firstObject, firstObject + 0x10000000, firstObject + 0x20000000
		for n, want := range map[uint32]int{10: 10, bounded.ModuleSymbols: bounded.ModuleSymbols, bounded.ModuleSymbols + 1: bounded.ModuleSymbols, 1<<32 - 1: bounded.ModuleSymbols} {
			img := one(func(*testMachine) {})
			d := inMemory(img, nil)
			d.Memory = func(at x86.Addr, b []byte) error {
				clear(b)
				switch at {
				case kallsyms - 0x1000 + 80:
					binary.LittleEndian.PutUint64(b, kallsyms)
				case kallsyms:
					binary.LittleEndian.PutUint64(b, symtab)
				case kallsyms + 8:
					binary.LittleEndian.PutUint32(b, n)
				case kallsyms + 16:
					binary.LittleEndian.PutUint64(b, strings)
				case symtab:
					for i := 0; i < len(b); i += symSize {
						b[i], b[i+6] = 1, 1
					}
				}
				return nil
			}
			m := &loadedModule{d: d, at: kallsyms - 0x1000, segments: []Segment{{Addr: strings, Data: []byte("\x00name\x00")}}}
			m.readSymbols()
			require.Len(t, m.area.symbols, want)
			d.used.symbols = bounded.Kallsyms - 3
			m.area.symbols = nil
			m.readSymbols()
			require.Len(t, m.area.symbols, 3)
		}
	})
	t.Run("DumpModules", func(t *testing.T) {
		// A list of modules without names, of which none is the last.
		m := withModule(t, true)
		img := m.open(t, nil)
		img.facts = nil
		head, ok := img.symbolAddr("modules")
		require.True(t, ok)
		memory := &chained{words: map[x86.Addr]int64{0: 1, 8: 1}}
		d := inMemory(img, nil)
		d.Memory = func(at x86.Addr, b []byte) error {
			if at == head {
				binary.LittleEndian.PutUint64(b, firstObject+8)
				return nil
			}
			return memory.read(at, b)
		}
		require.NoError(t, d.loadModules())
		require.Equal(t, fmt.Sprint(bounded.DumpModules), img.Fact("modules left out").Value)
	})
	t.Run("types", func(t *testing.T) {
		word := &btf.Int{Name: "unsigned long", Size: 8}
		number := &btf.Int{Name: "unsigned int", Size: 4}
		b, err := btf.NewBuilder([]btf.Type{
			&btf.Struct{Name: "btf_module", Size: 64, Members: []btf.Member{testMember("list", 0, word), testMember("module", 16, word), testMember("btf", 24, word)}},
			&btf.Struct{Name: "btf", Size: 64, Members: []btf.Member{testMember("data", 0, word), testMember("data_size", 8, number)}},
		}, nil)
		require.NoError(t, err)
		raw, err := b.Marshal(nil, btf.KernelMarshalOptions())
		require.NoError(t, err)
		types, err := kbtf.New(raw, nil)
		require.NoError(t, err)
		m := newTestMachine()
		m.symbol("btf_modules", dataStart+0x100)
		img := m.open(t, nil)
		img.tables.btf.once.Do(func() {})
		img.tables.btf.types = types
		memory := &chained{words: map[x86.Addr]int64{0: 1, 16: 0, 24: 0}}
		read := 0
		d := inMemory(img, nil)
		d.Memory = func(at x86.Addr, b []byte) error {
			if len(b) == 4 {
				binary.LittleEndian.PutUint32(b, 1<<20)
				return nil
			}
			if len(b) == 1<<20 {
				read++
			}
			if at == dataStart+0x100 {
				at = firstObject
			}
			return memory.read(at, b)
		}
		require.Len(t, d.moduleTypes(), bounded.DumpRead>>20)
		require.Equal(t, bounded.DumpRead>>20, read)
		require.Less(t, memory.reads, 10*bounded.DumpModules)
	})
}
