package compare

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
)

// openIcedAMD is iced that reads as AMD's processors do, without MPX.
func openIcedAMD(t *testing.T) Decoder {
	t.Helper()
	for _, dir := range Dirs() {
		if path, err := exec.LookPath(filepath.Join(dir, "iced")); err == nil {
			d, err := StartChild("iced amd", path, "amd")
			require.NoError(t, err)
			t.Cleanup(func() { _ = d.Close() })
			return d
		}
	}
	t.Skip("not compared with iced: there is no .cache/decoders/bin/iced")
	return nil
}

// TestAMDIsIceds: where iced reads bytes differently as Intel's processors and AMD's, so
// does Processor, with the same lengths and targets. What iced leaves out of AMD is known:
// sysenter and sysexit.
func TestAMDIsIceds(t *testing.T) {
	amd, intel := openIcedAMD(t), mustOpen(t, "iced")
	count := 400_000
	if testing.Short() {
		count = 40_000
	}
	q := NewQuestions(7)
	p := decoder.Processor{AMD: true, NoMPX: true}
	const size = 4000
	windows := make([][]byte, size)
	for i := range windows {
		windows[i] = make([]byte, decoder.MaxInsnSize)
	}
	asAMD, asIntel := make([]Answer, size), make([]Answer, size)
	differ := 0
	for range count / size {
		for _, w := range windows {
			q.Next(w)
		}
		require.NoError(t, amd.Ask(windows, asAMD))
		require.NoError(t, intel.Ask(windows, asIntel))
		for n, w := range windows {
			ours, err := p.Decode(w)
			zero, _ := decoder.Decode(w)
			if zero.Length != asIntel[n].Length || ours.Extension() == "APX_F" || zero.Class == decoder.ClassSyscall {
				continue
			}
			if asAMD[n].Length != asIntel[n].Length || asAMD[n].Target != asIntel[n].Target {
				differ++
			}
			require.Equal(t, asAMD[n].Length, ours.Length, "% x: %v; iced %v", w, err, asAMD[n])
			if asAMD[n].HasTarget && ours.Length != 0 {
				target, _ := ours.Target(0)
				require.Equal(t, uint16(asAMD[n].Target), uint16(target), "% x", w)
			}
		}
	}
	require.Greater(t, differ, count/2000)
	t.Logf("%d questions, at %d of which iced reads AMD's and Intel's processors differently", count, differ)
}
