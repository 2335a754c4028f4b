package kimage

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

func mapText(syms []Symbol, shift x86.Addr) []byte {
	var b strings.Builder
	for _, s := range syms {
		if s.Addr >= opened.KernelHalf {
			s.Addr += shift
		}
		fmt.Fprintf(&b, "%016x %c %s\n", uint64(s.Addr), s.Type, s.Name)
	}
	return []byte(b.String())
}

func TestSystemMap(t *testing.T) {
	own := openBytes(t, testKernel(v61), nil)
	text := mapText(testKernelSymbols(), 0)
	withModule := append(text, "ffffffffc0001000 t probe_me\t[demo]\nffffffffc0001020 t next\t[demo]\nffffffffc0003000 d data\t[demo]\n"...)
	for name, b := range map[string][]byte{"plain": withModule, "gzip": packGzip(t, withModule)} {
		t.Run(name, func(t *testing.T) {
			img := openBytes(t, testKernel(v61), &Options{SystemMap: writeFile(t, "map", b)})
			require.Equal(t, own.Symbols(), img.Symbols()[:len(own.Symbols())])
			require.Equal(t, []Symbol{{Name: "probe_me", Addr: 0xffffffffc0001000, Size: 0x20, Type: 't', Module: "demo"}}, img.Lookup("demo:probe_me"))
			require.Len(t, img.Lookup("probe_me"), 1)
			s, ok := img.SymbolAt(0xffffffffc0001021)
			require.True(t, ok)
			require.Equal(t, "next", s.Name)
			require.True(t, img.InText(0xffffffffc0001021))
			require.False(t, img.InText(0xffffffffc0003000))
			_, ok = img.SymbolAt(0xffffffffc0000fff)
			require.False(t, ok)
		})
	}
}

// TestSystemMapKASLR moves a map of a running kernel back to the image.
func TestSystemMapKASLR(t *testing.T) {
	own := openBytes(t, testKernel(v61), nil)
	img := openBytes(t, testKernel(v61), &Options{SystemMap: writeFile(t, "kallsyms", mapText(testKernelSymbols(), 0x2400000))})
	require.Equal(t, own.Symbols(), img.Symbols())
	require.Equal(t, "0x2400000", fact(t, img, "symbols moved").Value)
}

func TestSystemMapWrong(t *testing.T) {
	cases := []struct{ name, file, want string }{
		{"empty", "", "it has no symbols"},
		{"hidden", "0000000000000000 T _stext\n0000000000000000 T _text\n", "all its addresses are zero: copy /proc/kallsyms as root"},
		{"not_a_map", "hello world\n", `a line "address letter name" is wanted, not "hello world"`},
		{"of_another_kernel", "ffffffff81000000 T _text\nffffffff81001008 D linux_banner\n", "these are the symbols of another image: this one has no linux_banner at 0xffffffff81001008"},
		{"second_line", "ffffffff81000000 T _stext\nrubbish\n", "at offset 0x1a"},
		{"bad_module", "ffffffff81000000 T _stext [half\n", "is wanted"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := FromBytes("k", testKernel(v61), &Options{SystemMap: writeFile(t, "map", []byte(c.file))})
			require.ErrorIs(t, err, ErrFormat)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestSizes: a symbol ends at the next higher address, whatever aliases it has.
func TestSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 50).Draw(t, "steps")
		var syms []Symbol
		at := x86.Addr(1000)
		for _, s := range steps {
			at += x86.Addr(s)
			syms = append(syms, Symbol{Name: "s", Addr: at})
		}
		end := at + 7
		setSizes(syms, func(a x86.Addr) x86.Addr {
			if a == at {
				return end
			}
			return 0
		})
		for i, s := range syms {
			want := end
			for _, later := range syms[i:] {
				if later.Addr > s.Addr {
					want = later.Addr
					break
				}
			}
			if got := s.Addr + x86.Addr(s.Size); got != want {
				t.Fatalf("symbol %d at %d ends at %d, want %d", i, s.Addr, got, want)
			}
			if c, ok := covering(syms, s.Addr); !ok || c.Addr != s.Addr {
				t.Fatalf("%d is covered by %v", s.Addr, c)
			}
		}
	})
}

func TestParseHex(t *testing.T) {
	for s, want := range map[string]x86.Addr{"0": 0, "0xff": 255, "FFFFFFFF81000000": testBase, "ffffffffffffffff": ^x86.Addr(0)} {
		got, ok := parseHex(s)
		require.True(t, ok, s)
		require.Equal(t, want, got)
	}
	for _, s := range []string{"", "0x", "g", "11111111111111111", "-1"} {
		_, ok := parseHex(s)
		require.False(t, ok, s)
	}
}

func FuzzSystemMap(f *testing.F) {
	f.Add(mapText(testKernelSymbols(), 0))
	f.Add([]byte("ffffffffc0001000 t probe_me\t[demo]\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		syms, err := parseSystemMap("fuzz", b)
		if err != nil {
			return
		}
		own, modules := splitModules(syms)
		for _, m := range modules {
			require.NotEmpty(t, m.regions)
		}
		require.LessOrEqual(t, len(own), len(syms))
	})
}
