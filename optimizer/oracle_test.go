package optimizer

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/oracle"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// thorough is set by make soak: Check, which walks the function for each point, then checks every
// point, not only some.
var thorough = os.Getenv("KPROBELAB_SOAK") != ""

func openKernel(tb testing.TB, kernel, live string) *kimage.Image {
	return openImage(tb, kernel, &kimage.Options{LiveText: oracle.File(tb, kernel, live)})
}

func openImage(tb testing.TB, kernel string, o *kimage.Options) *kimage.Image {
	img, err := kimage.Open(oracle.Image(tb, kernel), o)
	require.NoError(tb, err)
	return img
}

// TestDecisionsOfRealKernels compares the decisions about every measured point of three real
// kernels, over the text that they ran, with the kernels' decisions, and the detour buffer with
// theirs. Two values that only that boot knew are left out: the address of the probe's own object,
// and the displacement of the call.
func TestDecisionsOfRealKernels(t *testing.T) {
	for kernel := range oracle.Kernels {
		t.Run(kernel, func(t *testing.T) {
			t.Parallel()
			text := oracle.LiveText(t, kernel)
			img := openKernel(t, kernel, "live.elf.zst")
			c := img.Profile()
			s := NewScanner(img, c)
			points := oracle.Points(t, kernel)
			if testing.Short() {
				t.Logf("-short: every eighth of %d points is asked", len(points))
			}
			asked, optimized, detours := 0, 0, 0
			for i := range points {
				p := &points[i]
				if p.Err != 0 || testing.Short() && i%8 != 0 {
					continue
				}
				asked++
				at := p.ProbedAt(text)
				d := s.Decide(at)
				if d.OK != p.Opt {
					t.Errorf("%s+%d: the kernel says %v, we say %v %v", p.Sym, p.Off, p.Opt, d.OK, d.Reason)
					continue
				}
				if thorough || asked%53 == 0 {
					sameAsCheck(t, img, at, d)
				}
				if !d.OK {
					continue
				}
				optimized++
				require.Equal(t, p.OptSize, d.Size, "%s+%d", p.Sym, p.Off)
				if len(p.Detour) > 0 {
					detours++
					compareDetour(t, img, at, p)
				}
			}
			t.Logf("%d points, %d optimized, %d detour buffers", asked, optimized, detours)
			require.Positive(t, detours)
		})
	}
}

// sameAsCheck: the Verdict with all reasons and the fast decision agree.
func sameAsCheck(t *testing.T, img *kimage.Image, at x86.Addr, d Decision) {
	v := Check(img, at, img.Profile())
	require.Equal(t, d.OK, v.OK, "%v", at)
	if s := v.Stops(); s != nil {
		require.Equal(t, d.Reason, s.ID, "%v", at)
		require.Equal(t, d.Addr, s.Addr, "%v", at)
	} else {
		require.Equal(t, int64(d.Size), v.DCR.End.Sub(v.DCR.Start))
	}
}

// compareDetour masks the two places of a buffer that only a boot knows.
func compareDetour(t *testing.T, img *kimage.Image, at x86.Addr, p *oracle.Point) {
	c := img.Profile()
	d, err := BuildDetour(img, at, p.DetourAddr, c, DetourParams{Callback: p.DetourAddr})
	require.NoError(t, err, "%s+%d", p.Sym, p.Off)
	want := append([]byte(nil), p.Detour...)
	require.Equal(t, d.Len, len(want), "%s+%d", p.Sym, p.Off)
	l := LayoutOf(c)
	clear(want[l.Arg+2 : l.Call])
	copy(want[l.Call+1:l.Call+x86.Rel32Size], d.Bytes[l.Call+1:])
	if !bytes.Equal(want, d.Code()) {
		t.Errorf("%s+%d:\nkernel %x\nours   %x", p.Sym, p.Off, want, d.Code())
	}
	if !bytes.Equal(p.OptCopied, d.Saved[:]) {
		t.Errorf("%s+%d: saved %x, ours %x", p.Sym, p.Off, p.OptCopied, d.Saved)
	}
	require.Equal(t, p.Armed5, d.Jump[:], "%s+%d", p.Sym, p.Off)
}

// TestDecisionsWithReturnThunks: 6.1 booted for a processor with untrained
// return thunks, where every return is a jump among the thunks. The text that
// boot makes for that processor gives the same answers as the live one.
func TestDecisionsWithReturnThunks(t *testing.T) {
	live := oracle.File(t, "oracle", "epyc_live_text.bin.zst")
	for name, o := range map[string]*kimage.Options{"live": {LiveText: live}, "made": {CPU: "epyc"}} {
		t.Run(name, func(t *testing.T) {
			img := openImage(t, "oracle", o)
			s := NewScanner(img, img.Profile())
			asked, optimized := 0, 0
			for _, col := range epycPoints(t) {
				at, err := strconv.ParseUint(col[0], 16, 64)
				require.NoError(t, err)
				asked++
				d := s.Decide(x86.Addr(at))
				require.Equal(t, col[4] == "1", d.OK, "%s+%s: %v", col[1], col[2], d.Reason)
				if d.OK {
					optimized++
				}
			}
			t.Logf("%d points, %d optimized", asked, optimized)
			require.Positive(t, optimized)
		})
	}
}

// epycPoints are the rows of the points that were registered.
func epycPoints(t *testing.T) (rows [][]string) {
	f, err := os.Open(oracle.File(t, "oracle", "epyc_points.tsv"))
	require.NoError(t, err)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		col := strings.Split(lines.Text(), "\t")
		if !strings.HasPrefix(col[0], "#") && col[3] == "0" {
			rows = append(rows, col)
		}
	}
	return rows
}
