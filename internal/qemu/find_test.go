package qemu

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// says is a program that prints a text.
func says(t *testing.T, dir, name, text string) string {
	if runtime.GOOS == "windows" {
		t.Skip("programs here are shell scripts")
	}
	file := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\necho '"+text+"'\n"), 0o755))
	return file
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	newer := says(t, dir, "newer", "QEMU emulator version 10.1.3 (Debian)")
	older := says(t, dir, "older", "QEMU emulator version 7.2.22 (Debian)")
	other := says(t, dir, "other", "busybox")
	fetched := func() (string, error) { return newer, nil }
	errNet := errors.New("no network")
	t.Setenv("KPROBELAB_QEMU", "")
	t.Setenv("PATH", "/usr/bin:/bin:"+dir)

	f, err := Try(t.Context(), newer)
	require.NoError(t, err)
	require.Equal(t, Found{newer, "10.1.3"}, f)
	for program, why := range map[string]string{older: "7.2.22", other: "is not", filepath.Join(dir, "missing"): "no such file"} {
		_, err := Try(t.Context(), program)
		require.ErrorIs(t, err, ErrNone)
		require.ErrorContains(t, err, why)
	}

	t.Setenv("PATH", dir)
	f, err = Find(t.Context(), fetched)
	require.NoError(t, err)
	require.Equal(t, newer, f.Path, "none is in PATH")
	_, err = Find(t.Context(), func() (string, error) { return "", errNet })
	require.ErrorIs(t, err, errNet)
	require.ErrorIs(t, err, ErrNone)

	t.Setenv("PATH", "/usr/bin:/bin:"+dir)
	in := says(t, dir, Program, "QEMU emulator version 11.0.0")
	if f, err = Find(t.Context(), fetched); f.Path != "/usr/bin/"+Program {
		require.NoError(t, err)
		require.Equal(t, in, f.Path)
	}
	t.Setenv("KPROBELAB_QEMU", older)
	_, err = Find(t.Context(), fetched)
	require.ErrorContains(t, err, "10 or later", "what is named is taken, or refused")
}
