package kimage

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"kprobelab/kimage/internal/opened"
	"kprobelab/kimage/internal/patch"
	"kprobelab/x86"
)

// guestImage opens the guest kernel.
func guestImage(t testing.TB, o *Options) *Image {
	t.Helper()
	img, err := FromBytes("guest.elf", guestFile(t, "guest.elf"), o)
	require.NoError(t, err)
	return img
}

// writeModule puts a file of that content and name into a new folder.
func writeModule(t testing.TB, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

// Rule: a module lies in module space, its symbols carry its name, and its
// text, init text, tables and blacklist count.
func TestModuleOfTheGuestKernel(t *testing.T) {
	img := guestImage(t, &Options{Modules: []string{writeModule(t, "demo.ko", guestFile(t, "demo.ko"))}})
	require.Equal(t, []string{"demo"}, img.Modules())
	found := img.Lookup("demo:demo_run")
	if len(found) == 0 {
		t.Fatalf("the module has no demo_run: %v", img.modules[0].byAddr)
	}
	require.Equal(t, "demo", found[0].Module)
	base := x86.Addr(img.Profile().ModuleBase)
	require.True(t, found[0].Addr.In(base, img.ModuleEnd()))
	require.True(t, img.InText(found[0].Addr))
	require.Zero(t, uint64(img.ModuleEnd())%pageSize)

	init := img.Lookup("demo:init_module")
	require.Len(t, init, 1)
	name, ok := img.InInit(init[0].Addr)
	require.True(t, ok)
	require.Equal(t, "demo", name)
	require.False(t, img.InText(init[0].Addr))

	count := map[string]int{}
	for _, e := range img.Blacklist() {
		count[e.Module]++
	}
	require.Equal(t, 1, count["demo"])
	for _, s := range img.Sites(SiteFtrace) {
		if s.Addr >= base {
			require.Equal(t, patch.Nopl[5], img.bytes(s.Addr, 5), "%s", s.Addr)
			count["ftrace"]++
		}
	}
	require.Equal(t, 8, count["ftrace"])
	for _, e := range img.ExceptionTable() {
		if e.Addr >= base {
			count["fixups"]++
			require.True(t, img.InText(e.Fixup))
		}
	}
	require.Equal(t, 1, count["fixups"])
	require.Empty(t, img.IgnoredEntries())
}

func TestModuleCompressedAndTwice(t *testing.T) {
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	path := writeModule(t, "demo.ko.zst", z.EncodeAll(guestFile(t, "demo.ko"), nil))
	img := guestImage(t, &Options{Modules: []string{path}})
	require.Equal(t, []string{"demo"}, img.Modules())

	_, err = FromBytes("guest.elf", guestFile(t, "guest.elf"), &Options{Modules: []string{path, path}})
	require.ErrorIs(t, err, ErrFormat)
	require.ErrorContains(t, err, "a module named demo is loaded already")
}

// relocCase is one relocation of 16 bytes of text to a symbol.
type relocCase struct {
	name   string
	typ    uint32
	addend int64
	symbol elfSymbol
	off    uint64
	want   func(text, sym x86.Addr) []byte
	err    string
}

func u32(v uint64) []byte { return appendUint(nil, v, 4) }

func relocCases() []relocCase {
	local := elfSymbol{name: "target", info: 0x12, shndx: 1, value: 8}
	rel := func(adj int64) func(text, sym x86.Addr) []byte {
		return func(text, sym x86.Addr) []byte { return u32(uint64(sym.Sub(text)) + uint64(adj)) }
	}
	undef := func(name string) elfSymbol { return elfSymbol{name: name, info: 0x10} }
	return []relocCase{
		{name: "abs64", typ: r64, symbol: local, want: func(_, s x86.Addr) []byte { return appendUint(nil, uint64(s)+3, 8) }, addend: 3},
		{name: "pc32", typ: rPC32, symbol: local, addend: -4, want: rel(-4)},
		{name: "plt32", typ: rPLT32, symbol: local, addend: -4, want: rel(-4)},
		{name: "pc64", typ: rPC64, symbol: local, want: func(text, s x86.Addr) []byte { return appendUint(nil, uint64(s.Sub(text)), 8) }},
		{name: "abs32s_in_module_space", typ: r32S, symbol: local, want: func(_, s x86.Addr) []byte { return u32(uint64(s)) }},
		{name: "abs32_unsigned", typ: r32, symbol: local, err: "compile with -mcmodel=kernel"},
		{name: "abs8_out_of_range", typ: r8, symbol: local, err: "does not fit"},
		{name: "pc8", typ: rPC8, symbol: local, want: func(text, s x86.Addr) []byte { return []byte{byte(s.Sub(text))} }},
		{name: "pc16", typ: rPC16, symbol: local, want: func(text, s x86.Addr) []byte { return appendUint(nil, uint64(s.Sub(text)), 2) }},
		{name: "unknown_symbol", typ: rPC32, symbol: undef("nowhere_to_be_found"), err: "unknown symbol nowhere_to_be_found"},
		{name: "weak_is_zero", typ: r64, symbol: elfSymbol{name: "nowhere", info: 0x20}, want: func(_, _ x86.Addr) []byte { return make([]byte, 8) }},
		{name: "image_symbol", typ: r64, symbol: undef("_stext"), want: func(_, _ x86.Addr) []byte { return appendUint(nil, testBase, 8) }},
		{name: "tls", typ: 23, symbol: local, err: "thread-local"},
		{name: "unsupported_type", typ: 99, symbol: local, err: "type 99"},
		{name: "outside_of_section", typ: rPC32, symbol: local, off: 14, err: "outside the section"},
		{name: "wrapping_offset", typ: r64, symbol: local, off: ^uint64(0) - 2, err: "outside the section"},
	}
}

// moduleELF is a module with one text section and a relocation in it.
func moduleELF(text []byte, s elfSymbol, relocs ...rela) []byte {
	symtab, strs := testSymbols(4, s)
	return testELF(etRel,
		testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, data: text},
		testRela(3, 1, relocs...), symtab, strs)
}

