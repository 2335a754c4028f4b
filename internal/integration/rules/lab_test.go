package rules

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/kprobes"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/kprobestest"
	"kprobelab/profile"
	"kprobelab/x86"
)

// guest is the guest kernel under a release's rules, checked at the test's end.
// change may be nil.
func guest(t testing.TB, kernel string, o *kprobestest.Options, change func(*profile.Config)) *kprobelab.Lab {
	c, ok := profile.Named(kernel)
	require.True(t, ok)
	if change != nil {
		change(c)
	}
	with := kprobestest.Options{}
	if o != nil {
		with = *o
	}
	with.Rules = c
	return kprobestest.New(t, &with).Lab()
}

// at is the address of the guest's symbol.
func at(t testing.TB, l *kprobelab.Lab, name string) x86.Addr {
	s := l.Image.Lookup(name)
	require.NotEmpty(t, s, name)
	return s[0].Addr
}

// call calls a function of the guest, and asserts that no hit went wrong.
func call(t testing.TB, l *kprobelab.Lab, name string, args ...any) uint64 {
	t.Helper()
	ax, err := l.Machine.Call(name, args...)
	require.NoError(t, err)
	require.NoError(t, l.Kprobes.Err())
	return ax
}

// plant registers, and unregisters at the test's end.
func plant(t testing.TB, l *kprobelab.Lab, p *kprobes.Kprobe) *kprobes.Kprobe {
	t.Helper()
	require.NoError(t, l.Kprobes.RegisterKprobe(p))
	t.Cleanup(func() { l.Kprobes.UnregisterKprobe(p) })
	return p
}

func refused(t testing.TB, err error, e errno.Errno, rule rule.ID) {
	t.Helper()
	var r *probepoint.Refusal
	require.ErrorAs(t, err, &r)
	require.Equal(t, rule, r.Rule)
	require.Equal(t, e, errno.Of(err))
}
