package module

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/x86"
)

// run is a sample that has run.
type run struct {
	// tasks are the machine's, by number.
	tasks  []string
	events []Event
	err    error
}

// images are the guest kernel by profile; machines only read them.
var images = map[string]*kimage.Image{}

func imageFor(t testing.TB, kernel string) *kimage.Image {
	t.Helper()
	if img := images[kernel]; img != nil {
		return img
	}
	p, ok := profile.Named(kernel)
	require.True(t, ok, kernel)
	img, err := kprobelab.OpenImage("", &kimage.Options{Profile: p})
	require.NoError(t, err)
	images[kernel] = img
	return img
}

func load(t testing.TB, s Sample, kernel string, cpus int, o Options) run {
	t.Helper()
	img := imageFor(t, kernel)
	l, err := kprobelab.New(img, &kprobelab.Options{CPUs: cpus, Seed: o.Seed})
	require.NoError(t, err)
	defer l.Close()
	text := textOf(t, l)
	var r run
	r.err = s(l, &o, func(e Event) {
		if e.Regs != nil {
			regs := *e.Regs
			e.Regs = &regs
		}
		r.events = append(r.events, e)
	})
	require.Empty(t, l.Kprobes.List(), "a probe was left")
	require.True(t, bytes.Equal(text, textOf(t, l)), "the text is not what it was")
	for cpu := range cpus {
		require.Equal(t, img.Lookup("init_task")[0].Addr, currentOf(t, l, cpu), "a task of the sample is still current")
	}
	for _, task := range l.Machine.Tasks() {
		r.tasks = append(r.tasks, task.Name)
	}
	return r
}

// currentOf reads a CPU's current_task.
func currentOf(t testing.TB, l *kprobelab.Lab, cpu int) x86.Addr {
	var p [8]byte
	require.NoError(t, l.Machine.ReadMem(l.Machine.GSBase(cpu)+l.Image.Lookup("current_task")[0].Addr, p[:]))
	return x86.Addr(binary.LittleEndian.Uint64(p[:]))
}

// textOf reads the live text.
func textOf(t testing.TB, l *kprobelab.Lab) []byte {
	start, end := l.Image.Lookup("_stext")[0].Addr, l.Image.Lookup("_etext")[0].Addr
	b := make([]byte, end.Sub(start))
	require.NoError(t, l.Machine.ReadMem(start, b))
	return b
}

func (r run) named(name string) (list []Event) {
	for _, e := range r.events {
		if e.Name == name {
			list = append(list, e)
		}
	}
	return list
}

// counters are the last event's.
func (r run) counters(t testing.TB) (hits, missed uint64) {
	t.Helper()
	list := r.named("counters")
	require.Len(t, list, 1)
	return list[0].Probe.Hits, list[0].Probe.Missed
}

func (r run) log() string {
	var b strings.Builder
	for _, e := range r.events {
		if e.Line != "" {
			b.WriteString(e.Line + "\n")
		}
	}
	return b.String()
}

var all = map[string]Sample{
	"kprobe": Kprobe, "kretprobe": Kretprobe, "jprobe": Jprobe,
	"article kprobe": ArticleKprobe, "article jprobe": ArticleJprobe, "article kretprobe": ArticleKretprobe,
}

func TestEverySampleOnEveryKernel(t *testing.T) {
	for _, kernel := range profile.Names() {
		for name, s := range all {
			for _, cpus := range []int{1, 3} {
				r := load(t, s, kernel, cpus, Options{Tasks: 5, Calls: 3, Seed: 4})
				if p, _ := profile.Named(kernel); strings.HasSuffix(name, "jprobe") && !p.Jprobes {
					require.ErrorIs(t, r.err, errno.ENOSYS)
					require.Len(t, r.events, 1)
					require.Equal(t, "register_jprobe failed, returned -38", r.events[0].Line)
					continue
				}
				require.NoError(t, r.err, "%s on %s", name, kernel)
				require.Equal(t, "planted", r.events[0].Name)
				hits, _ := r.counters(t)
				require.NotZero(t, hits, "%s on %s", name, kernel)
				for _, e := range r.events {
					if e.At != nil {
						require.Equal(t, r.tasks[e.At.Task], e.At.Comm, "current is another task")
					}
				}
			}
		}
	}
}

func TestRunsRepeat(t *testing.T) {
	for name, s := range all {
		o := Options{Tasks: 6, Calls: 4, Seed: 9}
		a, b := load(t, s, "4.4", 2, o), load(t, s, "4.4", 2, o)
		require.Equal(t, a.log(), b.log(), name)
	}
}