func TestModuleRelocations(t *testing.T) {
	for _, c := range relocCases() {
		t.Run(c.name, func(t *testing.T) {
			b := moduleELF(make([]byte, 16), c.symbol, rela{off: c.off, typ: c.typ, sym: 1, addend: c.addend})
			img := guestImage(t, nil)
			err := img.loadModuleBytes("plain-object.o", b)
			if c.err != "" {
				require.ErrorIs(t, err, ErrFormat)
				require.ErrorContains(t, err, c.err)
				require.NotContains(t, err.Error(), "\n")
				return
			}
			require.NoError(t, err)
			require.Equal(t, []string{"plain_object"}, img.Modules())
			text := img.modules[0].text.Start
			want := c.want(text+x86.Addr(c.off), text+8)
			require.Equal(t, want, img.bytes(text+x86.Addr(c.off), len(want)))
		})
	}
}

// Rule: what goes through the offset table and cannot name the address itself
// gets an entry of a real one.
func TestModuleOffsetTable(t *testing.T) {
	compare := append([]byte{0x48, 0x3b, 0x05, 0, 0, 0, 0}, make([]byte, 9)...) // cmp foo@GOTPCREL(%rip),%rax
	img := guestImage(t, nil)
	err := img.loadModuleBytes("pic.o", moduleELF(compare, elfSymbol{name: "_stext", info: 0x10},
		rela{off: 3, typ: rRexGotPCRelX, sym: 1, addend: -4}))
	require.NoError(t, err)
	text := img.modules[0].text.Start
	slot := opened.Rel32(text+7, img.bytes(text+3, 4))
	require.Equal(t, x86.Addr(testBase), opened.Abs64(img.bytes(slot, 8)))
	require.True(t, slot < img.ModuleEnd())
}

