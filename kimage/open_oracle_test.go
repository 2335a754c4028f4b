package kimage

import (
	"bufio"
	"compress/gzip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/profile"
	"kprobelab/x86"
)

// oracleKernel is one of the real kernels that the tests compare with.
type oracleKernel struct {
	dir, vmlinuz, profile string
}

var oracleKernels = []oracleKernel{
	{"oracle510", "vmlinuz-5.10.0-32-cloud-amd64", "5.10"},
	{"oracle", "vmlinuz-6.1.0-56-cloud-amd64", "6.1"},
	{"oracle612", "vmlinuz-6.12.107+deb13-cloud-amd64", "6.12"},
}

// oracleFile is a file of the oracles, which lie in $KPROBELAB_ORACLE or in
// ../shared beside the repository; a test without them is skipped.
func oracleFile(t testing.TB, elem ...string) string {
	t.Helper()
	root := os.Getenv("KPROBELAB_ORACLE")
	if root == "" {
		root = filepath.Join("..", "..", "shared")
	}
	path := filepath.Join(append([]string{root}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the oracle is not here: %v", err)
	}
	return path
}

// gzLines calls f for every line of a gzip file.
func gzLines(t testing.TB, path string, f func(line string)) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	z, err := gzip.NewReader(file)
	require.NoError(t, err)
	for sc := bufio.NewScanner(z); sc.Scan(); {
		f(sc.Text())
	}
}

// oracleImages opens a kernel as the bzImage and as the live ELF.
func oracleImages(t *testing.T, k oracleKernel) map[string]*Image {
	images := map[string]*Image{}
	for _, file := range []string{k.vmlinuz, "live.elf.zst"} {
		img, err := Open(oracleFile(t, k.dir, file), &Options{NoBoot: true})
		require.NoError(t, err)
		images[file] = img
	}
	return images
}

// TestOracleSymbols compares every symbol with /proc/kallsyms of the booted
// kernel: order, name, letter, address.
func TestOracleSymbols(t *testing.T) {
	for _, k := range oracleKernels {
		t.Run(k.dir, func(t *testing.T) {
			for file, img := range oracleImages(t, k) {
				syms := img.Symbols()
				n := 0
				gzLines(t, oracleFile(t, k.dir, "kallsyms.gz"), func(line string) {
					want, ok := parseMapLine(line)
					if want.Module != "" {
						return
					}
					if !ok || n >= len(syms) || syms[n].Name != want.Name || syms[n].Addr != want.Addr || syms[n].Type != want.Type {
						require.FailNow(t, "another symbol", "%s: symbol %d is %v, /proc/kallsyms has %s", file, n, syms[n:min(n+1, len(syms))], line)
					}
					n++
				})
				require.Len(t, syms, n, file)
				require.Equal(t, KindKernel, img.Kind())
			}
		})
	}
}

// TestOraclePoints asks for every point's symbol, as the kernel answered.
func TestOraclePoints(t *testing.T) {
	for _, k := range oracleKernels {
		t.Run(k.dir, func(t *testing.T) {
			for file, img := range oracleImages(t, k) {
				n := 0
				gzLines(t, oracleFile(t, k.dir, "points.tsv.gz"), func(line string) {
					if !strings.HasPrefix(line, "#") {
						n++
						requirePoint(t, img, file, strings.Split(line, "\t"))
					}
				})
				t.Logf("%s: %d points", file, n)
			}
		})
	}
}

func requirePoint(t *testing.T, img *Image, file string, f []string) {
	t.Helper()
	addr, err := strconv.ParseUint(f[0], 16, 64)
	require.NoError(t, err)
	s, ok := img.SymbolAt(x86.Addr(addr))
	if f[1] == "-" {
		require.False(t, ok, "%s: %s is %v", file, f[0], s)
		return
	}
	off, size := strconv.FormatUint(addr-uint64(s.Addr), 10), strconv.FormatUint(s.Size, 10)
	if !ok || s.Name != f[1] || off != f[2] || size != f[3] {
		require.FailNow(t, "another symbol", "%s: %s is %s+%s/%s, the kernel has %v", file, f[0], s.Name, off, size, f[1:4])
	}
}

