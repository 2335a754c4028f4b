package kimage

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/x86"
)

func openBytes(t *testing.T, b []byte, o *Options) *Image {
	t.Helper()
	img, err := FromBytes("test", b, o)
	require.NoError(t, err)
	return img
}

var v61 = kallsymsLayouts[3]

func TestOpenKernel(t *testing.T) {
	img := openBytes(t, testKernel(v61), nil)
	require.Equal(t, KindKernel, img.Kind())
	require.Len(t, img.Symbols(), len(testKernelSymbols()))
	require.Contains(t, img.Banner(), "6.1.0-test")
	pc, ok := img.PerCPU()
	require.True(t, ok)
	require.Equal(t, uint64(0x80), pc.Size)
	segs := img.Segments()
	require.Len(t, segs, 3)
	require.True(t, segs[0].Exec && !segs[0].Write)
	require.Equal(t, uint64(0x1000), segs[2].Size)
	require.Empty(t, segs[2].Data, "bss takes no memory")
}

// TestSymbolAt follows kallsyms_lookup_size_offset.
func TestSymbolAt(t *testing.T) {
	img := openBytes(t, testKernel(v61), nil)
	cases := []struct {
		name   string
		addr   x86.Addr
		symbol string
		size   uint64
	}{
		{"below_stext", testBase - 1, "", 0},
		{"per_cpu_number_is_no_address", 0x40, "", 0},
		{"first_alias_wins", testBase, "_stext", 0x10},
		{"alias_inside", testBase + 0x44, "__se_sys_read", 0x10},
		{"middle", testBase + 0x1f, "vfs_read", 0x30},
		{"data", testBase + 0x1001, "linux_banner", 0x7000},
		{"last_ends_at_end", testBase + 0x8fff, "var_" + string(rune('a'+299%26)), 0x1000 - 299},
		{"end_is_outside", testBase + 0x9000, "", 0},
		{"far_above", 0xffffffffff600000, "", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, ok := img.SymbolAt(c.addr)
			require.Equal(t, c.symbol != "", ok)
			require.Equal(t, c.symbol, s.Name)
			require.Equal(t, c.size, s.Size)
		})
	}
}

func TestLookup(t *testing.T) {
	img := openBytes(t, testKernel(v61), nil)
	dup := img.Lookup("dup")
	require.Len(t, dup, 2)
	require.Less(t, dup[0].Addr, dup[1].Addr, "table order")
	require.Empty(t, img.Lookup("nothing"))
	require.Empty(t, img.Lookup("nomod:dup"))
	require.Len(t, img.Lookup("var_a"), 12)
}

func TestCodeAt(t *testing.T) {
	img := openBytes(t, testKernel(v61), nil)
	b := bytes.Repeat([]byte{0xee}, 16)
	require.Equal(t, 8, img.CodeAt(testBase+0xf8, b), "text ends")
	require.Equal(t, strings.Repeat("\x90", 8), string(b[:8]))
	require.Equal(t, 16, img.CodeAt(testBase+0x8ff0, b))
	require.Equal(t, make([]byte, 16), b, "bss is zero")
	require.Equal(t, 0, img.CodeAt(testBase-1, b))
	require.Equal(t, 0, img.CodeAt(0, b), "the per-CPU template is mapped nowhere")
	require.Nil(t, img.bytes(testBase+0xf8, 16))
	require.Nil(t, img.bytes(testBase+0x8000, 4), "bss has no bytes to patch")
}

// TestFromBytesKeepsItsInput: the caller's bytes are not patched.
func TestFromBytesKeepsItsInput(t *testing.T) {
	b := testKernel(v61)
	img := openBytes(t, b, nil)
	clear(img.bytes(testBase, 16))
	require.Equal(t, testKernel(v61), b)
}

// TestOpenWrong has one clear line for each file that is no image.
func TestOpenWrong(t *testing.T) {
	kernel := testKernel(v61)
	change := func(at int, v ...byte) []byte {
		b := bytes.Clone(kernel)
		copy(b[at:], v)
		return b
	}
	arm := make([]byte, 64)
	copy(arm[0x38:], "ARM\x64")
	bz := testBzImage(kernel, len(kernel))
	oldBz := bytes.Clone(bz)
	oldBz[bzVersion] = 5
	bz32 := bytes.Clone(bz)
	bz32[bzXLoadFlags] = 0
	cases := []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "the file is empty"},
		{"text", []byte("hello\n"), "this is a text file"},
		{"arm64_image", arm, "this is an arm64 kernel image"},
		{"pe_cut", []byte("MZ\x90\x00"), "PE file"},
		{"rubbish", []byte{1, 2, 3}, "it begins with 01 02 03"},
		{"header_cut", kernel[:40], "the ELF header is cut off"},
		{"i386", change(18, 3), "this one is for i386"},
		{"aarch64", change(18, 183), "this one is for AArch64"},
		{"32_bit", change(4, 1), "64-bit"},
		{"big_endian", change(5, 2), "little-endian"},
		{"core_file", change(16, 4), "this is the core file of a process"},
		{"sections_cut", kernel[:len(kernel)-10], "cut off"},
		{"segment_outside", kernel[:0x200], "cut off"},
		{"many_sections", change(60, 0xff, 0xff), "cut off"},
		{"names_outside", change(62, 0x77), "section names"},
		{"bzimage_old", oldBz, "boot protocol 2.08 or later is wanted, this image has 2.05"},
		{"bzimage_32", bz32, "no 64-bit entry"},
		{"bzimage_cut", testBzImage(kernel, len(kernel))[:2000], "the payload is cut off"},
		{"bzimage_unknown", testBzImage([]byte("no such compression"), 1), "compressed data (gzip, zstd, xz, lz4, bzip2, lzma or lzo), is wanted here; this is a text file"},
		{"lzo_cut", append([]byte("\x89LZO\x00\r\n\x1a\n"), 1, 2, 3), "intact lzo data is wanted: the data is cut off"},
		{"gzip_of_text", packGzip(t, []byte("hello, hello")), "is wanted here; this is a text file"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := FromBytes("file", c.file, nil)
			require.ErrorIs(t, err, ErrFormat)
			require.ErrorContains(t, err, c.want)
			require.True(t, strings.HasPrefix(err.Error(), "file: "))
			require.NotContains(t, err.Error(), "\n")
			var fe *FormatError
			require.ErrorAs(t, err, &fe)
		})
	}
}