func TestModuleRefusals(t *testing.T) {
	text := testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, data: make([]byte, 16)}
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"no_elf":        {[]byte("hello"), "is wanted"},
		"an_executable": {testELF(etExec, text), "a module is a relocatable object"},
		"per_cpu_data": {testELF(etRel, text, testSection{name: ".data..percpu", typ: 1, flags: shfAlloc | shfWrite, data: make([]byte, 8)}),
			"per-CPU data (8 bytes), the image has no per-CPU area"},
		"huge_bss":       {testELF(etRel, text, testSection{name: ".bss", typ: shtNobits, flags: shfAlloc | shfWrite, size: 3 << 28}, testSection{name: ".bss", typ: shtNobits, flags: shfAlloc | shfWrite, size: 3 << 28}), "does not fit into module space"},
		"wrong_symbol":   {moduleELF(make([]byte, 16), elfSymbol{name: "x", info: 0x12, shndx: 1}, rela{sym: 7, typ: rPC32}), "names symbol 7 of 2"},
		"common_too_big": {moduleELF(make([]byte, 16), elfSymbol{name: "c", shndx: shnCommon, value: 8, size: 1 << 40}), "common symbol c"},
	} {
		t.Run(name, func(t *testing.T) {
			img := guestImage(t, nil)
			if name == "per_cpu_data" {
				img.percpu = nil
			}
			err := img.loadModuleBytes("bad.ko", c.b)
			require.ErrorIs(t, err, ErrFormat)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := FromBytes("guest.elf", guestFile(t, "guest.elf"), &Options{Modules: []string{"does-not-exist.ko"}})
	require.True(t, errors.Is(err, os.ErrNotExist))
}

// Rule: a later module sees an earlier one's symbols, and lies after it.
func TestModulesResolveAgainstEachOther(t *testing.T) {
	img := guestImage(t, nil)
	require.NoError(t, img.loadModuleBytes("first.o", moduleELF(make([]byte, 16), elfSymbol{name: "shared_by_first", info: 0x12, shndx: 1, value: 4})))
	end := img.ModuleEnd()
	require.NoError(t, img.loadModuleBytes("second.o", moduleELF(make([]byte, 16), elfSymbol{name: "shared_by_first", info: 0x10}, rela{typ: r64, sym: 1})))
	first, second := img.modules[0], img.modules[1]
	require.Equal(t, end, second.text.Start)
	require.Equal(t, first.text.Start+4, opened.Abs64(img.bytes(second.text.Start, 8)))
}

// Rule: a module's name is the one in the module itself, else its file's; a module for another
// release is loaded, and a fact says so.
func TestModuleIdentity(t *testing.T) {
	text := testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, data: make([]byte, 16)}
	modinfo := testSection{name: ".modinfo", typ: 1, flags: shfAlloc, data: []byte("license=GPL\x00name=said\x00vermagic=5.4.0-9 SMP mod_unload \x00")}
	this := testSection{name: ".gnu.linkonce.this_module", typ: 1, flags: shfAlloc | shfWrite, data: append(make([]byte, 24), "within\x00"...)}
	img := guestImage(t, nil)
	require.NoError(t, img.loadModuleBytes("a.ko", testELF(etRel, text, modinfo, this)))
	require.NoError(t, img.loadModuleBytes("b.ko", testELF(etRel, text, this)))
	require.NoError(t, img.loadModuleBytes("dir/with-dash.ko.xz", testELF(etRel, text)))
	require.Equal(t, []string{"said", "within", "with_dash"}, img.Modules())
	last := img.Facts()[len(img.Facts())-1]
	require.Equal(t, "module said", last.Name)
	require.Equal(t, "made for 5.4.0-9", last.Value)
}

// Rule: what boot takes out of text need not be there to be linked: the
// tracer's call and the return thunk.
func TestModuleOfPatchedOutSymbols(t *testing.T) {
	undef := func(name string) []byte {
		return moduleELF(fromHex(t, map[string]string{"__fentry__": "e800000000", "__x86_return_thunk": "e900000000"}[name]),
			elfSymbol{name: name, info: 0x10}, rela{off: 1, typ: rPLT32, sym: 1, addend: -4})
	}
	bare := tableImage(t, make([]byte, 64))
	require.NoError(t, bare.loadModuleBytes("traced.o", undef("__fentry__")))
	require.NoError(t, bare.loadModuleBytes("returns.o", undef("__x86_return_thunk")))
	require.Equal(t, patch.Nopl[5], bare.bytes(bare.modules[0].text.Start, 5))
	require.Equal(t, patch.RetInsn, bare.bytes(bare.modules[1].text.Start, 5))
}

// Rule: a module's per-CPU variables follow the image's, in the template of
// every CPU's area.
func TestModulePerCPU(t *testing.T) {
	img := guestImage(t, nil)
	before, ok := img.PerCPU()
	require.True(t, ok)
	symtab, strs := testSymbols(5, elfSymbol{name: "my_counter", info: 0x11, shndx: 2})
	b := testELF(etRel,
		testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, data: make([]byte, 16)},
		testSection{name: ".data..percpu", typ: 1, flags: shfAlloc | shfWrite, data: []byte{1, 2, 3, 4}},
		testRela(4, 1, rela{typ: r32S, sym: 1}), symtab, strs)
	require.NoError(t, img.loadModuleBytes("counts.o", b))
	after, _ := img.PerCPU()
	at := uint64(le.Uint32(img.bytes(img.modules[0].text.Start, 4)))
	require.Equal(t, before.Data, after.Data[:len(before.Data)])
	require.GreaterOrEqual(t, at, uint64(before.Start)+before.Size)
	require.Equal(t, []byte{1, 2, 3, 4}, after.Data[at-uint64(after.Start):])
}

