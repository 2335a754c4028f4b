package kimage

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage/vmcore"
	"kprobelab/x86"
)

// Addresses of a test's machine: its page tables, and the two large pages of its
// kernel, code and read-only data in the first, other data in the second.
const (
	testRoot   = 0x1000
	physText   = 2 << 20
	physData   = 4 << 20
	testMemory = 6 << 20
	dataStart  = testBase + largePage
)

// testMachine is a booted kernel: testKernel's, with the tables and lists that only a
// running kernel has.
type testMachine struct {
	mem  []byte
	syms []Symbol
	cpu  vmcore.CPU
	info string
}

func newTestMachine() *testMachine {
	m := &testMachine{mem: make([]byte, testMemory), cpu: vmcore.CPU{Control: &vmcore.Control{CR3: testRoot}}}
	entry := func(at int, v uint64) { le.PutUint64(m.mem[at:], v) }
	const present, write, large, noExec = 1, 2, 1 << 7, 1 << 63
	entry(testRoot+8*511, 0x2000|present|write)
	entry(0x2000+8*510, 0x3000|present|write)
	entry(0x3000+8*8, physText|present|large)
	entry(0x3000+8*9, physData|present|write|large|noExec)
	copy(m.at(testBase), bytes.Repeat([]byte{0x90}, 0x100))
	copy(m.at(testBase+0x1000), testBanner)
	m.syms = testKernelSymbols()
	return m
}

// at is the memory at a virtual address.
func (m *testMachine) at(a x86.Addr) []byte { return m.mem[physText+a.Sub(testBase):] }

func (m *testMachine) word(a x86.Addr, words ...x86.Addr) {
	for i, w := range words {
		le.PutUint64(m.at(a+x86.Addr(8*i)), uint64(w))
	}
}

// symbol adds a symbol of data.
func (m *testMachine) symbol(name string, at x86.Addr) {
	m.syms = append(m.syms, Symbol{Name: name, Type: 'd', Addr: at})
	slices.SortStableFunc(m.syms, func(a, b Symbol) int { return cmp.Compare(a.Addr, b.Addr) })
}

// dump returns the machine's dump.
func (m *testMachine) dump(t testing.TB, l kallsymsLayout) []byte {
	copy(m.at(testTables), l.build(m.syms))
	img := &vmcore.Image{CPUs: []vmcore.CPU{m.cpu}, VMCoreInfo: []byte(m.info)}
	img.Memory = []vmcore.Memory{{Placed: vmcore.Placed{Range: vmcore.Range{Size: testMemory}}, Data: bytes.NewReader(m.mem)}}
	var b bytes.Buffer
	require.NoError(t, vmcore.Write(&b, img))
	return b.Bytes()
}

func (m *testMachine) open(t testing.TB, o *Options) *Image {
	img, err := FromBytes("dump", m.dump(t, kallsymsLayouts[3]), o)
	require.NoError(t, err)
	return img
}

// Each layout of the kallsyms tables is read from memory as from a file.
func TestDumpSymbols(t *testing.T) {
	for _, l := range kallsymsLayouts {
		t.Run(l.name, func(t *testing.T) {
			b := newTestMachine().dump(t, l)
			path := filepath.Join(t.TempDir(), "dump")
			require.NoError(t, os.WriteFile(path, b, 0o600))
			img, err := Open(path, nil)
			require.NoError(t, err)
			file, err := FromBytes("file", testKernel(l), &Options{NoBoot: true})
			require.NoError(t, err)
			want := slices.Clone(file.Symbols())
			require.Equal(t, want, img.Symbols())
			require.Equal(t, KindKernel, img.Kind())
			require.Equal(t, "6.1.0-test", img.Fact("release").Value)
			require.True(t, img.InText(testBase+0x10))
			require.Equal(t, 64, img.CodeAt(testBase+0x10, make([]byte, 64)))
			require.NotNil(t, img.Core())
			require.Nil(t, file.Core())
		})
	}
}

// Memory that boot frees is no part of the image, and entries of tables about it are no error.
func TestDumpFreed(t *testing.T) {
	m := newTestMachine()
	m.symbol("__init_begin", dataStart+0x1000)
	m.symbol("__init_end", dataStart+0x3000)
	m.symbol("__start___ex_table", dataStart+0x100)
	m.symbol("__stop___ex_table", dataStart+0x100+36)
	entry := func(i int, to x86.Addr) {
		at := dataStart + 0x100 + x86.Addr(12*i)
		le.PutUint32(m.at(at), uint32(to.Sub(at)))
	}
	entry(0, testBase+0x20)
	entry(1, dataStart+0x2000) // of freed code
	entry(2, dataStart+0x4000) // of nothing
	img := m.open(t, nil)
	require.Equal(t, 0, img.CodeAt(dataStart+0x1000, make([]byte, 1)))
	require.Equal(t, 1, img.CodeAt(dataStart+0xfff, make([]byte, 1)))
	require.Equal(t, 1, img.CodeAt(dataStart+0x3000, make([]byte, 1)))
	require.Len(t, img.ExceptionTable(), 1)
	require.Equal(t, map[string]int{"__ex_table": 1}, img.IgnoredEntries())
	for _, s := range img.Segments() {
		require.False(t, x86.Range{Start: s.Addr, End: s.Addr + x86.Addr(s.Size)}.Contains(dataStart+0x2000))
	}
}

