package compare

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
)

var update = flag.Bool("update", false, "rewrite testdata/corpus and testdata/digests.txt by the decoders that are here")

// corpusRow is a line of testdata/corpus/MAP.txt.
type corpusRow struct {
	bytes          []byte
	length, kernel int
	class          string
	zydis          string
}

func readCorpus(t testing.TB, name string) (rows []corpusRow) {
	t.Helper()
	f, err := os.Open("testdata/corpus/" + name)
	require.NoError(t, err)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		text, _, _ := strings.Cut(lines.Text(), "#")
		c := strings.Fields(text)
		if len(c) == 0 {
			continue
		}
		require.GreaterOrEqual(t, len(c), 5, lines.Text())
		var r corpusRow
		r.bytes, err = hex.DecodeString(c[0])
		require.NoError(t, err, lines.Text())
		r.length, err = strconv.Atoi(c[1])
		require.NoError(t, err, lines.Text())
		r.class = c[2]
		r.kernel, err = strconv.Atoi(c[3])
		require.NoError(t, err, lines.Text())
		r.zydis = c[4]
		rows = append(rows, r)
	}
	return rows
}

func corpusNames(t testing.TB) (names []string) {
	t.Helper()
	entries, err := os.ReadDir("testdata/corpus")
	require.NoError(t, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".txt") {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestCorpus: our two views agree with the corpus.
func TestCorpus(t *testing.T) {
	if *update {
		writeCorpus(t)
	}
	total := 0
	for _, name := range corpusNames(t) {
		t.Run(name, func(t *testing.T) {
			for _, r := range readCorpus(t, name) {
				w := window(r.bytes)
				i, err := decoder.Decode(w)
				require.Equal(t, r.length, i.Length, "% x: %v", r.bytes, err)
				if err == nil {
					require.Equal(t, r.class, i.Class.String(), "% x", r.bytes)
				}
				k, err := decoder.DecodeKernel(w, nil)
				if err != nil {
					k.Length = 0
				}
				require.Equal(t, r.kernel, k.Length, "kernel's view of % x: %v", r.bytes, err)
				total++
			}
		})
	}
	require.Greater(t, total, 5000)
}

// TestCorpusByZydis: what the rows say of Zydis is so. Without Zydis, each row says that it
// agrees, or has a cause.
func TestCorpusByZydis(t *testing.T) {
	z, err := Open("zydis", false)
	if err != nil {
		for _, name := range corpusNames(t) {
			for _, r := range readCorpus(t, name) {
				known := slices.ContainsFunc(causes, func(c cause) bool { return c.name == r.zydis && slices.Contains(c.decoders, "zydis") })
				require.True(t, known || r.zydis == "=", "%s: % x: %s", name, r.bytes, r.zydis)
			}
		}
		return
	}
	defer z.Close()
	for _, name := range corpusNames(t) {
		rows := readCorpus(t, name)
		var questions [][]byte
		for _, r := range rows {
			questions = append(questions, window(r.bytes))
		}
		ours, theirs := make([]Answer, len(rows)), make([]Answer, len(rows))
		Ours(questions, ours)
		require.NoError(t, z.Ask(questions, theirs))
		for n, r := range rows {
			require.Equal(t, r.zydis, verdict("zydis", questions[n], ours[n], theirs[n]), "%s: % x", name, r.bytes)
		}
	}
}

func mustOpen(t testing.TB, name string) Decoder {
	t.Helper()
	d, err := Open(name, false)
	if err != nil {
		t.Skipf("not compared with %s: %v", name, err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// verdict returns a cell of the corpus: "=" for an equal answer, "?" without an answer, else the
// difference or its cause.
func verdict(name string, q []byte, ours, theirs Answer) string {
	what := whatDiffers(ours, theirs)
	if what == "" {
		return "="
	}
	if cause := Cause(&Known{Name: name}, q, ours, theirs); cause != "" {
		return cause
	}
	return what
}

const corpusHead = `# %s: bytes, our length (0: no instruction) and class, the kernel decoder's length (6.1; 0: an error),
# and what others make of them: = agrees, else what differs, or the cause that docs/decoder.md explains.
# Zydis 4.1.1, binutils 2.40, LLVM 22.1.8, x86asm of go.mod. go test ./decoder/compare -update rewrites it.
#
# bytes                       len class         kernel zydis objdump llvm x86asm   # text

`

// writeCorpus makes the corpus: of every row of the decoder's tables up to
// four instructions, and what the generator comes up with that is none.
func writeCorpus(t *testing.T) {
	var others []Decoder
	for _, name := range Names[:4] {
		others = append(others, mustOpen(t, name))
	}
	refused := refusedByMap()
	for e := decoder.EncPrimary; e < decoder.EncNone; e++ {
		questions := append(decoder.Samples(e, 4), refused[e]...)
		writeCorpusFile(t, e, questions, others)
	}
}

// refusedByMap is up to 60 encodings of each map that are no instructions,
// each of another opcode.
func refusedByMap() map[decoder.Encoding][][]byte {
	g := NewGenerator(5)
	list := map[decoder.Encoding][][]byte{}
	seen := map[string]bool{}
	for range 400_000 {
		w := make([]byte, decoder.MaxInsnSize)
		g.Next(w)
		name := OpcodeName(w)
		if _, err := decoder.Decode(w); err == nil || seen[name] {
			continue
		}
		seen[name] = true
		e := mapOfRefused(name)
		if len(list[e]) < 60 {
			list[e] = append(list[e], shrinkWindow(w, func(s []byte) bool {
				_, err := decoder.Decode(s)
				return err != nil && OpcodeName(s) == name
			}))
		}
	}
	return list
}

func mapOfRefused(name string) decoder.Encoding {
	for prefix, e := range map[string]decoder.Encoding{
		"0f 38": decoder.Enc0F38, "0f 3a": decoder.Enc0F3A, "0f 0f": decoder.Enc3DNow, "evex map 1": decoder.EncEvex0F,
		"evex map 2": decoder.EncEvex0F38, "evex map 3": decoder.EncEvex0F3A, "evex map 4": decoder.EncEvex4, "evex map 5": decoder.EncEvex5, "evex map 7": decoder.EncEvex7,
		"evex map 6": decoder.EncEvex6, "c5": decoder.EncVex0F, "c4 map 1 ": decoder.EncVex0F, "c4 map 2 ": decoder.EncVex0F38,
		"c4 map 3 ": decoder.EncVex0F3A, "c4 map 5 ": decoder.EncVex5, "c4 map 7 ": decoder.EncVex7, "d5": decoder.EncRex2, "8f map 8": decoder.EncXop8, "8f map 9": decoder.EncXop9, "8f map 10": decoder.EncXopA,
	} {
		if strings.HasPrefix(name, prefix) {
			return e
		}
	}
	if strings.HasPrefix(name, "0f") {
		return decoder.Enc0F
	}
	return decoder.EncPrimary
}

func writeCorpusFile(t *testing.T, e decoder.Encoding, questions [][]byte, others []Decoder) {
	ours := make([]Answer, len(questions))
	Ours(questions, ours)
	cells := make([][]string, len(questions))
	for _, o := range others {
		theirs := make([]Answer, len(questions))
		require.NoError(t, o.Ask(questions, theirs))
		for n := range questions {
			cells[n] = append(cells[n], verdict(o.Name(), questions[n], ours[n], theirs[n]))
		}
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, corpusHead, e)
	for n, q := range questions {
		q = bytes.TrimRight(q, "\x90")
		class := "-"
		if ours[n].Length > 0 {
			q, class = questions[n][:ours[n].Length], ours[n].Class.String()
		}
		k, err := decoder.DecodeKernel(window(q), nil)
		if err != nil {
			k.Length = 0
		}
		fmt.Fprintf(&out, "%-30s %2d %-13s %2d %s  # %s\n", hex.EncodeToString(q), ours[n].Length, class, k.Length,
			strings.Join(cells[n], " "), decoder.Text(window(q), 0))
	}
	require.NoError(t, os.MkdirAll("testdata/corpus", 0o777))
	require.NoError(t, os.WriteFile("testdata/corpus/"+e.String()+".txt", out.Bytes(), 0o666))
}
