package processor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func parse(s string) (*Model, error) {
	return Parse(s, os.ReadFile, func(flag string) bool {
		return flag == "smap" || flag == "fsgsbase" || flag == "clflush" || flag == "xsave" || flag == "cx16"
	}, func() []string { return []string{"erms", "smap"} })
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
		require.Equal(t, c.name, m.Name)
		require.True(t, m.Flags[c.has], "%s: %s", text, c.has)
		require.False(t, m.Flags[c.hasNot], "%s: %s", text, c.hasNot)
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
		require.Equal(t, text != "./nothing", errors.Is(err, ErrUnknown))
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
	require.Equal(t, &Model{Updated: true, Name: file, Vendor: Intel, Family: 6, Number: 60,
		Flags: Words("fpu smap"), Bugs: Words("spectre_v2 its")}, m)

	require.NoError(t, os.WriteFile(file, []byte("flags: fpu\n"), 0o600))
	_, err = parse(file)
	require.ErrorAs(t, err, new(*FileError))
	require.ErrorContains(t, err, "vendor_id, cpu family, flags and bugs are wanted")
}

func TestNearestCPU(t *testing.T) {
	engine := []string{"conroe", "epyc", "epyc-rome", "haswell", "icelake-server", "kvm64", "nehalem", "qemu64", "skylake-client"}
	host := func(vendor, flags string) *Model {
		return &Model{Name: Host, Vendor: vendor, Flags: Words(baseFlags + " " + flags)}
	}
	for name, c := range map[string]struct {
		cpu  *Model
		want string
	}{
		"itself":                     {Named("Haswell"), "haswell"},
		"a_model_the_engine_has_not": {Named("EPYC-Milan"), "epyc-rome"},
		"a_host":                     {host(Intel, serverFlags+" umip vaes avx512f"), "icelake-server"},
		"an_amd_host":                {host(AMD, zenFlags+" clwb umip avx512f"), "epyc-rome"},
		"an_old_host":                {host(Intel, nehalemFlags), "nehalem"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, c.cpu.Nearest(engine))
		})
	}
	for _, name := range Names() {
		require.Equal(t, name, Named(name).Nearest(Names()))
	}
	require.Empty(t, Named("qemu64").Nearest([]string{"conroe"}))
}

// A feature added to a model may need another model to run.
func TestNearestCPUHasWhatWasAdded(t *testing.T) {
	for text, want := range map[string]string{
		"qemu64,-cx16": "qemu64", "qemu64,+smap": "EPYC", "Haswell,+smap": "Broadwell", "qemu64,+amx_tile": "qemu64",
	} {
		m, err := Parse(text, os.ReadFile, func(string) bool { return true }, nil)
		require.NoError(t, err)
		got := m.Nearest(Names())
		require.Equal(t, want, got, strings.ToLower(text))
	}
}
