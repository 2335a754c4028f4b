package kprobelab_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/booted"
	"kprobelab/kprobes"
	"kprobelab/watch"
	"kprobelab/x86"
)

// What a Lab plants is a handle: Close takes it away, and a second Close does nothing.
func TestHandles(t *testing.T) {
	hits := 0
	for name, plant := range map[string]func(l *kprobelab.Lab) (interface{ Close() error }, error){
		"kprobe": func(l *kprobelab.Lab) (interface{ Close() error }, error) {
			return l.Kprobe("gcd+5", func(*kprobes.Kprobe, *x86.PtRegs) int { hits++; return 0 }, nil)
		},
		"kretprobe": func(l *kprobelab.Lab) (interface{ Close() error }, error) {
			return l.Kretprobe("gcd", nil, func(*kprobes.Instance, *x86.PtRegs) int { hits++; return 0 })
		},
		"watchpoint": func(l *kprobelab.Lab) (interface{ Close() error }, error) {
			return l.Watch("gcd:x", func(*watch.Watchpoint, *watch.Hit, *x86.PtRegs) { hits++ })
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := kprobelab.Open("", nil)
			require.NoError(t, err)
			defer l.Close()
			hits = 0
			h, err := plant(l)
			require.NoError(t, err)
			_, err = l.Call("gcd", 12, 18)
			require.NoError(t, err)
			require.Positive(t, hits)
			require.NoError(t, h.Close())
			require.NoError(t, h.Close())
			hits = 0
			_, err = l.Call("gcd", 12, 18)
			require.NoError(t, err)
			require.Zero(t, hits)
		})
	}
}

// A call that fails returns no value beside its error.
func TestRefusedHandlesAreNil(t *testing.T) {
	l, err := kprobelab.Open("", nil)
	require.NoError(t, err)
	defer l.Close()
	p, err := l.Kprobe("nosuch", nil, nil)
	require.Error(t, err)
	require.Nil(t, p)
	rp, err := l.Kretprobe("nosuch", nil, nil)
	require.Error(t, err)
	require.Nil(t, rp)
	w, err := l.Watch("gcd:3:rw", nil)
	require.Error(t, err)
	require.Nil(t, w)
	k, err := l.Booted()
	require.ErrorIs(t, err, booted.ErrNotBooted)
	require.Nil(t, k)
}
