package kimage

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNearestCPU(t *testing.T) {
	engine := []string{"conroe", "epyc", "epyc-rome", "haswell", "icelake-server", "kvm64", "nehalem", "qemu64", "skylake-client"}
	host := func(vendor, flags string) *cpuModel {
		return &cpuModel{name: HostCPU, vendor: vendor, flags: wordSet(baseFlags + " " + flags)}
	}
	for name, c := range map[string]struct {
		cpu  *cpuModel
		want string
	}{
		"unknown_is_the_default":     {nil, "qemu64"},
		"itself":                     {namedModel("Haswell"), "haswell"},
		"a_model_the_engine_has_not": {namedModel("EPYC-Milan"), "epyc-rome"},
		"a_host":                     {host(vendorIntel, serverFlags+" umip vaes avx512f"), "icelake-server"},
		"an_amd_host":                {host(vendorAMD, zenFlags+" clwb umip avx512f"), "epyc-rome"},
		"an_old_host":                {host(vendorIntel, nehalemFlags), "nehalem"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, (&Image{cpu: c.cpu}).NearestCPU(engine))
		})
	}
	for _, name := range CPUModels() {
		require.Equal(t, name, (&Image{cpu: namedModel(name)}).NearestCPU(CPUModels()))
	}
	require.Empty(t, (&Image{}).NearestCPU([]string{"conroe"}))
}

// A feature added to a model may need another model to run.
func TestNearestCPUHasWhatWasAdded(t *testing.T) {
	for text, want := range map[string]string{
		"qemu64,-cx16": "qemu64", "qemu64,+smap": "EPYC", "Haswell,+smap": "Broadwell", "qemu64,+amx_tile": "qemu64",
	} {
		m, err := parseCPU(text, func(string) bool { return true }, nil)
		require.NoError(t, err)
		got := (&Image{cpu: m}).NearestCPU(CPUModels())
		require.Equal(t, want, got, strings.ToLower(text))
	}
}