// TestOpenCut cuts a file everywhere: an error or a smaller image, no panic.
func TestOpenCut(t *testing.T) {
	kernel := testKernel(v61)
	for i := 0; i < len(kernel); i += 37 {
		_, err := FromBytes("cut", kernel[:i], nil)
		require.Error(t, err)
	}
}

func TestOpenFiles(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(dir, nil)
	require.ErrorContains(t, err, "directory")
	_, err = Open(filepath.Join(dir, "absent"), nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	path := filepath.Join(dir, "vmlinux")
	require.NoError(t, os.WriteFile(path, testKernel(v61), 0o600))
	img, err := Open(path, nil)
	require.NoError(t, err)
	require.Equal(t, path, img.Name())
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	img, err = OpenReader("reader", f, nil)
	require.NoError(t, err)
	require.Equal(t, "reader", img.Name())
}

// TestOpenProgram opens this very test.
func TestOpenProgram(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("this program is no x86-64 ELF here")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	img, err := Open(self, nil)
	require.NoError(t, err)
	require.Equal(t, KindProgram, img.Kind())
	text := img.section(".text")
	require.NotNil(t, text)
	require.True(t, img.InText(text.Addr))
	b := make([]byte, 16)
	require.Equal(t, 16, img.CodeAt(text.Addr, b))
	require.Equal(t, text.Data[:16], b)
}

// TestOverlap refuses two sections at one address.
func TestOverlap(t *testing.T) {
	text := testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, addr: testBase, data: make([]byte, 32)}
	data := testSection{name: ".data", typ: 1, flags: shfAlloc, addr: testBase + 16, data: make([]byte, 32)}
	_, err := FromBytes("x", testELF(etExec, text, data), nil)
	require.ErrorContains(t, err, "sections .text and .data overlap at 0xffffffff81000010")
}

func FuzzELF(f *testing.F) {
	f.Add(testKernel(v61))
	f.Add(testKernel(kallsymsLayouts[0]))
	f.Add(testObject())
	f.Fuzz(func(t *testing.T, data []byte) {
		img, err := FromBytes("fuzz", data, nil)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		useAll(img)
	})
}

func FuzzBzImage(f *testing.F) {
	kernel := testKernel(v61)
	for _, p := range testPacked(f, kernel) {
		f.Add(testBzImage(p, len(kernel)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		img, err := FromBytes("fuzz", data, nil)
		if err == nil {
			useAll(img)
		}
	})
}

// useAll asks everything of an image that a view is asked.
func useAll(img *Image) {
	var b [15]byte
	for _, s := range img.Symbols() {
		img.CodeAt(s.Addr, b[:])
		img.SymbolAt(s.Addr)
		img.Lookup(s.Name)
		img.InText(s.Addr)
		img.InEntryText(s.Addr)
		img.InInit(s.Addr)
		img.Blacklisted(s.Addr)
		img.BugEntry(s.Addr)
		img.ExceptionEntry(s.Addr)
		for k := range NumSiteKinds {
			img.SiteAt(k, s.Addr)
			img.SiteIn(k, x86.Range{Start: s.Addr, End: s.Addr + 5})
		}
	}
	for _, g := range img.Segments() {
		img.CodeAt(g.Addr, b[:])
		img.CodeAt(g.Addr+x86.Addr(g.Size)-1, b[:])
	}
	img.PerCPU()
}

// TestHotPathsDoNotAllocate: these two run for every instruction looked at.
func TestHotPathsDoNotAllocate(t *testing.T) {
	img := openBytes(t, testKernel(v61), nil)
	var b [15]byte
	require.Zero(t, testing.AllocsPerRun(100, func() {
		img.SymbolAt(testBase + 0x44)
		img.CodeAt(testBase+0x44, b[:])
		img.InText(testBase + 0x44)
	}))
}