// TestOracleProfile wants the named profile, field by field.
func TestOracleProfile(t *testing.T) {
	for _, k := range oracleKernels {
		t.Run(k.dir, func(t *testing.T) {
			want, _ := profile.Named(k.profile)
			for file, img := range oracleImages(t, k) {
				require.Equal(t, want, img.Profile(), file)
			}
			// Its own configuration must not say otherwise.
			img, err := Open(oracleFile(t, k.dir, k.vmlinuz), &Options{NoBoot: true, Config: oracleFile(t, k.dir, "config.gz")})
			require.NoError(t, err)
			require.Equal(t, want, img.Profile())
			for _, f := range img.Facts() {
				t.Logf("%s = %s (%s)", f.Name, f.Value, f.Evidence)
			}
		})
	}
}

// TestOracleSystemMap reads /proc/kallsyms in place of the image's symbols.
func TestOracleSystemMap(t *testing.T) {
	k := oracleKernels[1]
	img, err := Open(oracleFile(t, k.dir, k.vmlinuz), &Options{NoBoot: true, SystemMap: oracleFile(t, k.dir, "kallsyms.gz")})
	require.NoError(t, err)
	own, err := Open(oracleFile(t, k.dir, k.vmlinuz), &Options{NoBoot: true})
	require.NoError(t, err)
	require.Equal(t, own.Symbols(), img.Symbols()[:len(own.Symbols())])
	require.NotEmpty(t, img.Lookup("korc:noop"), "module symbols are kept")
	require.NotEmpty(t, img.Lookup("virtio_blk:virtblk_wq"))
}

// TestOracleLiveText lays the live text over the image: text as booted.
func TestOracleLiveText(t *testing.T) {
	for _, k := range oracleKernels {
		t.Run(k.dir, func(t *testing.T) {
			live := oracleFile(t, k.dir, "live.elf.zst")
			img, err := Open(oracleFile(t, k.dir, k.vmlinuz), &Options{LiveText: live})
			require.NoError(t, err)
			want, err := Open(live, &Options{NoBoot: true})
			require.NoError(t, err)
			a, b := img.section(".text").Data, want.section(".text").Data
			require.True(t, string(a[:len(b)]) == string(b), "text differs")
		})
	}
}

// TestOracleRawLiveText lays raw bytes over, of the same kernel on another CPU.
func TestOracleRawLiveText(t *testing.T) {
	raw := oracleFile(t, "oracle", "epyc_live_text.bin.zst")
	img, err := Open(oracleFile(t, "oracle", oracleKernels[1].vmlinuz), &Options{LiveText: raw})
	require.NoError(t, err)
	want, err := readMaybePacked(raw, nil)
	require.NoError(t, err)
	require.Equal(t, x86.Addr(0xffffffff81000000), img.live.Start)
	require.True(t, string(want) == string(img.bytes(img.live.Start, len(want))), "text differs")
}

// TestOracleSegments covers every section, without overlaps.
func TestOracleSegments(t *testing.T) {
	for _, k := range oracleKernels {
		t.Run(k.dir, func(t *testing.T) {
			img, err := Open(oracleFile(t, k.dir, k.vmlinuz), &Options{NoBoot: true})
			require.NoError(t, err)
			var end x86.Addr
			for _, g := range img.Segments() {
				t.Logf("%-12s %v +%#x (%#x in the file) w=%v x=%v", g.Name, g.Addr, g.Size, len(g.Data), g.Write, g.Exec)
				require.GreaterOrEqual(t, g.Addr, end)
				end = g.Addr + x86.Addr(g.Size)
			}
			pc, ok := img.PerCPU()
			require.True(t, ok)
			require.NotEmpty(t, pc.Data)
			require.Equal(t, img.IndirectThunks().Contains(lookup1(t, img, "__x86_indirect_thunk_rax")), true)
			require.True(t, img.InEntryText(lookup1(t, img, "entry_SYSCALL_64")))
			require.True(t, img.InText(lookup1(t, img, "vfs_read")))
			init := lookup1(t, img, "start_kernel")
			_, ok = img.InInit(init)
			require.True(t, ok)
			require.False(t, img.InText(init), "init text is freed after boot")
		})
	}
}

func lookup1(t *testing.T, img *Image, name string) x86.Addr {
	t.Helper()
	s := img.Lookup(name)
	require.NotEmpty(t, s, name)
	return s[0].Addr
}

// BenchmarkOpen opens the bzImage of each kernel, from the file to the text as
// boot leaves it.
func BenchmarkOpen(b *testing.B) {
	for _, k := range oracleKernels {
		b.Run(k.dir, func(b *testing.B) {
			path := oracleFile(b, k.dir, k.vmlinuz)
			for b.Loop() {
				_, err := Open(path, nil)
				require.NoError(b, err)
			}
		})
	}
}
