package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The documentation's tables (kprobes.rst, Optimized Probe Overhead), in
// microseconds per hit.
var documented = map[string]map[string]float64{
	"x86-64": {"k": 0.99, "b": 0.43, "o": 0.06, "r": 1.24, "rb": 0.68, "ro": 0.30},
	"i386":   {"k": 0.80, "b": 0.33, "o": 0.05, "r": 1.10, "rb": 0.61, "ro": 0.33},
}

func TestModelReproducesTheDocumentation(t *testing.T) {
	require.Len(t, HardwareNames(), len(documented))
	for name, row := range documented {
		h, ok := NamedHardware(name)
		require.True(t, ok)
		for _, p := range Paths() {
			if want, ok := row[p.Name]; ok {
				require.InEpsilon(t, want, h.Cost(p.parts), 0.05, "%s %s", name, p.Name)
			}
		}
	}
	_, ok := NamedHardware("vax")
	require.False(t, ok)
}

func TestPathsShowTheDocumentation(t *testing.T) {
	for _, p := range Paths() {
		if want, ok := documented["x86-64"][p.Name]; ok {
			require.Equal(t, want, p.Documented)
		}
	}
}

func TestParseHardware(t *testing.T) {
	h, err := ParseHardware([]byte(`{"name": "mine", "trap_us": 1, "step_us": 2, "detour_us": 0.5, "trampoline_us": 0.25}`))
	require.NoError(t, err)
	require.InDelta(t, 3.25, h.Cost(Parts{Traps: 1, Steps: 1, Trampolines: 1}), 1e-9)
	for _, bad := range []string{``, `{}`, `{"name": "x", "trap_us": -1}`, `{"name": "x", "trap": 1}`, `[]`} {
		_, err := ParseHardware([]byte(bad))
		require.Error(t, err, bad)
	}
}

func TestQuartiles(t *testing.T) {
	low, median, high := quartiles([]float64{5, 1, 4, 2, 3})
	require.Equal(t, []float64{2, 3, 4}, []float64{low, median, high})
	low, median, high = quartiles([]float64{1, 2})
	require.Equal(t, []float64{1.25, 1.5, 1.75}, []float64{low, median, high})
	low, median, high = quartiles(nil)
	require.Zero(t, low+median+high)
}

func TestRatios(t *testing.T) {
	r := &Report{Paths: []Result{{Path: "k", NS: 100, Documented: 0.99}, {Path: "b", NS: 50, Documented: 0.43}}}
	_, _, ok := r.Ratios()
	require.False(t, ok)
	r.Paths = append(r.Paths, Result{Path: "o", NS: 10, Documented: 0.06})
	have, doc, ok := r.Ratios()
	require.True(t, ok)
	require.Equal(t, [3]float64{10, 5, 1}, have)
	require.InDelta(t, 16.5, doc[0], 0.01)
}

// A processor has a name, or a file that describes it; another word is refused with the names.
func TestProcessorsByNameOrFile(t *testing.T) {
	h, err := FindHardware("i386")
	require.NoError(t, err)
	require.Equal(t, "i386", h.Name)
	file := filepath.Join(t.TempDir(), "mine.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"name": "mine", "trap_us": 1}`), 0o600))
	h, err = FindHardware(file)
	require.NoError(t, err)
	require.Equal(t, "mine", h.Name)
	require.NoError(t, os.WriteFile(file, []byte(`{"name": "mine", "trap_us": -1}`), 0o600))
	_, err = FindHardware(file)
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrNoHardware)
	_, err = FindHardware("vax")
	require.EqualError(t, err, `there is no processor and no file "vax": there are x86-64, i386`)
	require.ErrorIs(t, err, ErrNoHardware)
}
