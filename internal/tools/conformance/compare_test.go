package conformance

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/qemu/frame"
	"kprobelab/internal/report"
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

// said returns the answers of a kernel that agrees with every computed answer.
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

// Rule: what was asked compares in the same way after it was saved and read.
func TestAskedIsKept(t *testing.T) {
	img := guest(t)
	points, names := Points(img, 39, 3), Names(img, nil, 20, 3)
	a := &Asked{Points: points, Names: names, Booted: *said(t, img, points, names)}
	text, err := TextOf(img)
	require.NoError(t, err)
	a.Booted.Text = make([]byte, text.End-text.Start)
	img.CodeAt(text.Start, a.Booted.Text)
	a.Booted.Text[7]++
	a.Booted.Settled = a.Booted.Settled[:len(a.Booted.Text)]

	file := filepath.Join(t.TempDir(), "k.answers")
	require.NoError(t, a.Save(file))
	back, err := LoadAsked(file)
	require.NoError(t, err)
	require.Equal(t, a, back)

	var first, second strings.Builder
	r, err := a.Compare(img, &first)
	require.NoError(t, err)
	again, err := back.Compare(img, &second)
	require.NoError(t, err)
	require.Equal(t, r, again)
	require.Equal(t, first.String(), second.String())
	require.Equal(t, Score{39, 39}, r.Points)
	require.Equal(t, Score{len(a.Booted.Text), len(a.Booted.Text) - 1}, r.Text)
	require.Equal(t, 1, r.Differences())
	require.Contains(t, first.String(), "without a known cause")

	r.Kernel = "6.1.0-1-amd64"
	line := filepath.Join(t.TempDir(), "k.json")
	require.NoError(t, r.Save(line))
	list, err := LoadResults(line)
	require.NoError(t, err)
	require.Equal(t, []Result{*r}, list)

	// A file that is cut short is an error.
	packed, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, packed[:len(packed)/2], 0o600))
	_, err = LoadAsked(file)
	require.Error(t, err)
}

// TestKernelWithoutPerfsKprobes: where perf has no kprobe unit (before 4.17), nothing is said of programs and nothing asked. A kernel that
// was asked has to answer.
func TestKernelWithoutPerfsKprobes(t *testing.T) {
	img, object := guest(t), []byte("p:k/one vfs_read\n")
	require.Empty(t, img.Lookup(perfUnit))
	a, err := CompareObject(img, object, &Booted{Frames: map[string][]byte{frame.Attached: {}}})
	require.NoError(t, err)
	require.Zero(t, a.Asked)
	for name, frames := range map[string]map[string][]byte{
		"nothing_sent": {}, "another_answered": {frame.Attached: []byte("other\t0\tkprobe/other\n")},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := CompareObject(img, object, &Booted{Frames: frames})
			require.ErrorContains(t, err, "the kernel did not answer for")
		})
	}
}