// Sites of ftrace and the blacklist are in lists of the running kernel.
func TestDumpLists(t *testing.T) {
	m := newTestMachine()
	const pages, first, second, records, head, listed, other = dataStart + 0x100, dataStart + 0x200, dataStart + 0x300, dataStart + 0x400, dataStart + 0x500, dataStart + 0x600, dataStart + 0x700
	m.symbol("ftrace_pages_start", pages)
	m.word(pages, first)
	m.word(first, second, records, 2)
	m.word(second, 0, records+32, 1)
	m.word(records, testBase+0x10, 0, testBase+0x40, 0, testBase+0x50, 0)
	m.symbol("kprobe_blacklist", head)
	m.word(head, listed, other)
	m.word(listed, other, head, testBase+0x60, testBase+0x100)
	m.word(other, head, listed, testBase+0x40, testBase+0x50)
	img := m.open(t, nil)
	require.Equal(t, []Site{{testBase + 0x10, 5}, {testBase + 0x40, 5}, {testBase + 0x50, 5}}, img.Sites(SiteFtrace))
	require.Equal(t, []BlacklistEntry{
		{Range: x86.Range{Start: testBase + 0x60, End: testBase + 0x100}, Symbol: "dup"},
		{Range: x86.Range{Start: testBase + 0x40, End: testBase + 0x50}, Symbol: "__se_sys_read"},
	}, img.Blacklist())
	_, ok := img.Blacklisted(testBase + 0x45)
	require.True(t, ok)
}

// A list that does not end at its beginning is not used.
func TestDumpBrokenList(t *testing.T) {
	for name, next := range map[string]x86.Addr{"is broken": 0, "has no end": dataStart + 0x200} {
		m := newTestMachine()
		m.symbol("kprobe_blacklist", dataStart+0x100)
		m.word(dataStart+0x100, dataStart+0x200)
		m.word(dataStart+0x200, next)
		f := m.open(t, nil).Fact("kprobes blacklist")
		require.Equal(t, "not known", f.Value)
		require.Contains(t, f.Evidence, name)
	}
}

// A crashed kernel's dump has VMCOREINFO alone, and a CPU in user mode under page table
// isolation the user's half of the tables.
func TestDumpPageTables(t *testing.T) {
	crashed := newTestMachine()
	crashed.cpu.Control = nil
	crashed.info = "OSRELEASE=6.1.0-test\nSYMBOL(swapper_pg_dir)=ffffffff81001000\nNUMBER(phys_base)=-16777216\n"
	img := crashed.open(t, nil)
	require.Len(t, img.Symbols(), len(crashed.syms))
	require.Equal(t, "not known", img.Fact("control registers").Value)
	_, err := img.Processors()
	require.EqualError(t, err, "the dump notes no control registers of CPU 0, and its memory does not tell them: no type information about tlb_state.cr4")

	isolated := newTestMachine()
	copy(isolated.mem[0x8000:0x9000], isolated.mem[testRoot:])
	clear(isolated.mem[testRoot:0x2000])
	isolated.cpu.Control.CR3 = 0x9000
	require.Len(t, isolated.open(t, nil).Symbols(), len(isolated.syms))

	lost := newTestMachine()
	lost.cpu.Control = nil
	_, err = FromBytes("dump", lost.dump(t, kallsymsLayouts[3]), nil)
	require.ErrorIs(t, err, ErrFormat)
	require.ErrorContains(t, err, "nothing in the dump says where the kernel's page tables are")
}

func TestDumpRefused(t *testing.T) {
	m := newTestMachine()
	for want, o := range map[string]Options{
		"live text goes with an image":            {LiveText: "x"},
		"a package of modules goes with an image": {Package: "x"},
		"a processor goes with an image":          {CPU: "qemu64"},
		"a map of symbols goes with an image":     {SystemMap: "x"},
	} {
		_, err := FromBytes("dump", m.dump(t, kallsymsLayouts[3]), &o)
		require.ErrorIs(t, err, ErrForImage)
		require.NotErrorIs(t, err, ErrFormat, "nothing is wrong with the file")
		require.ErrorContains(t, err, want)
	}
	clear(m.at(testTables)[:0x4000])
	m.syms = nil
	_, err := FromBytes("dump", m.dump(t, kallsymsLayouts[3]), nil)
	require.ErrorContains(t, err, "there are no kallsyms tables")
}

// No memory of a kernel makes the reader panic, or go on for ever.
func FuzzDump(f *testing.F) {
	m := newTestMachine()
	m.symbol("ftrace_pages_start", dataStart+0x100)
	m.symbol("kprobe_blacklist", dataStart+0x500)
	m.word(dataStart+0x100, dataStart+0x200)
	m.word(dataStart+0x500, dataStart+0x500)
	whole := m.dump(f, kallsymsLayouts[3])
	f.Add(uint32(0x3000), []byte{1, 2, 3})
	f.Add(uint32(physData), []byte{1, 2, 3})
	f.Add(uint32(physText+0x1100), []byte{0xff, 0xff})
	f.Fuzz(func(t *testing.T, at uint32, b []byte) {
		damaged := bytes.Clone(whole)
		copy(damaged[int(at)%len(damaged):], b)
		if _, err := FromBytes("dump", damaged, nil); err != nil {
			require.NotContains(t, err.Error(), "\n")
		}
	})
}