const plainC = `
extern unsigned long jiffies __attribute__((weak));
static int table[4] = {1, 2, 3, 4};
int common_counter;
static int (*hook)(int);
__attribute__((noinline)) int twice(int x) { common_counter++; return 2 * x; }
int lookup(int i) { hook = twice; return hook(table[i & 3]) + (&jiffies ? 1 : 0); }
`

// Rule: objects of an ordinary compiler load, whatever code model is within
// reach of the kernel's addresses.
func TestModuleFromCompiler(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc to compile a module with")
	}
	for name, flags := range map[string][]string{
		"as_the_kernel":        {"-mcmodel=kernel", "-fno-pic", "-mno-red-zone", "-ffreestanding"},
		"position_independent": {"-fPIC", "-fno-plt", "-fcommon"},
		"plain":                nil,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			src, obj := filepath.Join(dir, "my-mod.c"), filepath.Join(dir, "my-mod.o")
			require.NoError(t, os.WriteFile(src, []byte(plainC), 0o600))
			out, err := exec.Command(gcc, append(flags, "-O2", "-c", "-o", obj, src)...).CombinedOutput()
			require.NoError(t, err, "%s", out)
			img := guestImage(t, &Options{Modules: []string{obj}})
			s := img.Lookup("my_mod:lookup")
			require.Len(t, s, 1)
			require.True(t, img.InText(s[0].Addr))
			require.Len(t, img.Lookup("common_counter"), 1)
		})
	}
}

// FuzzModule: whatever the file, loading it ends in an error or an image that
// answers.
func FuzzModule(f *testing.F) {
	f.Add(guestFile(f, "demo.ko"))
	for _, c := range relocCases() {
		f.Add(moduleELF(make([]byte, 16), c.symbol, rela{off: c.off, typ: c.typ, sym: 1, addend: c.addend}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		img := guestImage(t, nil)
		if err := img.loadModuleBytes("fuzz.ko", b); err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		for _, m := range img.modules {
			img.SymbolAt(m.text.Start)
			img.SiteIn(SiteFtrace, m.text)
			img.Blacklisted(m.text.Start)
		}
	})
}
