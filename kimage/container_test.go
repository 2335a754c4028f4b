package kimage

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// testPE is a PE file of sections, as far as it is read here.
func testPE(machine uint16, sections map[string][]byte) []byte {
	b := make([]byte, 0x40)
	copy(b, "MZ")
	le.PutUint32(b[peAt:], 0x40)
	head := make([]byte, peHeader+16)
	copy(head, "PE\x00\x00")
	le.PutUint16(head[peMachine:], machine)
	le.PutUint16(head[peSections:], uint16(len(sections)))
	le.PutUint16(head[peOptional:], 16)
	b = append(b, head...)
	at := len(b) + peSection*len(sections)
	var data []byte
	for name, content := range sections {
		s := make([]byte, peSection)
		copy(s, name)
		le.PutUint32(s[peVirtualSize:], uint32(len(content)))
		le.PutUint32(s[peRawSize:], uint32(len(content)+3)) // aligned
		le.PutUint32(s[peRawAt:], uint32(at+len(data)))
		b = append(b, s...)
		data = append(append(data, content...), 0xcc, 0xcc, 0xcc)
	}
	return append(append(b, data...), "a signature"...)
}

// testZboot wraps a payload as the kernel's build does for EFI.
func testZboot(packing string, payload []byte) []byte {
	b := make([]byte, 0x80)
	copy(b, "MZ\x00\x00zimg")
	le.PutUint32(b[zbootAt:], uint32(len(b)))
	le.PutUint32(b[zbootLen:], uint32(len(payload)))
	copy(b[zbootPack:], packing)
	return append(append(b, payload...), "the unpacked size"...)
}

// TestContainers opens a kernel in whatever it is shipped in.
func TestContainers(t *testing.T) {
	kernel := testKernel(v61)
	bz := testBzImage(packGzip(t, kernel), len(kernel))
	want := openBytes(t, kernel, nil).Symbols()
	for name, b := range map[string][]byte{
		"unified":                   testPE(peAMD64, map[string][]byte{".osrel": []byte("ID=x"), ".linux": bz, ".initrd": make([]byte, 99)}),
		"unified_packed":            packGzip(t, testPE(peAMD64, map[string][]byte{".linux": bz})),
		"unified_of_elf":            testPE(peAMD64, map[string][]byte{".linux": kernel}),
		"zboot_gzip":                testZboot("gzip", packGzip(t, kernel)),
		"zboot_plain":               testZboot("", kernel),
		"unified_of_zboot":          testPE(peAMD64, map[string][]byte{".linux": testZboot("gzip", packGzip(t, kernel))}),
		"bzimage_packed":            packGzip(t, bz),
		"bzimage_padded_and_signed": append(append(bytes.Clone(bz), make([]byte, 4096)...), bz...),
		"elf_with_bytes_after_it":   append(bytes.Clone(kernel), bytes.Repeat([]byte{0x5a}, 5000)...),
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, want, openBytes(t, b, nil).Symbols())
			for i := 0; i < min(len(b), len(kernel))/2; i += 1 + len(b)/20 {
				_, err := FromBytes("cut", b[:i], nil)
				require.ErrorIs(t, err, ErrFormat)
				require.NotContains(t, err.Error(), "\n")
			}
		})
	}
}

