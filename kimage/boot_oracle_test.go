package kimage_test

import (
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/oracle"
	"kprobelab/internal/tools/conformance/boottext"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// Rule: the text computed from the file equals a real kernel's text after boot, except
// for bytes that only a running machine decides.
func TestBootTextAgainstRealKernels(t *testing.T) {
	kimage.EachKernel(t, func(t *testing.T, kernel string, img *kimage.Image) {
		live := oracle.LiveText(t, kernel)
		compareText(t, img, live.Base, live.Bytes)
	})
}

// Rule: another processor's text differs by its features and mitigations.
func TestBootTextOfEPYC(t *testing.T) {
	packed, err := os.ReadFile(oracle.File(t, "oracle", "epyc_live_text.bin.zst"))
	if err != nil {
		t.Skip("no measured text of another processor")
	}
	z, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer z.Close()
	live, err := z.DecodeAll(packed, nil)
	require.NoError(t, err)
	img, err := kimage.Open(oracle.Image(t, "oracle"), &kimage.Options{CPU: "EPYC,-rdseed"}) // as QEMU 7.2 gave it
	require.NoError(t, err)
	compareText(t, img, img.Lookup("_stext")[0].Addr, live)
}

// compareText prints how many bytes of each category of patch site differ, and
// fails where a difference has no known cause.
func compareText(t *testing.T, img *kimage.Image, base x86.Addr, live []byte) {
	t.Helper()
	tally := boottext.Compare(img, base, live, nil)
	var out strings.Builder
	tally.WriteText(&out)
	t.Log("\n" + out.String())
	require.Zero(t, tally.Unexplained)
}