// Every call of sys_open is counted, as a hit or as missed, whatever the tasks
// do at the same time.
func TestEveryOpenIsSeenOrMissed(t *testing.T) {
	const tasks, calls = 8, 4
	anyMissed := map[int]bool{}
	for _, kernel := range []string{"2.6.18", "6.1"} {
		for seed := range int64(100) {
			for _, pool := range []int{1, 2, tasks} {
				r := load(t, ArticleKretprobe, kernel, 2, Options{MaxActive: pool, Seed: seed, Tasks: tasks, Calls: calls})
				require.NoError(t, r.err)
				hits, missed := r.counters(t)
				require.EqualValues(t, tasks*calls, hits+missed)
				require.Len(t, r.named("return"), int(hits))
				anyMissed[pool] = anyMissed[pool] || missed > 0
			}
		}
	}
	require.Equal(t, map[int]bool{1: true, 2: true, tasks: false}, anyMissed)
}

func TestOneTaskMissesNothing(t *testing.T) {
	r := load(t, ArticleKretprobe, "2.6.18", 2, Options{Tasks: 1, Calls: 10})
	require.NoError(t, r.err)
	hits, missed := r.counters(t)
	require.EqualValues(t, 10, hits)
	require.Zero(t, missed)
	require.Equal(t, 9, strings.Count(r.log(), "sys_open returns -2\n"), "the first file exists")
}

// Entry handlers came with 2.6.25: before, kernel threads cannot be left out, and no time is taken.
func TestKernelThreadsAreLeftOut(t *testing.T) {
	for kernel, want := range map[string]map[string]bool{
		"2.6.18": {"bash": true, "kthreadd": true}, "4.4": {"bash": true}, "6.12": {"bash": true},
	} {
		r := load(t, Kretprobe, kernel, 1, Options{})
		require.NoError(t, r.err)
		got := map[string]bool{}
		for _, e := range r.named("return") {
			got[e.At.Comm] = true
			require.Equal(t, kernel != "2.6.18", e.Duration > 0)
			require.Equal(t, kernel != "2.6.18", strings.Contains(e.Line, " and took "))
		}
		require.Equal(t, want, got, kernel)
	}
}

// On each CPU a line before is followed by one after, of the same task.
func TestSchedulingComesInPairs(t *testing.T) {
	for seed := range int64(20) {
		r := load(t, ArticleKprobe, "2.6.18", 2, Options{Tasks: 6, Calls: 5, Seed: seed})
		require.NoError(t, r.err)
		open := map[int]string{}
		for _, e := range r.events {
			switch e.Name {
			case "pre":
				require.Empty(t, open[e.At.CPU])
				open[e.At.CPU] = e.At.Comm
			case "post":
				require.Equal(t, open[e.At.CPU], e.At.Comm)
				delete(open, e.At.CPU)
			}
		}
		require.Empty(t, open)
		require.Regexp(t, `(?m)^Scheduling times is 30 during of [1-9]\d* milliseconds\.$`, r.log())
	}
}

func TestJprobeLinesStayWhole(t *testing.T) {
	line := regexp.MustCompile(`^process '(cat|rmmod)' call open\('[^']+', \d+, -?\d+\)$`)
	for seed := range int64(20) {
		r := load(t, ArticleJprobe, "4.4", 2, Options{Tasks: 6, Seed: seed})
		require.NoError(t, r.err)
		hits, _ := r.counters(t)
		require.EqualValues(t, 6*len(catOpens)+len(rmmodOpens), hits)
		list := r.named("log")
		require.Len(t, list, int(hits))
		for _, e := range list {
			require.Regexp(t, line, e.Line)
		}
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		s              Sample
		kernel, symbol string
		errno          errno.Errno
		line, why      string
	}{
		"no_symbol":           {Kprobe, "6.1", "nosuch", errno.ENOENT, "kprobe_init: register_kprobe failed, returned -2", "no such symbol"},
		"blacklisted":         {Kprobe, "5.10", "do_int3", errno.EINVAL, "register_kprobe failed, returned -22", "blacklisted"},
		"return_forbidden":    {Kretprobe, "6.1", "__switch_to", errno.EINVAL, "register_kretprobe failed, returned -22", ""},
		"no_symbol_by_lookup": {Kretprobe, "2.6.18", "nosuch", errno.EINVAL, "register_kretprobe failed, returned -22", "there is no symbol nosuch"},
	} {
		t.Run(name, func(t *testing.T) {
			r := load(t, c.s, c.kernel, 1, Options{Symbol: c.symbol})
			require.ErrorIs(t, r.err, c.errno)
			require.ErrorContains(t, r.err, c.why)
			require.Equal(t, c.line+"\n", r.log())
			require.Equal(t, "refused", r.events[0].Name)
		})
	}
}

// The offsets are the guest kernel's.
func TestTaskStructLayout(t *testing.T) {
	l, err := kprobelab.New(imageFor(t, "6.1"), nil)
	require.NoError(t, err)
	defer l.Close()
	b := make([]byte, taskSize)
	require.NoError(t, l.Machine.ReadMem(l.Image.Lookup("init_task")[0].Addr, b))
	require.Equal(t, append([]byte("swapper"), make([]byte, commLen-7)...), b[taskComm:])
	require.Equal(t, make([]byte, 8), b[taskMM:taskMM+8])
}
