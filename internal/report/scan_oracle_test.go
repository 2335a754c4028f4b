package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/oracle"
	"kprobelab/kimage"
)

// TestScanOracle scans the measured points of three real kernels as the scan command
// does with --points --tsv, and compares every row with the kernel's answer, to the
// slot's bytes. Over text that is made of the image alone the answers are the same. A
// few slots differ, because 6.12 patches in values that only a boot knows (the security
// modules' calls, a table's address).
func TestScanOracle(t *testing.T) {
	for kernel := range oracle.Kernels {
		t.Run(kernel, func(t *testing.T) {
			dir := oracle.Dir(t, kernel)
			live := filepath.Join(dir, "live.elf.zst")
			compareScan(t, kernel, openKernel(t, kernel, &kimage.Options{LiveText: live}), 8)
			if !testing.Short() {
				compareScan(t, kernel, openKernel(t, kernel, nil), 6)
			}
		})
	}
}

func openKernel(t testing.TB, kernel string, o *kimage.Options) *kimage.Image {
	img, err := kimage.Open(oracle.Image(t, kernel), o)
	require.NoError(t, err)
	return img
}

// compareScan compares the first n measured points.
func compareScan(t *testing.T, kernel string, img *kimage.Image, n int) {
	f, err := os.Open(oracle.File(t, kernel, "points.tsv.gz"))
	require.NoError(t, err)
	defer f.Close()
	lines, err := ReadPoints(f)
	require.NoError(t, err)
	points := oracle.Points(t, kernel)
	require.Len(t, lines, len(points))
	if testing.Short() {
		lines, points = some(t, lines), some(t, points)
	}
	var b bytes.Buffer
	s := NewScan(img)
	s.Slots = true
	_, err = s.WritePoints(&b, ScanTSV, lines)
	require.NoError(t, err)
	rows := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")[1:]
	require.Len(t, rows, len(points))
	different := 0
	for i := range points {
		got, want := strings.Split(rows[i], "\t"), measured(&points[i])[:n]
		if have := append(got[:1:1], append(got[3:8:8], got[9:]...)...)[:n]; !equal(want, have) {
			if different++; different < 10 {
				t.Errorf("%s+%d (%s): the kernel says %q, scan %q", points[i].Sym, points[i].Off, points[i].Reason, want, have)
			}
		}
	}
	t.Logf("%d rows, %d different", len(rows), different)
	require.Zero(t, different)
}

// some is every eighth of a list, and says so.
func some[T any](t *testing.T, list []T) (out []T) {
	t.Helper()
	t.Logf("-short: every eighth of %d is asked", len(list))
	for i := 0; i < len(list); i += 8 {
		out = append(out, list[i])
	}
	return out
}

// measured are the columns address, errno, ftrace, boostable, emulated, optimized, slot_addr
// and slot as the kernel had them.
func measured(p *oracle.Point) []string {
	bit := func(v bool) string {
		if v {
			return "1"
		}
		return "0"
	}
	ok := p.Err == 0
	stepped := ok && !p.Ftrace
	row := []string{
		known(p.Addr).String(), strconv.Itoa(p.Err), bit(ok && p.Ftrace),
		bit(stepped && p.Boost), bit(stepped && p.Emul != ""), bit(p.Opt), "", "",
	}
	if stepped {
		row[6], row[7] = known(p.SlotAddr).String(), fmt.Sprintf("%x", p.Slot[:p.TPLen])
	}
	return row
}

func equal(a, b []string) bool { return strings.Join(a, "\t") == strings.Join(b, "\t") }

// TestScanOracleWalk: over a real kernel too, functions that are walked give
// the rows of their points.
func TestScanOracleWalk(t *testing.T) {
	s := NewScan(openKernel(t, "oracle612", nil))
	all, err := s.Functions()
	require.NoError(t, err)
	var some []kimage.Symbol
	step := 211
	if testing.Short() {
		step *= 8
		t.Logf("-short: every %dth of %d functions is walked", step, len(all))
	}
	for i := 0; i < len(all); i += step {
		some = append(some, all[i])
	}
	var walked, listed bytes.Buffer
	totals, err := s.WriteFunctions(&walked, ScanTSV, some)
	require.NoError(t, err)
	points, err := ReadPoints(bytes.NewReader(walked.Bytes()))
	require.NoError(t, err)
	_, err = s.WritePoints(&listed, ScanTSV, points)
	require.NoError(t, err)
	require.True(t, walked.String() == listed.String(), "the rows differ")
	t.Logf("%d rows of %d functions", totals.Points, len(some))
}
