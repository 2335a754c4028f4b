package hazards

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/qemu"
	"kprobelab/internal/report"
	"kprobelab/kimage"
	"kprobelab/kprobes/hazard"
	"kprobelab/x86"
)

// TestVerdict: what a hazard and a neighbour have to come to.
func TestVerdict(t *testing.T) {
	danger := Point{Hazard: "CALL_PREFIX", Effect: hazard.Oops, Lands: 5}
	register := Point{Hazard: "CALL_PREFIX", Effect: hazard.WrongRegister, Lands: 5}
	halt := Point{Hazard: "HALT", Effect: hazard.Hang}
	near := Point{Lands: 5}
	for name, test := range map[string]struct {
		result Result
		want   Verdict
	}{
		"oops_where_predicted":        {Result{Point: danger, Outcome: Oopsed, Landed: true}, AsPredicted},
		"panic_where_predicted":       {Result{Point: danger, Outcome: Panicked, Landed: true}, AsPredicted},
		"oops_elsewhere":              {Result{Point: danger, Outcome: Oopsed}, NotAsPredicted},
		"came_there_and_nothing":      {Result{Point: danger, Outcome: Same, Landed: true}, NotAsPredicted},
		"hit_and_nothing":             {Result{Point: danger, Outcome: Same, Hits: 1}, NotAsPredicted},
		"never_hit":                   {Result{Point: danger, Outcome: Same}, NotShown},
		"not_tried":                   {Result{Point: danger, Outcome: NotTried}, NotShown},
		"register_differs":            {Result{Point: register, Outcome: Same, Landed: true, Register: "rax is 1, not 0"}, AsPredicted},
		"register_is_the_same":        {Result{Point: register, Outcome: Same, Landed: true, Hits: 1}, NotShown},
		"register_not_seen_result_is": {Result{Point: register, Outcome: Differed, Landed: true, Hits: 1}, AsPredicted},
		"oops_for_a_register":         {Result{Point: register, Outcome: Oopsed, Landed: true}, NotAsPredicted},
		"refused":                     {Result{Point: danger, Outcome: Refused}, NotAsPredicted},
		"refused_as_predicted":        {Result{Point: Point{Hazard: "HALT", Effect: hazard.Refused}, Outcome: Refused}, AsPredicted},
		"taken_for_refused":           {Result{Point: Point{Hazard: "HALT", Effect: hazard.Refused}, Outcome: Hung}, NotAsPredicted},
		"hang":                        {Result{Point: halt, Outcome: Hung}, AsPredicted},
		"oops_for_a_hang":             {Result{Point: halt, Outcome: Oopsed}, NotAsPredicted},
		"neighbour_is_quiet":          {Result{Point: near, Outcome: Same, Hits: 1}, AsPredicted},
		"neighbour_is_never_hit":      {Result{Point: near, Outcome: Same}, NotShown},
		"neighbour_is_refused":        {Result{Point: near, Outcome: Refused}, NotShown},
		"neighbour_comes_there":       {Result{Point: near, Outcome: Same, Hits: 1, Landed: true}, NotAsPredicted},
		"neighbour_oopses":            {Result{Point: near, Outcome: Oopsed, Hits: 1}, NotAsPredicted},
		"neighbour_changes_results":   {Result{Point: near, Outcome: Differed, Hits: 1}, NotAsPredicted},
		"neighbour_hangs":             {Result{Point: near, Outcome: Hung, Hits: 1}, NotAsPredicted},
		"neighbour_is_warned_of":      {Result{Point: near, Outcome: Complained, Hits: 1}, NotAsPredicted},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, test.result.Verdict())
			require.Equal(t, test.want != AsPredicted, strings.HasPrefix(test.result.String(), "NOT "))
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
		"same":    {Tried{Before: "a", With: "a", After: "a", Hits: 2}, Same, ""},
		"refused": {Tried{Refused: "invalid argument"}, Refused, ""},
		"oops":    {Tried{Before: "a", With: "", Log: "BUG: unable to handle page fault\nRIP: 0010:vfs_fallocate+0x130/0x340\n"}, Oopsed, "vfs_fallocate+0x130"},
		"warning": {Tried{Log: "WARNING: CPU: 0 PID: 1 at x.c:1 f+0x1/0x2\nRIP: 0010:f+0x1/0x2\n"}, Complained, ""},
		"lockup":  {Tried{Log: "watchdog: BUG: soft lockup - CPU#0 stuck\nRIP: 0010:f+0x1/0x2\n"}, Hung, "f+0x1"},
		"slow":    {Tried{Status: NotEnded}, Hung, ""},
		"results": {Tried{Before: "open <nil>\nread 5", With: "open <nil>\nread 6"}, Differed, ""},
		"killed":  {Tried{StatusBefore: "exit status 0", Status: "signal: killed"}, Differed, ""},
		"after":   {Tried{Before: "a", With: "a", After: "b"}, Differed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var r Result
			r.ran(&test.tried)
			r.alive(&test.tried)
			require.Equal(t, test.want, r.Outcome)
			require.Equal(t, test.where, r.Where)
		})
	}
}

// TestSpotterReadsParts: an oops is found in whatever parts it comes, and the first counts.
func TestSpotterReadsParts(t *testing.T) {
	const text = "BUG: kernel NULL pointer dereference\nRIP: 0010:f+0x1/0x9\nRIP: 0010:g+0x2/0x9\n"
	for size := 1; size < len(text); size++ {
		s := &spotter{found: make(chan spotted, 1)}
		for at := 0; at < len(text); at += size {
			_, err := s.Write([]byte(text[at:min(at+size, len(text))]))
			require.NoError(t, err)
		}
		require.Equal(t, spotted{Oopsed, "f+0x1"}, <-s.found)
	}
}

