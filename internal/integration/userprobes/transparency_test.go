package userprobes

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/engine"
	"kprobelab/internal/process"
	"kprobelab/internal/transparent"
	"kprobelab/profile"
)

// compiled returns a program of testdata with the C library in it; native is its path on the host.
func compiled(t *testing.T, source string) (f *process.File, native string) {
	out := filepath.Join(t.TempDir(), "prog")
	cmd := exec.Command("gcc", "-O2", "-static", "-pthread", "-o", out, filepath.Join("testdata", source), "-lm")
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("there is no gcc to compile the program with")
	}
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
	b, err := os.ReadFile(out)
	require.NoError(t, err)
	return &process.File{Name: "/bin/prog", Data: b}, out
}

// runner runs a program, and fails the test where it cannot.
type runner struct {
	transparent.Runner
	t *testing.T
}

func newRunner(t *testing.T, c *profile.Config, f *process.File, engine string, args ...string) *runner {
	return &runner{transparent.Runner{Rules: c, File: f, Engine: engine, Args: args}, t}
}

// run runs it with probes at these places, and adds to hits how often each was met.
func (r *runner) run(at []uint64, hits map[uint64]uint64) transparent.Outcome {
	o, err := r.Run(at, hits)
	require.NoError(r.t, err)
	return o
}

// placesOf returns the file offsets of the instructions that can be probed, in all functions of a
// source and some of the library; entries are the offsets of the functions with these names.
func placesOf(t *testing.T, c *profile.Config, f *process.File, source string, library map[string]bool, names ...string) (at, entries []uint64) {
	list, err := transparent.Functions(f, c, source)
	require.NoError(t, err)
	for _, fn := range list {
		if fn.Own || library[fn.Name] {
			at = append(at, fn.Instructions...)
		}
		if slices.Contains(names, fn.Name) {
			entries = append(entries, fn.Entry)
		}
	}
	return transparent.Probable(f, c, at).At, entries
}

// timeLimit returns the time for which instructions are tried one at a time, by the rules of each
// release; 0 for no limit.
func timeLimit(t *testing.T) time.Duration {
	text := os.Getenv("KPROBELAB_MINUTES")
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return time.Duration(n) * time.Minute
}

const libraryFunctions = 200

// Rule: with probes on every instruction of a program, and of 200 functions of libc that it
// calls, output, exit code and memory are the same.
func TestTransparency(t *testing.T) {
	whole := os.Getenv("KPROBELAB_SOAK") != ""
	releases := []string{"6.1"}
	if whole {
		releases = []string{"6.1", "6.12", "7.3"}
	}
	f, _ := compiled(t, "program.c")
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			c, ok := profile.Named(release)
			require.True(t, ok)
			r := newRunner(t, c, f, "interp", "arg")
			want := r.run(nil, nil)
			require.Equal(t, 9, want.Code, "%s%s", want.Stdout, want.Stderr)
			places, err := r.Called(libraryFunctions, "program.c")
			require.NoError(t, err)
			require.Equal(t, want, r.run(places.At, nil), "all at once")
			executed, err := r.Executions(places.At)
			require.NoError(t, err)
			calls, err := r.Executions(places.AsCalls)
			require.NoError(t, err)
			require.Equal(t, outside(want), outside(r.run(places.AsCalls, nil)), "all nops that become calls")
			for at := range calls {
				require.Equal(t, outside(want), outside(r.run([]uint64{at}, nil)), "the call at %#x", at)
			}
			for _, other := range engine.Names() {
				if other != r.Engine {
					on := newRunner(t, c, f, other, r.Args...)
					plain := on.run(nil, nil)
					require.Equal(t, want.Stdout, plain.Stdout)
					require.Equal(t, plain, on.run(places.At, nil), "all at once on %s", other)
				}
			}
			met, unmet := apart(places.At, executed)
			if !whole {
				n := 40
				if testing.Short() {
					n = 200
				}
				met, unmet = met[:len(met)/n], nil
			}
			limit, began, alone := timeLimit(t), time.Now(), 0
			for _, at := range append(met, unmet...) {
				if limit > 0 && time.Since(began) > limit {
					break
				}
				hits := map[uint64]uint64{}
				require.Equal(t, want, r.run([]uint64{at}, hits), "at %#x", at)
				require.Equal(t, executed[at], hits[at], "hits at %#x", at)
				alone++
			}
			t.Logf("%d instructions of %d functions of libc and of the program: %d executed, %d tried one at a time, %d of them not executed; %d nops that become calls, %d executed; %d more refused, %v left out",
				len(places.At), libraryFunctions, len(executed), alone, max(0, alone-len(met)), len(places.AsCalls), len(calls), places.Refused, places.Harmful)
		})
	}
}

// apart are the places that are executed, and the others, each in an order that is no order of
// theirs, for a run may end before all are tried.
func apart(places []uint64, executed map[uint64]uint64) (met, unmet []uint64) {
	for _, at := range places {
		if executed[at] > 0 {
			met = append(met, at)
		} else {
			unmet = append(unmet, at)
		}
	}
	r := rand.New(rand.NewPCG(1, 0))
	for _, list := range [][]uint64{met, unmet} {
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return met, unmet
}
