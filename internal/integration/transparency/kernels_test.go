package transparency

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/kimage"
	"kprobelab/profile"
)

// kernel is a release and configuration, by how it runs probed instructions.
type kernel struct {
	name, profile string
	// again: the stepping is mostly the same as another kernel's.
	again bool
	edit  func(c *profile.Config)
}

var kernels = []kernel{
	{"2.6.18", "2.6.18", true, nil}, // trap flag
	{"4.4", "4.4", true, nil},       // trap flag, boosted
	{"5.8", "5.8", false, nil},      // the same with the later table
	{"5.8_preemption", "5.8", false, func(c *profile.Config) { c.Preemption = true }}, // trap flag alone
	{"5.10", "5.10", false, nil}, // int3, boosted
	{"6.1", "6.1", false, nil},   // int3 alone
	{"6.12", "6.12", true, nil},  // int3 alone
	{"6.12_without_preemption", "6.12", true, func(c *profile.Config) { c.Preemption = false }}, // int3, boosted by the newest table
}

// parallel lets a kernel's test run beside the others; in a short run, only one kernel of each way
// of stepping is tested.
func (k *kernel) parallel(t *testing.T) {
	if k.again && testing.Short() {
		t.Skip("short: another kernel steps the same way")
	}
	t.Parallel()
}

// cpuModel has more of the forms' instructions than the default model.
const cpuModel = "broadwell"

// budget ends endless calls: every call here is shorter.
const budget = 20000

func (k *kernel) open(t require.TestingT, edit func(c *profile.Config)) *bench {
	c, ok := profile.Named(k.profile)
	require.True(t, ok)
	// A failure to remove a probe (docs/bugs.md, 25) is no subject of these tests.
	c.Ftrace.PostCleared = false
	if k.edit != nil {
		k.edit(c)
	}
	if edit != nil {
		edit(c)
	}
	img, err := kprobelab.OpenImage("", &kimage.Options{Profile: c, CPU: cpuModel})
	require.NoError(t, err)
	l, err := kprobelab.New(img, &kprobelab.Options{Budget: budget})
	require.NoError(t, err)
	b, err := newBench(l)
	require.NoError(t, err)
	return b
}

// all are the functions that are called: the instruction forms and the others.
func (b *bench) all(t require.TestingT) []function {
	list := forms(t, b.Lab)
	for _, f := range ordinary {
		list = append(list, f.at(t, b.Lab))
	}
	return list
}
