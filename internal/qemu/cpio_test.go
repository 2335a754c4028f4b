package qemu

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func initramfs(t *testing.T, files ...Entry) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, writeInitramfs(&b, []byte("#!init"), files))
	return b.Bytes()
}

// Rule: every header is 110 characters, and headers and data begin at multiples of 4.
func TestInitramfs(t *testing.T) {
	b := initramfs(t, entries(map[string][]byte{"/definitions": []byte("p:a/b c\n")})...)
	var names []string
	for at := 0; ; {
		require.Equal(t, "070701", string(b[at:at+6]))
		field := func(i int) int {
			n := 0
			for _, d := range b[at+6+8*i : at+14+8*i] {
				n = n*16 + strings.IndexByte("0123456789abcdef", d)
			}
			return n
		}
		size, nameSize := field(6), field(11)
		name := string(b[at+110 : at+110+nameSize-1])
		names = append(names, name)
		if name == "TRAILER!!!" {
			break
		}
		at = (at + 110 + nameSize + 3) &^ 3
		if name == "definitions" {
			require.Equal(t, "p:a/b c\n", string(b[at:at+size]))
		}
		at = (at + size + 3) &^ 3
	}
	require.Equal(t, []string{"dev", "dev/console", "dev/null", "init", "definitions", "TRAILER!!!"}, names)
}

// Where cpio is at hand, it reads the archive too.
func TestInitramfsIsRead(t *testing.T) {
	if _, err := exec.LookPath("cpio"); err != nil {
		t.Skip("no cpio here to read the archive with")
	}
	file := filepath.Join(t.TempDir(), "initrd")
	require.NoError(t, os.WriteFile(file, initramfs(t), 0o600))
	out, err := exec.Command("sh", "-c", "cpio -t < '"+file+"'").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "dev/console")
}

// A file of the host is read when the archive is written.
func TestInitramfsOfHostFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tool")
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755))
	b := initramfs(t, Entry{Name: "/bin/tool", Mode: ModeFile | 0o755, From: file})
	require.Contains(t, string(b), "bin/tool\x00\x00#!/bin/sh\n")
	require.Zero(t, len(b)%4)

	require.ErrorIs(t, writeInitramfs(&bytes.Buffer{}, nil, []Entry{{Name: "x", From: file + "-not"}}), os.ErrNotExist)
	require.ErrorContains(t, writeInitramfs(&bytes.Buffer{}, nil, []Entry{{Name: "x", From: dir}}), "no regular file")
}
