package compare

import (
	"bufio"
	"fmt"
	"hash/crc32"
	"kprobelab/decoder"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The directed encodings of a digest: digestSeeds times digestCount.
const (
	digestSeeds = 20
	digestCount = 250_000
)

// TestDirectedEncodings: length, class and target of five million directed encodings are as they
// were when Zydis agreed with each of them. It needs no Zydis; TestAgainstZydis runs Zydis.
func TestDirectedEncodings(t *testing.T) {
	seeds := digestSeeds
	if testing.Short() {
		seeds = 1
	}
	var got strings.Builder
	for seed := range seeds {
		fmt.Fprintf(&got, "%d %08x\n", seed, digest(t, uint64(seed)))
	}
	const file = "testdata/digests.txt"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got.String()), 0o666))
	}
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	for line := range strings.Lines(got.String()) {
		require.True(t, lines.Scan())
		require.Equal(t, lines.Text(), strings.TrimSpace(line), "of seed and digest; kprobelab decode fuzz --seed N --count %d finds what changed", digestCount)
	}
}

// digest is a checksum of our answers. With -update Zydis has to agree.
func digest(t *testing.T, seed uint64) uint32 {
	if *update {
		againstZydis(t, seed, digestCount)
	}
	g := NewGenerator(seed)
	q := [][]byte{make([]byte, decoder.MaxInsnSize)}
	var a [1]Answer
	sum := crc32.NewIEEE()
	var line []byte
	for range digestCount {
		g.Next(q[0])
		Ours(q, a[:])
		line = append(line[:0], byte(a[0].Length))
		if a[0].Length > 0 {
			line = append(line, byte(*a[0].Class))
			for n := range 8 {
				line = append(line, byte(a[0].Target>>(8*n)))
			}
		}
		sum.Write(line)
	}
	return sum.Sum32()
}

// TestAgainstZydis compares with Zydis on directed encodings: two million, a hundred million with
// KPROBELAB_SOAK=1. Length, validity, class and target are the same except for the documented
// causes. If Zydis is not installed, its recorded answers are compared (TestAnswers).
func TestAgainstZydis(t *testing.T) {
	if _, err := Open("zydis", false); err != nil {
		compareAnswers(t, "zydis")
		return
	}
	count := 2_000_000
	if testing.Short() {
		count = 100_000
	}
	if os.Getenv("KPROBELAB_SOAK") != "" {
		count = 100_000_000
	}
	againstZydis(t, 1000, count)
}

func againstZydis(t *testing.T, seed uint64, count int) {
	t.Helper()
	z := mustOpen(t, "zydis")
	c := &Comparison{}
	require.NoError(t, fuzzed([]Decoder{z}, seed, count, c, none))
	require.Equal(t, count, c.Instructions)
	require.Greater(t, c.Accepted, count/4)
	known := map[string]int{}
	for _, d := range c.Differences() {
		known[d.Cause] += d.Count
		if d.Cause == "" {
			t.Errorf("%s: %s: %d, such as % x: ours %v, theirs %v", d.Opcode, d.What, d.Count, c.Shrink(z, d), d.Ours, d.Theirs)
		}
	}
	t.Logf("%d encodings, %d of them instructions; differences by cause: %v", count, c.Accepted, known)
}
