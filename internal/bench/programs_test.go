package bench

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/integration/dumps"
	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/kimage"
)

// TestProgramsOnABootedKernel: each way has its hits, by the traps that it documents.
func TestProgramsOnABootedKernel(t *testing.T) {
	for _, name := range dumps.Running {
		t.Run(name, func(t *testing.T) {
			file := runs.File(t, name)
			r, err := Programs(&ProgramOptions{Rounds: 1, Hits: 400, Open: func() (*kimage.Image, error) { return kprobelab.OpenImage(file, nil) }})
			require.NoError(t, err)
			ways := map[string]ProgramResult{}
			for _, w := range r.Ways {
				ways[w.Way] = w
			}
			assert.InDelta(t, 4, ways["ptrace"].Switches, 0.2, "two stops, each there and back")
			assert.InDelta(t, 0, ways["step"].Switches, 0.2)
			assert.Equal(t, []float64{1, 1}, []float64{ways["step"].Traps, ways["step"].Steps})
			assert.Equal(t, []float64{1, 0}, []float64{ways["emulated"].Traps, ways["emulated"].Steps})
			assert.InDelta(t, 2, ways["return"].Traps+ways["return"].SystemCalls, 0.02, "the entry, and the return's trap or system call")
			for _, way := range []string{"nop5", "nop10"} {
				if w, ok := ways[way]; ok {
					assert.InDelta(t, 1, w.Traps+w.SystemCalls, 0.02, way)
					assert.Contains(t, []float64{0, 1}, w.Traps, "%s: once there is a call, no trap comes", way)
				} else {
					assert.Contains(t, r.Skipped, Skipped{Path: way, Reason: errUnprobed.Error()})
				}
			}
			assert.Greater(t, ways["ptrace"].Instructions, ways["step"].Instructions)
			assert.Greater(t, ways["step"].Instructions, ways["emulated"].Instructions)
		})
	}
}

func TestProgramsNeedABootedKernel(t *testing.T) {
	_, err := Programs(&ProgramOptions{Open: func() (*kimage.Image, error) { return kprobelab.OpenImage("-", nil) }})
	require.ErrorIs(t, err, ErrUnmeasurable)
	_, err = Programs(&ProgramOptions{Rounds: -1})
	require.Error(t, err)
}
