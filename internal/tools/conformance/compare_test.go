package conformance

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/report"
	"kprobelab/internal/tools/qemu/frame"
	"kprobelab/kimage"
	"kprobelab/x86"
)

func guest(t *testing.T) *kimage.Image {
	t.Helper()
	img, err := kimage.FromBytes("guest", kprobelab.GuestELF(), nil)
	require.NoError(t, err)
	return img
}

// Rule: points are as many as asked for, apart, the same for a seed, and more
// than one kind.
func TestPoints(t *testing.T) {
	img := guest(t)
	points := Points(img, 40, 3)
	require.Equal(t, points, Points(img, 40, 3))
	require.NotEqual(t, points, Points(img, 40, 4))
	require.Len(t, points, 40)
	for i := 1; i < len(points); i++ {
		require.Greater(t, points[i].Sub(points[i-1]), int64(apart))
	}
	require.Equal(t, Names(img, nil, 20, 3), Names(img, nil, 20, 3))
	// Definitions by name stay away from the points.
	near := img.Lookup("vfs_read")[0].Addr
	for _, line := range Names(img, []x86.Addr{near + 8}, 200, 3) {
		require.False(t, strings.HasPrefix(strings.Fields(line)[1]+"+", "vfs_read+"), line)
	}
}

// said is what a kernel that agrees with every answer would have said.
func said(t *testing.T, img *kimage.Image, points []x86.Addr, names []string) *Booted {
	t.Helper()
	rows, err := computed(img, []byte(Definitions(points)))
	require.NoError(t, err)
	b := &Booted{Frames: map[string][]byte{}}
	text := img.Lookup("_stext")[0].Addr
	b.Settled = make([]byte, 1<<20)
	var errnos, list bytes.Buffer
	for i, at := range points {
		cell := &rows[i].Cells[0]
		fmt.Fprintln(&errnos, cell.Errno)
		flag := map[string]string{report.RunsFtrace: "[FTRACE]", report.RunsOptimized: "[OPTIMIZED]"}[cell.Runs]
		if cell.Errno == 0 {
			fmt.Fprintf(&list, "%016x  k  there    %s\n", uint64(at), flag)
		}
		if cell.Runs == report.RunsOptimized {
			b.Settled[at.Sub(text)] = x86.Jmp32
		}
	}
	for _, n := range names {
		rows, err := computed(img, []byte(n))
		require.NoError(t, err)
		fmt.Fprintln(&errnos, rows[0].Cells[0].Errno)
	}
	b.Frames[frame.Errnos], b.Frames[frame.List] = errnos.Bytes(), list.Bytes()
	return b
}

func TestAgreement(t *testing.T) {
	img := guest(t)
	points, names := append(Points(img, 39, 3), img.Lookup("gcd")[0].Addr+5), Names(img, nil, 20, 3)
	b := said(t, img, points, names)
	a, err := ComparePoints(img, points, len(names), b)
	require.NoError(t, err)
	require.Empty(t, a.Differences)
	require.Equal(t, 40, a.Same)
	a, err = CompareNames(img, len(points), names, b)
	require.NoError(t, err)
	require.Empty(t, a.Differences)

	// A flag without the jump in the text, or another answer, is a difference.
	clear(b.Settled)
	a, err = ComparePoints(img, points, len(names), b)
	require.NoError(t, err)
	require.NotEmpty(t, a.Differences)
	require.Contains(t, a.Differences[0], "computed optimized, the kernel says optimized in the list, not in the text")
	b.Frames[frame.List] = []byte("no list")
	_, err = ComparePoints(img, points, len(names), b)
	require.Error(t, err)
	b.Frames[frame.Errnos] = []byte("0\n")
	_, err = CompareNames(img, len(points), names, b)
	require.ErrorContains(t, err, "answered 1 of 60 definitions")
}
