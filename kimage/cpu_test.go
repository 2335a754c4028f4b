package kimage

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func parse(s string) (*cpuModel, error) {
	return parseCPU(s, func(flag string) bool { return namedFeatures[flag] != 0 }, func() []string { return []string{"erms", "smap"} })
}

func TestParseCPU(t *testing.T) {
	for text, c := range map[string]struct{ name, has, hasNot string }{
		"":                          {"qemu64", "cx16", "smap"},
		"qemu64,-cx16,+smap":        {"qemu64", "smap", "cx16"},
		"epyc":                      {"EPYC", "smap", "erms"},
		"haswell,-erms,":            {"Haswell", "smep", "erms"},
		"Skylake-Client,+clflush":   {"Skylake-Client", "clflush", "clwb"},
		"qemu64,+FSGSBASE":          {"qemu64", "fsgsbase", "smap"},
		"EPYC-Milan,-lahf-lm":       {"EPYC-Milan", "erms", "lahf_lm"},
		"Nehalem,-sse4.1,-pni":      {"Nehalem", "sse4_2", "sse4_1"},
		"Icelake-Server,-la57":      {"Icelake-Server", "umip", "la57"},
		"kvm64,+xsave,-xsave,+smap": {"kvm64", "smap", "xsave"},
	} {
		m, err := parse(text)
		require.NoError(t, err, text)
		require.Equal(t, c.name, m.name)
		require.True(t, m.flags[c.has], "%s: %s", text, c.has)
		require.False(t, m.flags[c.hasNot], "%s: %s", text, c.hasNot)
	}
}

// An unknown processor or feature is one sentence that lists the known ones.
func TestParseCPUErrors(t *testing.T) {
	for text, want := range map[string]string{
		"z80":          `CPU model "z80" is not known; there are Broadwell, Cascadelake-Server, ClearwaterForest, DiamondRapids, EPYC, EPYC-Genoa`,
		"qemu64,+warp": `CPU feature "+warp" is not known; write +name or -name; this kernel's text depends on these: erms, smap`,
		"qemu64,cx16":  `CPU feature "cx16" is not known`,
		"qemu64,+":     `CPU feature "+" is not known`,
		"./nothing":    "no such file",
	} {
		_, err := parse(text)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
		require.Equal(t, text != "./nothing", errors.Is(err, ErrCPU))
	}
}

// A file in the form of /proc/cpuinfo is a processor; its first one counts.
func TestCPUFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cpuinfo")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join([]string{
		"processor\t: 0", "vendor_id\t: GenuineIntel", "cpu family\t: 6", "model\t\t: 60", "flags\t\t: fpu cx16 smap", "bugs\t\t: spectre_v2 its", "",
		"processor\t: 1", "vendor_id\t: GenuineIntel", "flags\t\t: fpu", "bugs\t\t:", "",
	}, "\n")), 0o600))
	m, err := parse(file + ",-cx16")
	require.NoError(t, err)
	require.Equal(t, &cpuModel{updated: true, name: file, vendor: vendorIntel, family: 6, model: 60,
		flags: wordSet("fpu smap"), bugs: wordSet("spectre_v2 its")}, m)

	require.NoError(t, os.WriteFile(file, []byte("flags: fpu\n"), 0o600))
	_, err = parse(file)
	require.ErrorIs(t, err, ErrFormat)
	require.ErrorContains(t, err, "vendor_id, cpu family, flags and bugs are wanted")
}

// Rule: a release to 5.12 chooses its nops by the processor.
func TestNopsByProcessor(t *testing.T) {
	for name, k8 := range map[string]bool{"qemu64": true, "EPYC": false, "kvm64": false, "Nehalem": true, "Haswell": false} {
		require.Equal(t, k8, namedModel(name).k8Nops(), name)
	}
}
