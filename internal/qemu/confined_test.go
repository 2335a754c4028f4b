//go:build linux

package qemu

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// said starts a program in QEMU's place that writes down its arguments.
func said(t *testing.T, m *Machine, script string) []string {
	dir := t.TempDir()
	m.QEMU = filepath.Join(dir, "qemu")
	require.NoError(t, os.WriteFile(m.QEMU, []byte("#!/bin/sh\n"+script+"printf '%s\\n' \"$@\" >arguments\n"), 0o700))
	run := filepath.Join(dir, "run, it's")
	require.NoError(t, os.Mkdir(run, 0o700))
	m.CPUs, m.Limit = 1, time.Minute
	r, err := m.start(t.Context(), run)
	require.NoError(t, err)
	<-r.ended
	require.NoError(t, r.status)
	text, err := os.ReadFile(filepath.Join(run, "arguments"))
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// A guest has no network, no disk and no folder of the host's, and QEMU may start no program, where it can give that up.
func TestWhatAGuestGets(t *testing.T) {
	for name, m := range map[string]*Machine{
		"plain": {Kernel: "kernel"}, "debugged": {Kernel: "kernel", Debugged: true}, "counted": {Kernel: "kernel", Debugged: true, Counted: true},
		"saved": {Kernel: "kernel", From: "a,b"}, "kernel_with_a_comma": {Kernel: "a,b=c"}, "line_with_a_comma": {Kernel: "kernel", Line: "a,b=c -device x"},
	} {
		t.Run(name, func(t *testing.T) {
			args := said(t, m, "")
			have := func(list ...string) bool {
				return slices.ContainsFunc(args, func(s string) bool { return slices.Contains(list, s) })
			}
			require.True(t, have("-nodefaults"))
			require.True(t, have("-no-user-config"))
			require.Equal(t, "none", args[slices.Index(args, "-nic")+1])
			require.Equal(t, confinement, args[slices.Index(args, "-sandbox")+1])
			require.False(t, have("-drive", "-hda", "-cdrom", "-netdev", "-net", "-fsdev", "-virtfs", "-device", "-chardev", "-blockdev", "-usb"), "%q", args)
			for i, s := range args { // options that QEMU takes apart at commas name nothing of the host's folders
				if i > 0 && slices.Contains([]string{"-qmp", "-gdb", "-serial", "-debugcon", "-accel", "-m", "-smp", "-machine"}, args[i-1]) {
					require.NotContains(t, s, "it's")
					require.NotContains(t, s, t.TempDir())
				}
			}
			require.True(t, filepath.IsAbs(args[slices.Index(args, "-kernel")+1]))
		})
	}
}

func TestQEMUWithoutSeccomp(t *testing.T) {
	args := said(t, &Machine{Kernel: "kernel"}, "[ \"$1\" = -sandbox ] && exit 1\n")
	require.NotContains(t, args, "-sandbox")
}

// A folder of temporary files may have a long name.
func TestLongPathOfASocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("x", 120), strings.Repeat("y", 120))
	require.NoError(t, os.MkdirAll(dir, 0o700))
	t.Chdir(dir)
	l, err := net.Listen("unix", "socket")
	require.NoError(t, err)
	defer l.Close()
	conn, err := dial(filepath.Join(dir, "socket"), make(chan struct{}))
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}
