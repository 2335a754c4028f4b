package kimage

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/oracle"
	"kprobelab/profile"
	"kprobelab/x86"
)

// openedBefore are the images of oracleImages, so that each is openedBefore once.
var openedBefore = map[string]map[string]*Image{}

// oracleImages opens a kernel as the bzImage and as the live ELF, without what
// boot does to the text. Tests must not change them.
func oracleImages(t *testing.T, kernel string) map[string]*Image {
	t.Helper()
	if openedBefore[kernel] == nil {
		images := map[string]*Image{}
		for name, file := range map[string]string{"vmlinuz": oracle.Image(t, kernel), "live": oracle.File(t, kernel, "live.elf.zst")} {
			img, err := Open(file, &Options{NoBoot: true})
			require.NoError(t, err)
			images[name] = img
		}
		openedBefore[kernel] = images
	}
	return openedBefore[kernel]
}

// TestOracleSymbols compares every symbol with /proc/kallsyms of the booted
// kernel: order, name, letter, address.
func TestOracleSymbols(t *testing.T) {
	for kernel := range oracle.Kernels {
		t.Run(kernel, func(t *testing.T) {
			for file, img := range oracleImages(t, kernel) {
				syms := img.Symbols()
				n := 0
				oracle.Rows(t, oracle.File(t, kernel, "kallsyms.gz"), func(f []string) {
					line := strings.Join(f, "\t")
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

// TestOraclePoints compares every point's symbol with the kernel's answer.
func TestOraclePoints(t *testing.T) {
	for kernel := range oracle.Kernels {
		t.Run(kernel, func(t *testing.T) {
			for file, img := range oracleImages(t, kernel) {
				n := 0
				oracle.Rows(t, oracle.File(t, kernel, "points.tsv.gz"), func(f []string) {
					n++
					requirePoint(t, img, file, f)
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

// requireProfile requires the named profile, except for these fields about a kernel's components.
func requireProfile(t *testing.T, want, got *profile.Config, built []string, file string) {
	t.Helper()
	require.Equal(t, built, builtOtherwise(want, got), file)
	same := *got
	same.Built = want.Built
	require.Equal(t, want, &same, file)
}

// builtOtherwise are the fields of profile.Built in which an image differs from its profile.
func builtOtherwise(want, got *profile.Config) (fields []string) {
	for _, f := range got.Fields() {
		if strings.HasPrefix(f.Name, "Built.") && want.Field(f.Name) != f.Value {
			fields = append(fields, f.Name+"="+f.Value)
		}
	}
	return fields
}

// TestOracleProfile requires the named profile, field by field.
func TestOracleProfile(t *testing.T) {
	for kernel, name := range oracle.Kernels {
		t.Run(kernel, func(t *testing.T) {
			want, _ := profile.Named(name)
			var lacks []string
			if kernel == "oracle" { // Debian's 6.1 has no CONFIG_FPROBE
				lacks = []string{"Built.KprobeMulti=false"}
			}
			for file, img := range oracleImages(t, kernel) {
				built := lacks
				if file == "live" { // the recorded text of a booted kernel has no section .BTF
					built = append([]string{"Built.BTF=false"}, lacks...)
				}
				requireProfile(t, want, img.Profile(), built, file)
			}
			// Its own configuration must not say otherwise.
			img, err := Open(oracle.Image(t, kernel), &Options{NoBoot: true, Config: oracle.File(t, kernel, "config.gz")})
			require.NoError(t, err)
			requireProfile(t, want, img.Profile(), lacks, "with its configuration")
			for _, f := range img.Facts() {
				t.Logf("%s = %s (%s)", f.Name, f.Value, f.Evidence)
			}
		})
	}
}

// TestOracleSystemMap reads /proc/kallsyms in place of the image's symbols.
func TestOracleSystemMap(t *testing.T) {
	img, err := Open(oracle.Image(t, "oracle"), &Options{NoBoot: true, SystemMap: oracle.File(t, "oracle", "kallsyms.gz")})
	require.NoError(t, err)
	own := oracleImages(t, "oracle")["vmlinuz"]
	require.Equal(t, own.Symbols(), img.Symbols()[:len(own.Symbols())])
	require.NotEmpty(t, img.Lookup("korc:noop"), "module symbols are kept")
	require.NotEmpty(t, img.Lookup("virtio_blk:virtblk_wq"))
}

// TestOracleLiveText lays the live text over the image: text as booted.
func TestOracleLiveText(t *testing.T) {
	for kernel := range oracle.Kernels {
		t.Run(kernel, func(t *testing.T) {
			img, err := Open(oracle.Image(t, kernel), &Options{LiveText: oracle.File(t, kernel, "live.elf.zst")})
			require.NoError(t, err)
			want := oracleImages(t, kernel)["live"]
			a, b := img.section(".text").Data, want.section(".text").Data
			require.True(t, string(a[:len(b)]) == string(b), "text differs")
		})
	}
}

// TestOracleRawLiveText lays raw bytes over, of the same kernel on another CPU.
func TestOracleRawLiveText(t *testing.T) {
	raw := oracle.File(t, "oracle", "epyc_live_text.bin.zst")
	img, err := Open(oracle.Image(t, "oracle"), &Options{LiveText: raw})
	require.NoError(t, err)
	want, err := readMaybePacked(raw, nil)
	require.NoError(t, err)
	require.Equal(t, x86.Addr(0xffffffff81000000), img.live.Start)
	require.True(t, string(want) == string(img.bytes(img.live.Start, len(want))), "text differs")
}

// TestOracleSegments covers every section, without overlaps.
func TestOracleSegments(t *testing.T) {
	for kernel := range oracle.Kernels {
		t.Run(kernel, func(t *testing.T) {
			img := oracleImages(t, kernel)["vmlinuz"]
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
	for kernel := range oracle.Kernels {
		b.Run(kernel, func(b *testing.B) {
			path := oracle.Image(b, kernel)
			for b.Loop() {
				_, err := Open(path, nil)
				require.NoError(b, err)
			}
		})
	}
}
