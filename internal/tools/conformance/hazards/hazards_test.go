package hazards

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/report"
	"kprobelab/kimage"
	"kprobelab/kprobes/hazard"
)

// TestJudgement: what a hazard and a neighbour have to come to.
func TestJudgement(t *testing.T) {
	danger := Point{Hazard: "CALL_PREFIX", Effect: hazard.Oops, Lands: 5}
	near := Point{Lands: 5}
	for name, test := range map[string]struct {
		result Result
		want   bool
	}{
		"oops_where_predicted":      {Result{Point: danger, Outcome: Oopsed, Landed: true}, true},
		"panic_where_predicted":     {Result{Point: danger, Outcome: Panicked, Landed: true}, true},
		"oops_elsewhere":            {Result{Point: danger, Outcome: Oopsed}, false},
		"came_there_and_nothing":    {Result{Point: danger, Outcome: Same, Landed: true}, false},
		"nothing_happened":          {Result{Point: danger, Outcome: Same}, false},
		"neighbour_is_quiet":        {Result{Point: near, Outcome: Same, Hits: 1}, true},
		"neighbour_is_never_hit":    {Result{Point: near, Outcome: Same}, false},
		"neighbour_oopses":          {Result{Point: near, Outcome: Oopsed, Hits: 1}, false},
		"neighbour_changes_results": {Result{Point: near, Outcome: Differed, Hits: 1}, false},
		"neighbour_hangs":           {Result{Point: near, Outcome: Hung, Hits: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, test.result.Agrees())
			require.Equal(t, !test.want, strings.HasPrefix(test.result.String(), "NOT AS PREDICTED"))
		})
	}
}

// TestWhatAWorkloadDid: the kernel's log, then how the workload ended, then what it wrote.
func TestWhatAWorkloadDid(t *testing.T) {
	for name, test := range map[string]struct {
		tried Tried
		want  Outcome
		where string
	}{
		"same":    {Tried{Before: "a", With: "a", Hits: 2}, Same, ""},
		"refused": {Tried{Refused: "invalid argument"}, Differed, ""},
		"oops":    {Tried{Before: "a", With: "", Log: "BUG: unable to handle page fault\nRIP: 0010:vfs_fallocate+0x130/0x340\n"}, Oopsed, "vfs_fallocate+0x130"},
		"warning": {Tried{Log: "WARNING: CPU: 0 PID: 1 at x.c:1 f+0x1/0x2"}, Oopsed, ""},
		"slow":    {Tried{Status: NotEnded}, Hung, ""},
		"results": {Tried{Before: "open <nil>\nread 5", With: "open <nil>\nread 6"}, Differed, ""},
		"killed":  {Tried{StatusBefore: "exit status 0", Status: "signal: killed"}, Differed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var r Result
			r.ran(&test.tried)
			require.Equal(t, test.want, r.Outcome)
			require.Equal(t, test.where, r.Where)
		})
	}
}

// TestDraw: candidates have a neighbour before them, and what is hit in idle is not drawn.
func TestDraw(t *testing.T) {
	img, err := kimage.FromBytes("guest", kprobelab.GuestELF(), nil)
	require.NoError(t, err)
	list, err := report.HazardPoints(img, nil)
	require.NoError(t, err)
	for i := range list { // the guest kernel's are harmless, or not for kprobe_events
		list[i].Effect = hazard.Oops
		if list[i].Reproducer != nil {
			list[i].Reproducer.Define = "p:h x"
		}
	}
	d := newDraw(img, list, rand.New(rand.NewPCG(1, 0)))
	require.Greater(t, len(d.candidates), 1)
	require.Equal(t, len(d.candidates), strings.Count(d.definitions(), "\n"))
	require.Equal(t, 1, d.reached([]byte("idle\td0\t3\nwork\td0\t9\nwork\td1\t2\nwork\tother\t1\n")))
	points := d.points(30)
	require.Len(t, points, 2)
	require.Empty(t, points[0].Hazard)
	require.Equal(t, d.candidates[1].Hazard, points[1].Hazard)
	require.Equal(t, "work", points[1].Workload)
	require.NotEqual(t, points[0].Addr, points[1].Addr)
}

// TestPage: a kernel's table is written once, and in its own place.
func TestPage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(page, []byte("# Head\n"), 0o600))
	r := &Report{Results: []Result{{Point: Point{Name: "f+0x1", Hazard: "HALT", Effect: hazard.Hang}, Outcome: Hung}}}
	require.NoError(t, WritePage(page, "6.1", r.Markdown("6.1")))
	require.NoError(t, WritePage(page, "6.12", "second\n"))
	require.NoError(t, WritePage(page, "6.1", "first again\n"))
	b, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(b), "booted 6.1: begin"))
	require.Contains(t, string(b), "first again\n")
	require.Contains(t, string(b), "second\n")
	require.NotContains(t, string(b), "f+0x1")
	require.True(t, strings.HasPrefix(string(b), "# Head\n"))
}
