package compare

import (
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
)

// knownOf are the decoders of which known/ has the version that make deps-test fetches.
var knownOf = []string{"zydis", "objdump", "llvm", "x86asm", "capstone", "iced"}

// versionOf is the version of a decoder that is here.
func versionOf(t *testing.T, name string) string {
	t.Helper()
	switch name {
	case "x86asm":
		info, ok := debug.ReadBuildInfo()
		require.True(t, ok)
		for _, m := range info.Deps {
			if m.Path == "golang.org/x/arch" {
				return m.Version
			}
		}
		return "v0.32.0" // a test program has no list of modules
	case "objdump":
		out, err := exec.Command("objdump", "--version").Output()
		require.NoError(t, err)
		return regexp.MustCompile(`\d+\.\d+`).FindString(string(out))
	}
	return map[string]string{"zydis": "4.1.1", "llvm": "22.1.8", "capstone": "5.0.7", "iced": "1.21.0"}[name]
}

// knownCount is the number of generated encodings that decide which rows a version does not know.
const knownCount = 1_000_000

// TestKnownVersions: each decoder that is here is recognized as the version of
// known/, and no other.
func TestKnownVersions(t *testing.T) {
	if *update {
		writeKnown(t)
		t.Skip("known/ is written; the next build has it")
	}
	for _, name := range knownOf {
		t.Run(name, func(t *testing.T) {
			d, err := Open(name, false)
			if err != nil {
				d = recordedLengths(t, name)
			}
			defer d.Close()
			k, err := Recognize(d)
			require.NoError(t, err)
			require.NotNil(t, k)
			require.Equal(t, name+" "+versionOf(t, name), k.String())
		})
	}
}

// recordedLengths is a decoder that finds the lengths of known/, but for two that it has
// wrong: a version with a fault of its own is still that version.
func recordedLengths(t *testing.T, name string) Decoder {
	for _, k := range knownVersions() {
		if k.Name != name {
			continue
		}
		a := &answers{name: name, said: map[string]Answer{}}
		for n, q := range knownQuestions() {
			length, err := strconv.ParseUint(k.lengths[n:n+1], 16, 8)
			require.NoError(t, err)
			if n < 2 {
				length ^= 1
			}
			a.said[string(q)] = Answer{Length: int(length)}
		}
		return a
	}
	require.Fail(t, "there is no file of known/", name)
	return nil
}

// TestKnownVersionsAreApart: the fixed questions tell all versions apart.
func TestKnownVersionsAreApart(t *testing.T) {
	list := knownVersions()
	require.GreaterOrEqual(t, len(list), len(knownOf))
	for i, a := range list {
		require.Len(t, a.lengths, len(knownQuestions()))
		for _, b := range list[:i] {
			require.Greater(t, strangers(a.lengths, b.lengths), len(a.lengths)*strangersAt/100, "%v and %v", a, b)
		}
	}
}

// TestNoRowIsOurGap: an instruction that a version accepts and that has no row in opcodes/ has no
// cause.
func TestNoRowIsOurGap(t *testing.T) {
	for _, k := range knownVersions() {
		for row := range k.rows {
			require.NotRegexp(t, "^accepted", row, k.String())
		}
	}
}

func writeKnown(t *testing.T) {
	var list []Decoder
	for _, name := range knownOf {
		list = append(list, mustOpen(t, name))
	}
	chosen, err := chooseQuestions(list, 20)
	require.NoError(t, err)
	var text strings.Builder
	for _, q := range chosen {
		fmt.Fprintln(&text, hex.EncodeToString(q))
	}
	require.NoError(t, os.WriteFile("known/questions.txt", []byte(text.String()), 0o644))
	for _, name := range knownOf {
		d := mustOpen(t, name)
		c := &Comparison{known: map[string]*Known{name: {Name: name}}}
		require.NoError(t, fuzzed([]Decoder{d}, 33, knownCount, c, none))
		version := versionOf(t, name)
		old, err := filepath.Glob("known/" + name + "-*.txt")
		require.NoError(t, err)
		for _, file := range old {
			require.NoError(t, os.Remove(file))
		}
		answers := make([]Answer, len(chosen))
		require.NoError(t, d.Ask(chosen, answers))
		text.Reset()
		fmt.Fprintf(&text, "version %s %s\nlengths ", name, version)
		for _, a := range answers {
			fmt.Fprintf(&text, "%x", a.Length)
		}
		text.WriteByte('\n')
		rows := map[string]string{}
		for _, diff := range c.Differences() {
			// Only refusals are written by a program. What else differs is a fault of
			// ours or theirs that a person has to look at.
			if diff.Cause == "" && diff.What == "refused" {
				rows[diff.What+" "+diff.Opcode] = hex.EncodeToString(diff.Bytes())
			}
		}
		for _, row := range slices.Sorted(maps.Keys(rows)) {
			fmt.Fprintf(&text, "%s # %s\n", row, rows[row])
		}
		require.NoError(t, os.WriteFile("known/"+name+"-"+version+".txt", []byte(text.String()), 0o644))
		t.Logf("%s %s: %d rows", name, version, len(rows))
	}
}

// chooseQuestions draws windows that tell decoders apart: for each pair, up to n at
// which their lengths differ.
func chooseQuestions(list []Decoder, n int) ([][]byte, error) {
	const drawn = 8 * batch
	g := NewGenerator(33)
	windows := make([][]byte, drawn)
	for i := range windows {
		windows[i] = make([]byte, decoder.MaxInsnSize)
		g.Next(windows[i])
	}
	answers := make([][]Answer, len(list))
	for d := range list {
		answers[d] = make([]Answer, drawn)
		for at := 0; at < drawn; at += batch {
			if err := list[d].Ask(windows[at:at+batch], answers[d][at:at+batch]); err != nil {
				return nil, err
			}
		}
	}
	var chosen [][]byte
	taken := map[int]bool{}
	for a := range list {
		for b := range a {
			for i, left := 0, n; i < drawn && left > 0; i++ {
				if answers[a][i].Length != answers[b][i].Length && !taken[i] {
					taken[i] = true
					chosen = append(chosen, windows[i])
					left--
				}
			}
		}
	}
	return chosen, nil
}