// program is a machine with one instruction at each address: what it does to the
// registers.
type program struct {
	at   qemu.Registers
	code map[x86.Addr]func(*qemu.Registers)
}

func (p *program) Registers() (qemu.Registers, error)   { return p.at, nil }
func (p *program) SetRegisters(r *qemu.Registers) error { p.at = *r; return nil }
func (p *program) Step() (qemu.Registers, error) {
	p.code[p.at.IP()](&p.at)
	return p.at, nil
}

// TestCompare: the wrong way and the right one are compared where they meet.
func TestCompare(t *testing.T) {
	set := func(reg int, v uint64, to x86.Addr) func(*qemu.Registers) {
		return func(r *qemu.Registers) { r[reg] += v; r.SetIP(to) }
	}
	const wrong, right = 5, 6
	for name, test := range map[string]struct {
		code  map[x86.Addr]func(*qemu.Registers)
		want  string
		where x86.Addr
	}{
		"adds":       {map[x86.Addr]func(*qemu.Registers){wrong: set(0, 3, 7), 6: set(1, 1, 10), 7: set(1, 1, 10), 10: set(2, 1, 10)}, "rax is 0x3, not 0x0", 10},
		"adds_0":     {map[x86.Addr]func(*qemu.Registers){wrong: set(0, 0, 7), 6: set(1, 1, 10), 7: set(1, 1, 10), 10: set(2, 1, 10)}, "", 10},
		"never_meet": {map[x86.Addr]func(*qemu.Registers){wrong: set(0, 3, 8), 6: set(1, 1, 7), 7: set(0, 0, 7), 8: set(0, 0, 8)}, "", 8},
	} {
		t.Run(name, func(t *testing.T) {
			p := &program{code: test.code}
			p.at.SetIP(wrong)
			got, err := compare(p, right)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
			require.Equal(t, test.where, p.at.IP()) // it goes on on the wrong way
		})
	}
}

// TestReproduction: what a function of the module returns without the probe and with it,
// on a kernel that has the hazard and on one that has not.
func TestReproduction(t *testing.T) {
	const said = "kprobelab_hazards: x begins, without the probe 0\nkprobelab_hazards: x without the probe 0, with it %s, hits %s\n"
	result := Case{"ret_imm", "RET_IMM", hazard.WrongResult, 0, 16}
	hang := Case{"halt", "HALT", hazard.Hang, 0, 0}
	for name, test := range map[string]struct {
		r            Reproduction
		probed, hits string
		want         Verdict
	}{
		"wrong_result":       {Reproduction{Case: result, Has: true}, "16", "1", AsPredicted},
		"another_result":     {Reproduction{Case: result, Has: true}, "8", "1", NotAsPredicted},
		"right_result":       {Reproduction{Case: result, Has: true}, "0", "1", NotAsPredicted},
		"mended":             {Reproduction{Case: result}, "0", "1", AsPredicted},
		"mended_but_wrong":   {Reproduction{Case: result}, "16", "1", NotAsPredicted},
		"never_hit":          {Reproduction{Case: result, Has: true}, "16", "0", NotAsPredicted},
		"no_hang":            {Reproduction{Case: hang, Has: true}, "0", "1", NotAsPredicted},
		"hangs":              {Reproduction{Case: hang, Has: true, Result: Result{Outcome: Hung}}, "", "", AsPredicted},
		"hangs_where_mended": {Reproduction{Case: hang, Result: Result{Outcome: Hung}}, "", "", NotAsPredicted},
		"refused":            {Reproduction{Case: hang, Has: true, Result: Result{Outcome: Refused}}, "", "", NotShown},
	} {
		t.Run(name, func(t *testing.T) {
			r := test.r
			r.Result.Point = Point{Name: r.Name, Hazard: r.Hazard, Effect: r.Effect}
			if r.Result.Outcome == "" {
				r.Result.Outcome = Same
				r.read(fmt.Sprintf(said, test.probed, test.hits))
			}
			require.Equal(t, test.want, r.Verdict())
			require.Equal(t, test.want != AsPredicted, strings.HasPrefix(r.String(), "NOT "))
		})
	}
}

// TestCasesAreInTheModule: each case is one of module/cases.c, and the other way round.
func TestCasesAreInTheModule(t *testing.T) {
	code, err := os.ReadFile("module/cases.c")
	require.NoError(t, err)
	_, list, _ := strings.Cut(string(code), "hazard_cases[]")
	var there, here []string
	for _, m := range regexp.MustCompile(`CASE\((\w+)\)|\{ "(\w+)"`).FindAllStringSubmatch(list, -1) {
		there = append(there, m[1]+m[2])
	}
	for _, c := range cases {
		here = append(here, c.Name)
		_, known := hazard.ByID(c.Hazard)
		require.Equal(t, c.Effect != "", known, c.Name)
	}
	require.Equal(t, there, here)
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
	require.Greater(t, points[1].Next, points[1].Addr)
}

// TestPage: a kernel's table is written once, and in its own place.
func TestPage(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(page, []byte("# Head\n"), 0o600))
	require.Error(t, WritePage(page, "6.1", "no place for it\n"))
	require.NoError(t, os.WriteFile(page, []byte("# Head\n"+last+"# Tail\n"), 0o600))
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
	require.True(t, strings.HasSuffix(string(b), last+"# Tail\n"))
}