func TestContainersWrong(t *testing.T) {
	kernel := testKernel(v61)
	deep := kernel
	for range bounded.Wraps {
		deep = testPE(peAMD64, map[string][]byte{".linux": deep})
	}
	arm := make([]byte, 100)
	copy(arm[0x38:], "ARM\x64")
	far := testPE(peAMD64, map[string][]byte{".linux": kernel})
	le.PutUint32(far[0x40+peHeader+16+peRawAt:], 1<<31)
	longPE := testPE(peAMD64, nil)
	le.PutUint16(longPE[0x40+peSections:], 0xffff)
	farZboot := testZboot("gzip", packGzip(t, kernel))
	le.PutUint32(farZboot[zbootAt:], 1<<31)
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"pe_without_kernel":     {testPE(peAMD64, map[string][]byte{".text": kernel}), "this is a PE file without the Linux boot header, and without a section .linux"},
		"pe_for_arm64":          {testPE(0xaa64, map[string][]byte{".linux": kernel}), "this PE file is for machine 0xaa64"},
		"pe_of_text":            {testPE(peAMD64, map[string][]byte{".linux": []byte("hello, world")}), "this is a text file"},
		"pe_kernel_outside":     {far, "is cut off"},
		"pe_sections_outside":   {longPE, "section table is cut off"},
		"ms_dos":                {append([]byte("MZ"), make([]byte, 0x80)...), "this is a program for MS-DOS"},
		"zboot_of_arm64":        {testZboot("gzip", packGzip(t, arm)), "this is an arm64 kernel image"},
		"zboot_unknown_packing": {testZboot("brotli", []byte("what is this")), `packed by "brotli"`},
		"zboot_outside":         {farZboot, "the payload is cut off"},
		"files_in_files":        {deep, "only files in files"},
		"debug_alone": {testELF(etExec,
			testSection{name: ".text", typ: shtNobits, flags: shfAlloc | shfExec, addr: testBase, size: 0x100},
			testSection{name: ".debug_info", typ: 1, data: []byte("DWARF")}), "this file has debugging information alone, and no code: open the file from which it was split off"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := FromBytes("file", c.file, nil)
			require.ErrorIs(t, err, ErrFormat)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func FuzzContainers(f *testing.F) {
	kernel := testKernel(v61)
	f.Add(testPE(peAMD64, map[string][]byte{".linux": testBzImage(kernel, len(kernel))}))
	f.Add(testZboot("gzip", packGzip(f, kernel)))
	f.Fuzz(func(t *testing.T, data []byte) {
		img, err := FromBytes("fuzz", data, nil)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		useAll(img)
	})
}

// debugKernel has more debugging information than the rest.
func debugKernel() []byte {
	rodata := append([]byte(testBanner), 0)
	symtab, strs := testSymbols(4, elfSymbol{name: "_stext", info: 0x12, shndx: 1, value: testBase}, elfSymbol{name: "vfs_read", info: 0x12, shndx: 1, value: testBase + 0x10})
	return testELF(etExec,
		testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, addr: testBase, data: bytes.Repeat([]byte{0x90}, 0x100)},
		testSection{name: ".rodata", typ: 1, flags: shfAlloc, addr: testBase + 0x1000, data: rodata},
		symtab, strs,
		testSection{name: ".debug_info", typ: 1, data: bytes.Repeat([]byte{0xdd}, sparseFrom)},
		testSection{name: ".debug_str", typ: 1, data: bytes.Repeat([]byte{0xdd}, 100)},
		testSection{name: ".BTF", typ: 1, data: []byte("kept")},
	)
}

// TestDebugELF: a vmlinux with debugging information, and no kallsyms, opens as one
// without; what describes the sources is not read.
func TestDebugELF(t *testing.T) {
	b := debugKernel()
	path := filepath.Join(t.TempDir(), "vmlinux")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	for name, open := range map[string]func() (*Image, error){
		"file":  func() (*Image, error) { return Open(path, nil) },
		"bytes": func() (*Image, error) { return FromBytes("x", b, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			img, err := open()
			require.NoError(t, err)
			require.Len(t, img.Lookup("vfs_read"), 1)
			for _, s := range img.Sections() {
				require.Equal(t, strings.HasPrefix(s.Name, ".debug_"), s.Data == nil, s.Name)
				require.NotZero(t, s.Size)
			}
			require.Equal(t, "kept", string(img.section(".BTF").Data))
		})
	}
	sparse, err := readFile(path)
	require.NoError(t, err)
	require.Equal(t, len(b), len(sparse))
	i := bytes.IndexByte(b, 0xdd)
	require.True(t, bytes.Equal(b[:i], sparse[:i]))
	require.Zero(t, bytes.Count(sparse, []byte{0xdd}))
}

// TestManySegments: 60,000 segments, empty or not, take little time; a quadratic reader
// would take minutes.
func TestManySegments(t *testing.T) {
	for name, size := range map[string]uint64{"empty": 0, "one_byte": 1} {
		t.Run(name, func(t *testing.T) {
			b := bytes.Clone(testKernel(v61))
			const n = 60000
			le.PutUint64(b[32:], uint64(len(b)))
			le.PutUint16(b[56:], n)
			table := make([]byte, n*phdrSize)
			for i := range n {
				putPhdr(table[i*phdrSize:], testSection{flags: shfExec, addr: testBase + 0x10000 + uint64(i)*64, data: make([]byte, size)}, 0x1000, size)
			}
			img := openBytes(t, append(b, table...), nil)
			require.NotEmpty(t, img.Symbols())
		})
	}
}

// TestUnifiedByObjcopy has a unified image made as its makers do: by objcopy, which
// adds the kernel to a PE file.
func TestUnifiedByObjcopy(t *testing.T) {
	for _, tool := range []string{"objcopy", "ld", "as"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s here to make a PE file with", tool)
		}
	}
	dir := t.TempDir()
	kernel := testKernel(v61)
	vmlinuz := filepath.Join(dir, "vmlinuz")
	require.NoError(t, os.WriteFile(vmlinuz, testBzImage(packGzip(t, kernel), len(kernel)), 0o600))
	stub := filepath.Join(dir, "stub.s")
	require.NoError(t, os.WriteFile(stub, []byte(".globl _start\n_start: ret\n"), 0o600))
	for _, line := range []string{
		"as -o stub.o stub.s",
		"objcopy -O pe-x86-64 stub.o stub.pe.o",
		"ld -m i386pep --subsystem 10 -e _start -o stub.efi stub.pe.o",
		"objcopy --add-section .linux=vmlinuz --set-section-flags .linux=data --change-section-vma .linux=0x2000000 stub.efi uki.efi",
	} {
		args := strings.Fields(line)
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("%s: %v", line, fmt.Errorf("%w: %s", err, out))
		}
	}
	img, err := Open(filepath.Join(dir, "uki.efi"), nil)
	require.NoError(t, err)
	require.Equal(t, openBytes(t, kernel, nil).Symbols(), img.Symbols())
}
