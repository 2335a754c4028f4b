package kprobelab_test

import (
	"context"
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/kprobes"
)

// TestUseAfterClose: a Lab, its probes and its tracing say that they are closed,
// whatever one asks of them, and nothing ends the process.
func TestUseAfterClose(t *testing.T) {
	l, err := kprobelab.Open("", &kprobelab.Options{Optimize: true})
	require.NoError(t, err)
	tr, err := l.Tracing(nil)
	require.NoError(t, err)
	p := &kprobes.Kprobe{SymbolName: "gcd"}
	require.NoError(t, l.Kprobes.RegisterKprobe(p))
	h, err := tr.OpenFile("kprobe_events", os.O_RDWR)
	require.NoError(t, err)

	tr.Close()
	tr.Close()
	one := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"open": one(tr.OpenFile("trace", os.O_RDONLY)), "stat": one(tr.Stat("trace")), "list": one(tr.ReadDir(".")), "fs": one(tr.Open("trace")),
		"mkdir": tr.Mkdir("instances/x"), "rmdir": tr.Rmdir("instances/x"), "write": tr.Write("kprobe_events", "p gcd", true),
		"read handle": one(h.ReadAt(context.Background(), make([]byte, 8), 0)), "write handle": one(h.WriteAt([]byte("p gcd"), 0)),
	} {
		require.ErrorIs(t, err, fs.ErrClosed, name)
		require.ErrorContains(t, err, "closed", name)
	}
	require.NoError(t, h.Close())

	l.Close()
	l.Close()
	for name, err := range map[string]error{
		"call": one(l.Call("gcd", 12, 18)), "register": l.Kprobes.RegisterKprobe(&kprobes.Kprobe{SymbolName: "snprintf"}),
		"kretprobe": l.Kprobes.RegisterKretprobe(&kprobes.Kretprobe{KP: kprobes.Kprobe{SymbolName: "vfs_read"}}),
		"tracing":   one(l.Tracing(nil)), "settle": l.Settle(),
	} {
		require.ErrorIs(t, err, fs.ErrClosed, name)
		require.ErrorContains(t, err, "closed", name)
	}
	require.NotPanics(t, func() {
		l.Kprobes.UnregisterKprobe(p)
	})
}
