package values

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/script/bpftrace"
)

// The same seed draws the same scripts, and those without a kernel are accepted.
func TestDrawnScriptsAreAccepted(t *testing.T) {
	for seed := range uint64(20) {
		text := drawFile(rand.New(rand.NewPCG(seed, 0)), 0, 20, kind{plain: true})
		assert.Equal(t, text, drawFile(rand.New(rand.NewPCG(seed, 0)), 0, 20, kind{plain: true}))
		_, err := bpftrace.Analyze("drawn", text, &bpftrace.Options{}, nil)
		require.NoError(t, err, "seed %d\n%s", seed, text)
	}
}

// The output of a script is the text after its marker, and its maps.
func TestCompareNamesTheScript(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	write := func(dir, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "v0.text"), []byte(text), 0o644))
	}
	write(a, "Attaching 1 probe...\n== 0\n1\n== 1\n2\n\n\n@m0_1: 5\n@m1_1: 6\n")
	write(b, "Attaching 1 probe...\n== 0\n1\n== 1\n2\n\n\n@m0_1: 5\n@m1_1: 7\n")
	var out bytes.Buffer
	same, err := compareFolders(&out, a, b)
	require.NoError(t, err)
	assert.False(t, same)
	assert.Contains(t, out.String(), "script 1:")
	assert.NotContains(t, out.String(), "script 0:")
	assert.Contains(t, out.String(), "1 of 2 scripts differ")
	same, err = compareFolders(&out, a, a)
	require.NoError(t, err)
	assert.True(t, same)
}

// A file that the verifier refuses is counted apart; one that bpftrace refuses differs.
func TestCompareCountsWhatDidNotLoad(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	write := func(dir, file, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
	}
	for _, dir := range []string{a, b} {
		write(dir, "v0.text", "== 0\n1\n")
		write(dir, "v1.text", "== 1\n2\n")
	}
	write(a, "v1.text", "bpftrace ended with 255\nERROR: Loading BPF object(s) failed.\n")
	var out bytes.Buffer
	same, err := compareFolders(&out, a, b)
	require.NoError(t, err)
	assert.True(t, same)
	assert.Contains(t, out.String(), "v1.text is not compared")
	assert.Contains(t, out.String(), "0 of 1 scripts differ; the verifier refused 1 of 2 files")
	write(a, "v1.text", "ended with 255\nERROR: Error loading BPF program for kprobe_vfs_read_1. Error code: -13 (Permission denied). Use -v for full kernel error log.\n")
	same, err = compareFolders(&out, a, b)
	require.NoError(t, err)
	assert.True(t, same, "as 0.27.1 says it")
	write(a, "v1.text", "bpftrace ended with 1\nERROR: syntax error\n")
	same, err = compareFolders(&out, a, b)
	require.NoError(t, err)
	assert.False(t, same)
}

// What both versions of the tool share is drawn of the same seed, too, and is accepted.
func TestSharedScriptsAreAccepted(t *testing.T) {
	for seed := range uint64(20) {
		text := drawFile(rand.New(rand.NewPCG(seed, 0)), 0, 20, kind{plain: true, shared: true})
		_, err := bpftrace.Analyze("drawn", text, &bpftrace.Options{}, nil)
		require.NoError(t, err, "seed %d\n%s", seed, text)
		assert.NotRegexp(t, `clear\(|stats\(|~`, text)
	}
}
