package kimage

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
	"kprobelab/kimage/evidence"
	"kprobelab/kimage/internal/opened"
	"kprobelab/profile"
)

func fact(t *testing.T, img *Image, name string) evidence.Fact {
	t.Helper()
	for _, f := range img.Facts() {
		if f.Name == name {
			return f
		}
	}
	require.Failf(t, "no fact", "%s in %v", name, img.Facts())
	return evidence.Fact{}
}

// TestProfileNeedsKprobesSymbols: in an image without kprobes a missing symbol
// says nothing.
func TestProfileNeedsKprobesSymbols(t *testing.T) {
	img := openBytes(t, testKernel(v61), nil)
	want, _ := profile.Named("6.1")
	require.Equal(t, want, img.Profile())
	require.Equal(t, evidence.Fact{Name: "release", Value: "6.1.0-test", Evidence: "linux_banner"}, fact(t, img, "release"))
	require.Equal(t, "PREEMPT_DYNAMIC in the linux_banner", fact(t, img, "Preemption").Evidence)
}

func writeFile(t *testing.T, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

func TestConfigDecides(t *testing.T) {
	config := []byte("# Linux\nCONFIG_HZ=1000\n# CONFIG_PREEMPTION is not set\nCONFIG_KPROBES_ON_FTRACE=y\nCONFIG_FRAME_POINTER=y\n")
	for _, b := range [][]byte{config, packGzip(t, config)} {
		path := writeFile(t, "config", b)
		img := openBytes(t, testKernel(v61), &Options{Config: path})
		c := img.Profile()
		require.False(t, c.Preemption, "a configuration that is given goes first")
		require.True(t, c.KprobesOnFtrace)
		require.True(t, c.FramePointer)
		require.False(t, c.Optimize.Exists, "a configuration without the option says no")
		require.Equal(t, 1000, c.HZ)
		require.Equal(t, uint64(0xffffffffa0000000), c.ModuleBase)
		require.Equal(t, []evidence.Witness{evidence.Says("true", "PREEMPT_DYNAMIC in the linux_banner", evidence.Coded)}, fact(t, img, "Preemption").Against)
		require.Equal(t, evidence.Fact{Name: "FramePointer", Value: "true",
			Evidence: "CONFIG_FRAME_POINTER=y in " + path + "; profile 6.1 has it otherwise", From: evidence.Configured}, fact(t, img, "FramePointer"))
	}
	_, err := FromBytes("k", testKernel(v61), &Options{Config: writeFile(t, "other", []byte("no config"))})
	require.ErrorContains(t, err, "it is no kernel configuration")
}

// TestConfigBeside: a configuration beside the image's file is read without an option,
// if it is of the image's release.
func TestConfigBeside(t *testing.T) {
	title := func(release string) string {
		return "#\n# Automatically generated file; DO NOT EDIT.\n# Linux/x86 " + release + " Kernel Configuration\n#\nCONFIG_HZ=1000\n"
	}
	for name, c := range map[string]struct{ image, config, text, says string }{
		"of_a_release":       {"vmlinuz-6.1.0-test", "config-6.1.0-test", title("6.1.0"), ""},
		"of_the_modules":     {"vmlinuz", "config", title("6.1.0-test"), ""},
		"of_a_vendor":        {"vmlinux-x", "config-x", title("6.1.55"), ""},
		"of_another_release": {"vmlinuz", "config", title("6.12.3"), "is of release 6.12.3"},
		"of_no_release":      {"vmlinuz", "config", title("\x1b[2J"), `is of release \u001b[2J`},
		"of_no_kernel":       {"vmlinuz", "config", "CONFIG_HZ=1000\n", "does not begin as a kernel's configuration does"},
		"too_long":           {"vmlinuz", "config", title("6.1.0") + strings.Repeat("#", bounded.Configuration), "more than 4 MiB"},
		"of_another_name":    {"vmlinuz-6.1.0-test", "config-6.1.0", title("6.1.0"), "-"},
		"of_no_name":         {"image", "config", title("6.1.0"), "-"},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, c.image, testKernel(v61))
			beside := filepath.Join(filepath.Dir(path), c.config)
			require.NoError(t, os.WriteFile(beside, []byte(c.text), 0o600))
			img, err := Open(path, &Options{NoBoot: true})
			require.NoError(t, err)
			switch c.says {
			case "":
				require.Equal(t, beside, fact(t, img, "configuration").Value)
				require.Equal(t, 1000, img.Profile().HZ)
				require.Equal(t, "CONFIG_HZ in "+c.config, fact(t, img, "HZ").Evidence)
				return
			case "-":
				require.Zero(t, img.Fact("configuration"))
			default:
				require.Equal(t, "not used", fact(t, img, "configuration").Value)
				require.Contains(t, fact(t, img, "configuration").Evidence, c.says)
			}
			require.Zero(t, img.Fact("HZ"))

			other := writeFile(t, "other", []byte("CONFIG_HZ=100\n"))
			img, err = Open(path, &Options{NoBoot: true, Config: other})
			require.NoError(t, err)
			require.Equal(t, 100, img.Profile().HZ, "the one that is asked for comes first")
			require.Zero(t, img.Fact("configuration"))
		})
	}
	t.Run("of_no_file", func(t *testing.T) {
		path := writeFile(t, "vmlinuz", testKernel(v61))
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "config"), []byte(title("6.1.0")), 0o600))
		img, err := FromBytes(path, testKernel(v61), nil)
		require.NoError(t, err)
		require.Zero(t, img.Fact("configuration"), "the name of bytes is no file")
	})
	t.Run("a_folder", func(t *testing.T) {
		path := writeFile(t, "vmlinuz", testKernel(v61))
		require.NoError(t, os.Mkdir(filepath.Join(filepath.Dir(path), "config"), 0o700))
		img, err := Open(path, nil)
		require.NoError(t, err)
		require.Equal(t, "not used", fact(t, img, "configuration").Value)
	})
}

