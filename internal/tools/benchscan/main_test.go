package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab"
)

func TestMedian(t *testing.T) {
	list := []run{{wall: 5}, {wall: 1}, {wall: 9}, {wall: 2}, {wall: 3}}
	require.Equal(t, run{wall: 3}, median(list))
}

func TestScannedReadsTheTotals(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out")
	require.NoError(t, os.WriteFile(file, []byte("  12  accepted\n2612590  in all\n\n  7  int3 padding\n"), 0o600))
	n, err := scanned(file)
	require.NoError(t, err)
	require.Equal(t, 2612590, n)
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = scanned(file)
	require.EqualError(t, err, "the scan printed no totals")
}

func TestTextIsTheKernels(t *testing.T) {
	dir := t.TempDir()
	image := filepath.Join(dir, "guest.elf")
	require.NoError(t, os.WriteFile(image, kprobelab.GuestELF(), 0o600))
	start, size, err := writeText(image, filepath.Join(dir, "text"))
	require.NoError(t, err)
	require.Equal(t, uint64(0xffffffff81000000), start)
	info, err := os.Stat(filepath.Join(dir, "text"))
	require.NoError(t, err)
	require.Equal(t, int64(size), info.Size())
}

func TestPrint(t *testing.T) {
	var b bytes.Buffer
	print(&b, 100, 10, run{wall: time.Second, cpu: 2 * time.Second}, run{wall: 4 * time.Second, cpu: 4 * time.Second})
	require.Contains(t, b.String(), "100 bytes of text, 10 instruction boundaries")
	require.Contains(t, b.String(), "0.25 of objdump's wall time")
}
