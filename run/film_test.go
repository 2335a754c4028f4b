package run_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/film"
	"kprobelab/run"
)

// filmOf runs a plan on the guest kernel, and reads its film.
func filmOf(t *testing.T, plan *run.Kernel) *film.Film {
	t.Helper()
	img, err := kprobelab.OpenImage("", nil)
	require.NoError(t, err)
	var b bytes.Buffer
	rec := run.NewFilm(&b)
	require.NoError(t, plan.Run(img, rec))
	require.NoError(t, rec.Close())
	f, err := film.Read(&b)
	require.NoError(t, err)
	return f
}

func probeAt(t *testing.T, text string) run.KernelProbe {
	p, err := run.Kprobe(text)
	require.NoError(t, err)
	return p
}

// first returns the first state with a text.
func first(t *testing.T, f *film.Film, text string) *film.State {
	t.Helper()
	for i := range f.States {
		if f.States[i].Text == text {
			return &f.States[i]
		}
	}
	require.Fail(t, "no state "+text)
	return nil
}

// A film has each step of a hit with the handler's registers, each instruction of the probed function, and its bytes.
func TestAFilmOfAnInt3(t *testing.T) {
	f := filmOf(t, &run.Kernel{Probes: []run.KernelProbe{probeAt(t, "gcd+0x5")}, Jobs: []run.Job{{Text: "gcd(12, 18)"}}, Steps: true, CPUs: 1})
	require.Equal(t, "the kernel as it was before the probes", f.States[0].Text)
	planted := first(t, f, "the module has registered kprobe gcd+0x5 at gcd+0x5")
	require.Equal(t, "module", planted.Who)
	require.Equal(t, "gcd", planted.Code[0].Name)
	require.EqualValues(t, 0xcc, planted.Code[0].Bytes[5])
	require.NotEqualValues(t, 0xcc, planted.Code[0].Original[5])
	require.Equal(t, "slot", planted.Code[1].Kind)

	trap := first(t, f, "int3 at the probed address; ip is one past it")
	require.Equal(t, "CPU 0", trap.Who)
	require.True(t, trap.CPUs[0].Frame)
	require.Equal(t, "gcd+0x6", f.Symbolize(planted.Code[0].At.Add(6)))
	require.EqualValues(t, planted.Code[0].At.Add(6), trap.CPUs[0].Regs.IP)
	require.NotEmpty(t, trap.CPUs[0].Stack)

	instructions := 0
	for _, s := range f.States {
		if s.Text == "" {
			require.False(t, s.CPUs[0].Frame)
			instructions++
		}
	}
	require.Greater(t, instructions, 10, "the instructions of gcd")
	first(t, f, "gcd(12, 18) has returned 6")

	last := f.States[len(f.States)-1]
	require.Equal(t, "the module has unregistered kprobe gcd+0x5", last.Text)
	require.Equal(t, last.Code[0].Original, last.Code[0].Bytes)
	require.Len(t, last.Code, 1)
	require.EqualValues(t, 1, last.Probes[0].Hits)
}

// The optimizer's worker is in the film, with its jump and its detour buffer.
func TestAFilmOfAJump(t *testing.T) {
	f := filmOf(t, &run.Kernel{Probes: []run.KernelProbe{probeAt(t, "opt_yes")}, Jobs: []run.Job{{Text: "opt_yes(1)"}}, NoPost: true, Steps: true, CPUs: 1})
	hit := first(t, f, "the jump at the probed address led to the detour buffer, which built a frame and calls optimized_callback")
	require.EqualValues(t, 0xe9, hit.Code[0].Bytes[0])
	require.Equal(t, "a jump to its detour buffer", hit.Probes[0].State)
	require.Equal(t, "detour", hit.Code[len(hit.Code)-1].Kind)
	require.Equal(t, "worker", first(t, f, "opt_yes: write cc at A: whoever comes here traps").Who)
}

// A film of nothing is an error of the file alone; an error of writing is reported at the end.
func TestFilmsThatCannotBeWritten(t *testing.T) {
	require.NoError(t, run.NewFilm(&bytes.Buffer{}).Close())
	img, err := kprobelab.OpenImage("", nil)
	require.NoError(t, err)
	rec := run.NewFilm(full{})
	plan := &run.Kernel{Jobs: []run.Job{{Text: "gcd(12, 18)"}}, Steps: true, CPUs: 1}
	require.NoError(t, plan.Run(img, rec))
	require.ErrorIs(t, rec.Close(), errFull)

	rec = run.NewFilm(&bytes.Buffer{})
	plan.CPUs = 9
	require.NoError(t, plan.Run(img, rec))
	require.ErrorContains(t, rec.Close(), "a film has at most 8 processors")
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