func TestGivenProfileWins(t *testing.T) {
	p, _ := profile.Named("4.4")
	img := openBytes(t, testKernel(v61), &Options{Profile: p})
	require.Equal(t, p, img.Profile())
	require.NotSame(t, p, img.Profile())
}

// TestEmbeddedConfig reads CONFIG_IKCONFIG's copy.
func TestEmbeddedConfig(t *testing.T) {
	data := append([]byte("IKCFG_ST"), packGzip(t, []byte("CONFIG_HZ=100\nCONFIG_PREEMPTION=y\n"))...)
	img := openBytes(t, testELF(etExec,
		testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, addr: testBase, data: make([]byte, 16)},
		testSection{name: ".rodata", typ: 1, flags: shfAlloc, addr: testBase + 0x1000, data: append(data, "IKCFG_ED"...)}), nil)
	require.Equal(t, 100, img.Profile().HZ)
	require.Contains(t, fact(t, img, "HZ").Evidence, "embedded")
}

// TestVermagic: a module alone tells its kernel's release.
func TestVermagic(t *testing.T) {
	img := openBytes(t, testELF(etRel,
		testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, data: make([]byte, 16)},
		testSection{name: ".modinfo", typ: 1, flags: shfAlloc, data: []byte("license=GPL\x00vermagic=5.10.0-test SMP mod_unload \x00")}), nil)
	require.Equal(t, "5.10", img.Profile().Name)
	require.False(t, img.Profile().Preemption)
	require.Equal(t, "no PREEMPT in the vermagic in .modinfo", fact(t, img, "Preemption").Evidence)
}

// TestMiddleOfSiteByCode: the errno for the middle of an ftrace site is, or is
// not, in the code that looks for one.
func TestMiddleOfSiteByCode(t *testing.T) {
	symbols := writeFile(t, "System.map", fmt.Appendf(nil, "%x T _text\n%x W arch_check_ftrace_location\n%x T next\n",
		uint64(testBase), uint64(testBase), uint64(testBase)+16))
	for code, want := range map[string]string{
		"55 41b8acffffff c3 cc": "true",  // mov $-EILSEQ,%r8d
		"55 b8eaffffff c3 cc":   "false", // mov $-EINVAL,%eax
		"c3 cc b8acffffff c3":   "true",  // after a return and padding
	} {
		text := append(fromHex(t, code), bytes.Repeat([]byte{0xcc}, 16)...)
		text = append(text[:16], fromHex(t, "b8acffffff c3")...) // another function
		img := openBytes(t, testELF(etExec, testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, addr: testBase, data: text}),
			&Options{SystemMap: symbols, NoBoot: true})
		require.Equal(t, want, fact(t, img, "Check.FtraceSiteMiddle").Value, code)
		require.Equal(t, want == "true", img.Profile().Check.FtraceSiteMiddle)
	}
	img := openBytes(t, testKernel(v61), nil)
	require.Empty(t, img.facts.Value("Check.FtraceSiteMiddle"), "without the function nothing is known")
}

