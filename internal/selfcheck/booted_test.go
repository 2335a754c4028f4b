package selfcheck

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/dumps"
	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/x86"
)

// TestBootedKernelsAgreeWithTheRules: the register_kprobe of a kernel that has booted
// answers everywhere, and as the rules do.
func TestBootedKernelsAgreeWithTheRules(t *testing.T) {
	n := 200
	if testing.Short() {
		n = 60
	}
	for _, kernel := range dumps.Kernels {
		t.Run(kernel, func(t *testing.T) {
			img, err := kimage.Open(runs.File(t, kernel), nil)
			require.NoError(t, err)
			points := append(Draw(img, n, 1), Insides(img, n/10, 1)...)
			r, err := Check(img, points, 0, nil)
			require.NoError(t, err)
			var text bytes.Buffer
			require.NoError(t, r.WriteText(&text))
			require.Zero(t, r.Differ(), text.String())
			for i := range r.Questions {
				q := &r.Questions[i]
				require.Positive(t, q.Asked, q.Function)
				require.Zero(t, q.Silent, q.Why)
			}
			require.Equal(t, len(points), r.Questions[0].Asked)
		})
	}
}

// TestBootedKernelShowsWrongRules: each question finds the rules of another release, or
// a changed one, wrong.
func TestBootedKernelShowsWrongRules(t *testing.T) {
	file := runs.File(t, "6.12")
	for function, change := range map[string]func(*profile.Config){
		"register_kprobe":         func(c *profile.Config) { c.Check.JumpLabels = false },
		"kprobe.addr":             func(c *profile.Config) { c.Resolve.SkipENDBR = false },
		"kprobe.flags":            func(c *profile.Config) { c.KprobesOnFtrace, c.Check.FtraceSites = false, false },
		"kprobe.ainsn.boostable":  func(c *profile.Config) { c.Preemption = false },
		"kprobe.ainsn.emulate_op": func(c *profile.Config) { c.Slot.Emulate = false },
		"kprobe.ainsn.insn":       func(c *profile.Config) { c.Step.TrapFlag = true },
		"get_kprobe":              func(c *profile.Config) { c.Optimize.Exists = false },
		"register_kretprobe":      func(c *profile.Config) { c.Kret.EntryOnly = false },
	} {
		t.Run(function, func(t *testing.T) {
			rules, ok := profile.Named("6.12")
			require.True(t, ok)
			changed := *rules
			change(&changed)
			img, err := kimage.Open(file, &kimage.Options{Profile: &changed})
			require.NoError(t, err)
			points := []x86.Addr{img.Sites(kimage.SiteJumpLabel)[0].Addr}
			for _, name := range []string{"vfs_read", "ksys_write"} {
				f, ok := img.SymbolAt(img.Lookup(name)[0].Addr)
				require.True(t, ok)
				for s := range kimage.NewWalker(img, &changed.Decoder).Function(f) {
					points = append(points, s.Addr)
				}
			}
			r, err := Check(img, points, 0, nil)
			require.NoError(t, err)
			for i := range r.Questions {
				if q := &r.Questions[i]; q.Function == function {
					require.Positive(t, q.Differ)
				}
			}
		})
	}
}

// TestBoundariesAndInsides: all of one kind, in order, and as many as there are at most.
func TestBoundariesAndInsides(t *testing.T) {
	img, err := kimage.Open("../../testdata/guest.elf", nil)
	require.NoError(t, err)
	starts := map[x86.Addr]bool{}
	for _, a := range All(img) {
		starts[a] = true
	}
	for name, draw := range map[string]func(*kimage.Image, int, uint64) []x86.Addr{"boundaries": Boundaries, "insides": Insides} {
		points := draw(img, 300, 7)
		require.Len(t, points, 300, name)
		require.IsIncreasing(t, points, name)
		require.Equal(t, points, draw(img, 300, 7), name)
		require.NotEqual(t, points, draw(img, 300, 8), name)
		for _, a := range points {
			require.Equal(t, name == "boundaries", starts[a], "%s %s", name, a)
		}
		require.LessOrEqual(t, len(draw(img, 1<<30, 7)), len(starts), name)
		require.Empty(t, draw(img, 0, 7), name)
	}
}
