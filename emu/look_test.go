//go:build unicorn && cgo && linux && amd64

package emu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/internal/cpumodel"
	"kprobelab/internal/tinyguest"
	"kprobelab/machine"
)

// TestModelsAreKnown: every model of the engine has a vendor, and reads instructions as
// that vendor's processors do.
func TestModelsAreKnown(t *testing.T) {
	amd := map[string]bool{
		"qemu64": true, "phenom": true, "opteron_g1": true, "opteron_g2": true, "opteron_g3": true, "opteron_g4": true, "opteron_g5": true,
		"epyc": true, "epyc-rome": true, "dhyana": true,
	}
	require.Equal(t, CPUModels(), cpumodel.Names())
	for name := range cpuModels {
		m, err := cpumodel.Named(name)
		require.NoError(t, err)
		require.Equal(t, amd[name], m.Reads.AMD, name)
	}
}

// TestEngineReadsAsItsModel: the engine looks for these instructions at the boundaries of the
// model's processor.
func TestEngineReadsAsItsModel(t *testing.T) {
	for _, tt := range []struct {
		hazard, model string
		amd           bool
	}{
		{"default_is_amd", "", true},
		{"amd", "epyc", true},
		{"hygon", "dhyana", true},
		{"intel", "haswell", false},
		{"intel_with_another_case", "Skylake-Client", false},
	} {
		t.Run(tt.hazard, func(t *testing.T) {
			var seen *engine
			m, err := machine.New(&tinyguest.Image{}, &machine.Options{CPUModel: tt.model}, func(h *machine.Host) (machine.Engine, error) {
				e, err := open(h)
				if err == nil {
					seen = e.(*engine)
				}
				return e, err
			})
			require.NoError(t, err)
			defer m.Close()
			require.Equal(t, tt.amd, seen.reads.AMD)
		})
	}
}

// TestLookReadsAsTheProcessor: after ud0 of AMD's processors, which has no ModRM, another
// instruction begins than after Intel's.
func TestLookReadsAsTheProcessor(t *testing.T) {
	none := func(int) bool { return false }
	ud0 := []byte{0x0f, 0xff, 0x0f, 0x23, 0xf9, 0x90} // AMD: mov %rcx,%dr7; Intel: and %ecx,%edi
	at, _ := look(decoder.Processor{AMD: true}, ud0, none)
	require.Equal(t, 2, at)
	at, _ = look(decoder.Processor{}, ud0, none)
	require.Equal(t, -1, at)
	near := []byte{0x66, 0xe8, 0x00, 0x00, 0x0f, 0x23, 0xf9, 0x90, 0x90, 0x90} // AMD: a call of four bytes
	at, _ = look(decoder.Processor{AMD: true}, near, none)
	require.Equal(t, 4, at)
	at, _ = look(decoder.Processor{}, near, none)
	require.Equal(t, -1, at)
}