// TestStarByCode: the errno for $arg* without BTF is, or is not, in the code that
// expands it.
func TestStarByCode(t *testing.T) {
	symbols := writeFile(t, "System.map", fmt.Appendf(nil, "%x T _text\n%x T traceprobe_expand_meta_args\n%x T next\n",
		uint64(testBase), uint64(testBase), uint64(testBase)+16))
	for code, want := range map[string]string{
		"55 48c7c0a1ffffff c3": "true",  // mov $-EOPNOTSUPP,%rax
		"55 48c7c0eaffffff c3": "false", // mov $-EINVAL,%rax
	} {
		text := append(fromHex(t, code), bytes.Repeat([]byte{0xcc}, 16)...)
		text = append(text[:16], fromHex(t, "48c7c0a1ffffff c3")...) // another function
		img := openBytes(t, testELF(etExec, testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, addr: testBase, data: text}),
			&Options{SystemMap: symbols, NoBoot: true})
		require.Equal(t, want, fact(t, img, "Tracing.StarRefused").Value, code)
		require.Equal(t, want == "true", img.Profile().Tracing.StarRefused)
	}
	img := openBytes(t, testKernel(v61), nil)
	require.Empty(t, img.facts.Value("Tracing.StarRefused"), "without the function nothing is known")
}

// TestPoisonByCode: the nop over a sealed ENDBR is in the code that writes it.
func TestPoisonByCode(t *testing.T) {
	symbols := writeFile(t, "System.map", fmt.Appendf(nil, "%x T _text\n%x T is_endbr\n%x T next\n",
		uint64(testBase), uint64(testBase), uint64(testBase)+16))
	for code, want := range map[string]string{
		"8b07 3d0f1f40d6 7411": "true",
		"8b07 3d660f1f00 7411": "false",
	} {
		text := append(fromHex(t, code), bytes.Repeat([]byte{0xcc}, 32)...)
		copy(text[16:], opened.SealedNopl4) // the entry of another function
		img := openBytes(t, testELF(etExec, testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, addr: testBase, data: text}),
			&Options{SystemMap: symbols, NoBoot: true})
		require.Equal(t, want, fact(t, img, "Resolve.NoplPoison").Value, code)
	}
}

// TestOpcodeTable: the kernel's own opcode table shows the instructions of its decoder.
func TestOpcodeTable(t *testing.T) {
	symbols := writeFile(t, "System.map", fmt.Appendf(nil, "%x T _text\n%x R inat_primary_table\n%x R next\n",
		uint64(testBase), uint64(testBase)+16, uint64(testBase)+16+1024))
	for name, tc := range map[string]struct {
		push, pop, rex2 uint32 // the entries of 06, 8F and D5
		want            [3]string
	}{
		"6.1":  {0, 0xc080, 0x800, [3]string{"false", "false", "false"}},
		"6.18": {0x4000000, 0x18111, 0x1010, [3]string{"true", "true", "true"}},
	} {
		data := make([]byte, 16+1024)
		le.PutUint32(data[16+4*0x06:], tc.push)
		le.PutUint32(data[16+4*0x8f:], tc.pop)
		le.PutUint32(data[16+4*0xd5:], tc.rex2)
		img := openBytes(t, testELF(etExec, testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, addr: testBase, data: data}),
			&Options{SystemMap: symbols, NoBoot: true})
		for i, f := range []string{"Decoder.INV64", "Decoder.XOP", "Decoder.REX2"} {
			require.Equal(t, tc.want[i], fact(t, img, f).Value, name+" "+f)
		}
	}
}

