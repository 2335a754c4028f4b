package rules

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/kprobes"
	"kprobelab/kprobes/rule"
	"kprobelab/kprobestest"
	"kprobelab/x86"
)

// withModule is the guest kernel with its module loaded.
func withModule(t testing.TB, kernel string) *kprobelab.Lab {
	return guest(t, kernel, &kprobestest.Options{Modules: []string{"../../../testdata/demo.ko"}}, nil)
}

// counting counts its hits.
func counting(l *kprobelab.Lab, t testing.TB, name string) (*kprobes.Kprobe, *int) {
	hits := new(int)
	return &kprobes.Kprobe{Addr: at(t, l, name), PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { *hits++; return 0 }}, hits
}

// docs/spec 1.10, GOING: the module's probes are gone; they can only be unregistered, and new ones
// are refused with ENOENT until the module is there again. Then its text is fresh, and a probe on
// it works.
func TestModuleGoingAndComing(t *testing.T) {
	for _, kernel := range []string{"4.4", "5.8", "5.10", "6.1", "6.12"} {
		t.Run(kernel, func(t *testing.T) {
			l := withModule(t, kernel)
			k := l.Kprobes
			p, hits := counting(l, t, "demo_tgt")
			onFtrace, _ := counting(l, t, "demo_ft")
			kernelProbe, kernelHits := counting(l, t, "kprobe_target")
			for _, p := range []*kprobes.Kprobe{p, onFtrace, kernelProbe} {
				require.NoError(t, k.RegisterKprobe(p))
			}
			require.True(t, onFtrace.OnFtrace())
			call(t, l, "demo_tgt", 1)
			require.Equal(t, 1, *hits)

			require.NoError(t, k.ModuleGoing("demo"))
			require.NoError(t, k.ModuleGoing("demo"), "a second time")
			require.True(t, p.Gone())
			require.False(t, kernelProbe.Gone())
			require.Contains(t, k.List(), "demo_tgt+0x0  demo [GONE]\n")
			require.Contains(t, k.List(), "demo_ft+0x0  demo [GONE][FTRACE]\n")
			refused(t, k.EnableKprobe(p), errno.EINVAL, rule.Gone)
			require.NoError(t, k.DisableKprobe(p), "disabling a gone probe is a no-op")
			other, otherHits := counting(l, t, "demo_tgt")
			refused(t, k.RegisterKprobe(other), errno.ENOENT, rule.ModuleGoing)

			require.NoError(t, k.ModuleComing("demo"))
			refused(t, k.ModuleComing("demo"), errno.EEXIST, rule.ModuleLoaded)
			require.NoError(t, k.ModuleLive("demo"))
			refused(t, k.ModuleLive("demo"), errno.EINVAL, rule.ModuleLoaded)
			call(t, l, "demo_tgt", 1)
			require.Equal(t, 1, *hits, "the old probe is not on the new text")
			require.NoError(t, k.RegisterKprobe(other)) // beside the gone one (1.6)
			require.EqualValues(t, 10, call(t, l, "demo_tgt", 1))
			require.Equal(t, 1, *otherHits)
			call(t, l, "kprobe_target", 30)
			require.Equal(t, 1, *kernelHits)
			k.UnregisterKprobes([]*kprobes.Kprobe{p, onFtrace, kernelProbe, other})
			require.Zero(t, k.Registered())
		})
	}
}

// docs/spec 1.3, checks 12 and 13, and 1.10, LIVE: init text can be probed while
// its module is coming, and such probes are gone when it is live.
func TestModuleInitText(t *testing.T) {
	l := withModule(t, "6.1")
	k := l.Kprobes
	p, _ := counting(l, t, "demo_init")
	refused(t, k.RegisterKprobe(p), errno.ENOENT, rule.ModuleInit)
	require.NoError(t, k.ModuleGoing("demo"))
	refused(t, k.RegisterKprobe(p), errno.ENOENT, rule.ModuleGoing)
	require.NoError(t, k.ModuleComing("demo"))
	require.NoError(t, k.RegisterKprobe(p))
	require.NoError(t, k.ModuleLive("demo"))
	require.True(t, p.Gone())
	k.UnregisterKprobe(p)
	p.Flags = 0
	refused(t, k.RegisterKprobe(p), errno.ENOENT, rule.ModuleInit)
}

// docs/spec 12: in 2.6.18 a probe pins its module.
func TestModulePinned(t *testing.T) {
	l := withModule(t, "2.6.18")
	p, _ := counting(l, t, "demo_tgt")
	require.NoError(t, l.Kprobes.RegisterKprobe(p))
	refused(t, l.Kprobes.ModuleGoing("demo"), errno.EAGAIN, rule.ModulePinned)
	l.Kprobes.UnregisterKprobe(p)
	require.NoError(t, l.Kprobes.ModuleGoing("demo"))
	refused(t, l.Kprobes.RegisterKprobe(p), errno.EINVAL, rule.ModuleGoing)
	refused(t, l.Kprobes.ModuleGoing("nosuch"), errno.ENOENT, rule.NoModule)
}

// docs/spec 1.9 and 8.2: a module's part of the blacklist comes and goes with it.
func TestBlacklistFile(t *testing.T) {
	l := withModule(t, "6.1")
	k := l.Kprobes
	whole := k.Blacklist()
	lines := strings.Split(strings.TrimSuffix(whole, "\n"), "\n")
	require.Len(t, lines, len(l.Image.Blacklist()))
	for _, line := range lines {
		require.Regexp(t, `^0x[0-9a-f]{16}-0x[0-9a-f]{16}\t\S+( \[demo\])?$`, line)
	}
	require.Contains(t, whole, "\tdo_int3\n")
	require.True(t, strings.HasSuffix(whole, "\tdemo_nk [demo]\n"))
	p, _ := counting(l, t, "demo_nk")
	refused(t, k.RegisterKprobe(p), errno.EINVAL, rule.Blacklisted)
	require.NoError(t, k.ModuleGoing("demo"))
	require.NotContains(t, k.Blacklist(), "demo_nk")
	refused(t, k.RegisterKprobe(p), errno.ENOENT, rule.ModuleGoing)
	require.NoError(t, k.ModuleComing("demo"))
	require.Equal(t, whole, k.Blacklist())
}
