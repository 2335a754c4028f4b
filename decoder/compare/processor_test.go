package compare

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
)

// makers compares Processor with iced's option for AMD's processors.
type makers struct {
	processor decoder.Processor
	// differ are the questions at which iced reads AMD's and Intel's differently.
	differ [][]byte
}

// ask compares a batch; asAMD and asIntel are iced's answers.
func (m *makers) ask(t *testing.T, questions [][]byte, asAMD, asIntel []Answer) {
	for n, w := range questions {
		ours, err := m.processor.Decode(w)
		zero, _ := decoder.Decode(w)
		if zero.Length != asIntel[n].Length || ours.Extension() == "APX_F" || zero.Class == decoder.ClassSyscall {
			continue
		}
		if asAMD[n].Length != asIntel[n].Length || asAMD[n].Target != asIntel[n].Target {
			m.differ = append(m.differ, w)
		}
		require.Equal(t, asAMD[n].Length, ours.Length, "% x: %v; iced %v", w, err, asAMD[n])
		if asAMD[n].HasTarget && ours.Length != 0 {
			target, _ := ours.Target(0)
			require.Equal(t, uint16(asAMD[n].Target), uint16(target), "% x", w)
		}
	}
}

const (
	amdFile   = "iced-1.21.0-amd"
	intelFile = "iced-1.21.0-intel"
)

// TestAMDIsIceds: where iced reads bytes differently for Intel's processors and AMD's, so does
// Processor, with the same lengths and targets. The instructions that iced leaves out of AMD are
// known: sysenter and sysexit. The answers are recorded; if iced is installed, others are compared
// too.
func TestAMDIsIceds(t *testing.T) {
	m := &makers{processor: decoder.Processor{AMD: true, NoMPX: true}}
	if amd := openIcedAMD(t); amd != nil {
		t.Run("asked", func(t *testing.T) { askMakers(t, m, amd) })
	}
	amd, intel := readAnswers(t, "iced amd", amdFile), readAnswers(t, "iced", intelFile)
	recorded := &makers{processor: m.processor}
	asAMD, asIntel := make([]Answer, len(amd.questions)), make([]Answer, len(amd.questions))
	require.NoError(t, amd.Ask(amd.questions, asAMD))
	require.NoError(t, intel.Ask(amd.questions, asIntel))
	recorded.ask(t, amd.questions, asAMD, asIntel)
	require.Greater(t, len(recorded.differ), 1000)
	t.Logf("%d recorded answers, at %d of which iced reads AMD's and Intel's processors differently", len(amd.questions), len(recorded.differ))
}

// askMakers compares with iced, and with -update records iced's answers.
func askMakers(t *testing.T, m *makers, amd Decoder) {
	intel := mustOpen(t, "iced")
	count := 400_000
	if testing.Short() {
		count = 40_000
	}
	const size = 4000
	q := NewQuestions(7)
	asAMD, asIntel := make([]Answer, size), make([]Answer, size)
	for range count / size {
		windows := make([][]byte, size)
		for n := range windows {
			windows[n] = make([]byte, decoder.MaxInsnSize)
			q.Next(windows[n])
		}
		require.NoError(t, amd.Ask(windows, asAMD))
		require.NoError(t, intel.Ask(windows, asIntel))
		m.ask(t, windows, asAMD, asIntel)
	}
	require.Greater(t, len(m.differ), count/2000)
	t.Logf("%d questions, at %d of which iced reads AMD's and Intel's processors differently", count, len(m.differ))
	if *update {
		questions := append(m.differ, recordedQuestions()[:2000]...)
		writeAnswers(t, amdFile, amd, questions)
		writeAnswers(t, intelFile, intel, questions)
	}
}