// TestTemplateTellsTheFrame: the ss word is pushed first, if the frame has one.
func TestTemplateTellsTheFrame(t *testing.T) {
	for code, want := range map[string]string{"6a18 54 9c": "true", "54 9c 90 90": "false"} {
		symbols := writeFile(t, "System.map", fmt.Appendf(nil, "%x T _text\n%x T optprobe_template_entry\n", uint64(testBase), uint64(testBase)))
		img := openBytes(t, testELF(etExec, testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, addr: testBase, data: fromHex(t, code)}),
			&Options{SystemMap: symbols, NoBoot: true})
		require.Equal(t, want, fact(t, img, "Optimize.SSWord").Value)
		require.Equal(t, evidence.Coded, fact(t, img, "Optimize.SSWord").From)
		require.Equal(t, want == "true", img.Profile().Optimize.SSWord)
	}
}

// TestListTellsSwitchTo: __switch_to is refused if it is in the list. The registration
// decides whether a probe is placed at the list's address.
func TestListTellsSwitchTo(t *testing.T) {
	const data, name = testBase + 0x1000, testBase + 0x1010
	for _, c := range []struct{ entry, name, want string }{
		{"55 90 90 90", "__switch_to\x00", "true"},
		{"f30f1efa", "__switch_to\x00", "true"},
		{"55 90 90 90", "other_name_\x00", "false"},
		{"55 90 90 90", "__switch_to", "false"}, // not ended
	} {
		symbols := writeFile(t, "System.map", fmt.Appendf(nil, "%x T _text\n%x T __switch_to\n%x D kretprobe_blacklist\n",
			uint64(testBase), uint64(testBase), uint64(data)))
		list := append(le.AppendUint64(nil, uint64(name)), make([]byte, 8)...)
		img := openBytes(t, testELF(etExec,
			testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, addr: testBase, data: fromHex(t, c.entry)},
			testSection{name: ".data", typ: 1, flags: shfAlloc, addr: data, data: append(list, c.name...)}),
			&Options{SystemMap: symbols, NoBoot: true})
		require.Equal(t, c.want, fact(t, img, "Kret.BlacklistSwitchTo").Value, c)
	}
}

// TestNeighbourRulesBySymbol: the optimizer's rules for neighbours depend on which of
// its functions are global.
func TestNeighbourRulesBySymbol(t *testing.T) {
	const field = "Optimize.EnabledNeighboursOnly"
	for symbols, want := range map[string]string{
		"T kprobe_disarmed, t arch_optimize_kprobes": "false",
		"t kprobe_disarmed, t arch_optimize_kprobes": "true",
		"t arch_optimize_kprobes":                    "true",
		"T kprobe_disarmed":                          "", // a kernel that does not optimize
	} {
		table := fmt.Appendf(nil, "%x T _stext\n", uint64(testBase))
		for i, s := range strings.Split(symbols, ", ") {
			table = fmt.Appendf(table, "%x %s\n", uint64(testBase)+uint64(16*i), s)
		}
		table = fmt.Appendf(table, "%x T _etext\n", uint64(testBase)+0x40)
		img := openBytes(t, testELF(etExec, testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, addr: testBase, data: make([]byte, 0x40)}),
			&Options{SystemMap: writeFile(t, "System.map", table), NoBoot: true})
		require.Equal(t, want, img.facts.Value(field), symbols)
		if want != "" {
			require.Equal(t, want == "true", img.Profile().Optimize.EnabledNeighboursOnly, symbols)
		}
	}
}

// TestOptimizesWithPreemption: a kernel that has both optimizes with both, whatever its release
// (4.14.67 of another tree).
func TestOptimizesWithPreemption(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		want   bool
	}{
		"both":            {"CONFIG_OPTPROBES=y\nCONFIG_PREEMPT=y\n", true},
		"not_optimized":   {"# CONFIG_OPTPROBES is not set\nCONFIG_PREEMPT=y\n", false},
		"without_preempt": {"CONFIG_OPTPROBES=y\n# CONFIG_PREEMPT is not set\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			banner := "Linux version 4.14.20 (x@y) (gcc) #1 SMP\n"
			if name != "without_preempt" {
				banner = "Linux version 4.14.20 (x@y) (gcc) #1 SMP PREEMPT Mon\n"
			}
			img := &Image{kind: KindKernel, sections: []*Section{{Name: ".rodata", Addr: testText, Data: append([]byte(banner), 0)}}}
			img.opts.Config = writeFile(t, "config", []byte(c.config))
			require.NoError(t, img.choose())
			require.Equal(t, c.want, img.Profile().Optprobes())
		})
	}
}
