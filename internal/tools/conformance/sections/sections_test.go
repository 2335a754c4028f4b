package sections

import (
	"bytes"
	"debug/elf"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/report"
	"kprobelab/kimage"
)

// TestObject: a drawn object is one that package elf and report read.
func TestObject(t *testing.T) {
	b := Object("fentry/vfs_read")
	f, err := elf.NewFile(bytes.NewReader(b))
	require.NoError(t, err)
	require.Equal(t, elf.EM_BPF, f.Machine)
	require.NotNil(t, f.Section("fentry/vfs_read"))
	license, err := f.Section("license").Data()
	require.NoError(t, err)
	require.Equal(t, "GPL\x00", string(license))
	probes, err := report.ReadProbes(bytes.NewReader(b))
	require.NoError(t, err)
	require.Len(t, probes, 1)
	require.Equal(t, []string{"fentry/vfs_read", programName}, []string{probes[0].Text, probes[0].Program})
}

// TestDrawing: a seed decides what is drawn, and every kind of section is.
func TestDrawing(t *testing.T) {
	img, err := kimage.FromBytes("guest", kprobelab.GuestELF(), nil)
	require.NoError(t, err)
	draw := func(seed uint64) (list []string) {
		d := New(img, seed)
		for range 2000 {
			list = append(list, d.Section())
		}
		return list
	}
	first := draw(1)
	require.Equal(t, first, draw(1))
	require.NotEqual(t, first, draw(2))
	seen := map[string]bool{}
	for _, s := range first {
		kind, _, _ := bytes.Cut(bytes.TrimPrefix([]byte(s), []byte("?")), []byte("/"))
		seen[string(kind)] = true
	}
	for _, k := range kinds {
		require.True(t, seen[k.name], k.name)
	}
}
