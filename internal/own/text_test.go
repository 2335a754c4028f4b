package own

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/oracle"
	"kprobelab/kimage"
)

// Rule: the computed bytes at a site of a table equal the bytes that the image's own functions
// write there, on any processor: with retpolines, without, with fences, with return thunks.
func TestKernelsPatchTheirTextAsComputed(t *testing.T) {
	cpus := []string{"qemu64", "EPYC", "Haswell", "qemu64,+ibrs_enhanced", "EPYC-Milan,-rdseed"}
	if testing.Short() {
		cpus = cpus[2:4]
	}
	for kernel := range oracle.Kernels {
		for _, cpu := range cpus {
			t.Run(kernel+"/"+cpu, func(t *testing.T) {
				img, err := kimage.Open(oracle.Image(t, kernel), &kimage.Options{CPU: cpu})
				require.NoError(t, err)
				same(t, img)
			})
		}
	}
}

// same compares every site of an image.
func same(t *testing.T, img *kimage.Image) {
	t.Helper()
	s, err := img.SelfPatch()
	require.NoError(t, err)
	p, err := PatchText(s)
	require.NoError(t, err)
	defer p.Close()
	require.Empty(t, p.Failed)
	changed := 0
	before := map[kimage.Site][]byte{}
	for _, kind := range kimage.PatchedKinds {
		for _, site := range s.Sites(kind) {
			b := make([]byte, site.Len)
			s.CodeAt(site.Addr, b)
			before[site] = b
		}
	}
	s.Patch()
	for _, kind := range kimage.PatchedKinds {
		for _, site := range s.Sites(kind) {
			own, ours := make([]byte, site.Len), make([]byte, site.Len)
			require.NoError(t, p.Read(site.Addr, own))
			s.CodeAt(site.Addr, ours)
			require.Equal(t, own, ours, "%s at %s", Applier(kind), site.Addr)
			if string(own) != string(before[site]) {
				changed++
			}
		}
	}
	require.Greater(t, changed, len(before)/8, "the image's functions patched nothing")
}
