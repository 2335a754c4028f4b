package rules

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/machine"
	"kprobelab/profile"
	"kprobelab/x86"
)

// seeds is the number of interleavings that are tried.
func seeds() int {
	if testing.Short() {
		return 100
	}
	return 1000
}

// The 2007 article's example (docs/spec 13.4): a return probe on sys_open with one
// instance, two CPUs and six tasks. Over a thousand seeds and the releases,
// every call is tracked or counted as missed; none is lost or doubled, and
// each has its own result.
// See docs/spec 5.8.
func TestEveryMissIsCounted(t *testing.T) {
	kernels := []string{"2.6.18", "4.4", "5.10", "6.1", "6.12"}
	images := make([]*kimage.Image, len(kernels))
	for i, kernel := range kernels {
		c, ok := profile.Named(kernel)
		require.True(t, ok)
		img, err := kimage.FromBytes("guest", kprobelab.GuestELF(), &kimage.Options{Profile: c})
		require.NoError(t, err)
		images[i] = img
	}
	var sum tally
	for seed := range seeds() {
		img := images[seed%len(images)]
		sum.add(manyTasks(t, img, int64(seed)))
	}
	t.Logf("%d calls: %d returned through the handler, %d missed", sum.calls, sum.returns, sum.missed)
	require.Equal(t, sum.calls, sum.returns+sum.missed)
	require.NotZero(t, sum.missed)
	require.NotZero(t, sum.returns)
}

type tally struct{ calls, returns, missed int }

func (s *tally) add(o tally) {
	s.calls += o.calls
	s.returns += o.returns
	s.missed += o.missed
}

func manyTasks(t *testing.T, img *kimage.Image, seed int64) tally {
	const tasks, calls = 6, 3
	l, err := kprobelab.New(img, &kprobelab.Options{CPUs: 2, Seed: seed})
	require.NoError(t, err)
	defer l.Close()
	entries, done := 0, map[int]int{}
	rp := &kprobes.Kretprobe{
		KP: kprobes.Kprobe{Addr: at(t, l, "sys_open")}, MaxActive: 1,
		Handler: func(i *kprobes.Instance, regs *x86.PtRegs) int {
			require.Equal(t, l.Machine.Task(), i.Task)
			done[i.Task]++
			return 0
		},
	}
	require.NoError(t, l.Kprobes.RegisterKretprobe(rp))
	p := &kprobes.Kprobe{Addr: at(t, l, "sys_open"), PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { entries++; return 0 }}
	require.NoError(t, l.Kprobes.RegisterKprobe(p))
	var list []*machine.Task
	for range tasks {
		var invocations []machine.Invocation
		for range calls {
			invocations = append(invocations, machine.Invoke("sys_open", "/no/such/file", 0, 0))
		}
		task, err := l.Machine.Go("opener", invocations...)
		require.NoError(t, err)
		list = append(list, task)
	}
	require.NoError(t, l.Machine.Run(), "seed %d", seed)
	require.NoError(t, l.Kprobes.Err(), "seed %d", seed)
	s := tally{calls: tasks * calls, missed: int(rp.Nmissed + rp.KP.Nmissed)}
	for _, task := range list {
		require.Len(t, task.Results(), calls)
		for _, r := range task.Results() {
			require.EqualValues(t, -2, r.Ret, "seed %d: ENOENT", seed)
		}
		require.LessOrEqual(t, done[task.Number()], calls)
		s.returns += done[task.Number()]
	}
	require.Equal(t, s.calls, entries+int(p.Nmissed), "seed %d", seed)
	require.Equal(t, s.calls, s.returns+s.missed, "seed %d", seed)
	l.Kprobes.UnregisterKretprobe(rp)
	l.Kprobes.UnregisterKprobe(p)
	return s
}
