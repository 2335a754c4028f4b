package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/samples.md shows the program's output, but for addresses and
// times, which depend on the compiler of the guest kernel.
func TestSamplesAreDocumentedAsTheyPrint(t *testing.T) {
	doc, err := os.ReadFile("../../docs/samples.md")
	require.NoError(t, err)
	sessions := 0
	for block := range strings.SplitSeq(string(doc), "\n\n") {
		command, want, ok := strings.Cut(unindent(block), "\n")
		if args, is := strings.CutPrefix(command, "$ kprobelab "); ok && is {
			sessions++
			var out bytes.Buffer
			execute(append([]string{"kprobelab"}, strings.Fields(args)...), &out, &out)
			require.Equal(t, masked(want), masked(strings.TrimSuffix(out.String(), "\n")), args)
		}
	}
	require.Greater(t, sessions, 10)
}

// README, the tour and the page of decoders show the program's output on the guest
// kernel, and on a real kernel if it is in the cache. The probes of the tour's other
// commands are hit.
func TestReadmeShowsWhatIsPrinted(t *testing.T) {
	t.Chdir("../..")
	n, hit := 0, 0
	for _, page := range []string{"README.md", "docs/tour.md", "docs/decoder.md"} {
		doc, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, s := range sessions(string(doc)) {
			if strings.Contains(s.command, "three.py") { // the page's own decoder
				continue
			}
			if strings.HasPrefix(s.command, "boot ") { // which prints how long it took
				continue
			}
			if image := regexp.MustCompile(`\.cache/\S+`).FindString(s.command); image != "" {
				if _, err := os.Stat(image); err != nil || testing.Short() {
					continue
				}
			}
			if strings.HasPrefix(s.command, "check ") {
				s.command = strings.Replace(s.command, "probes", checkedProbes(t, string(doc)), 1)
			}
			n++
			_, out := typed(s.command)
			requireShown(t, s, out)
		}
		for _, m := range regexp.MustCompile(`(?m)^    kprobelab (run --kprobe .*)$`).FindAllStringSubmatch(string(doc), -1) {
			hit++
			code, out := typed(m[1])
			require.Zero(t, code, out)
			require.Regexp(t, `(?m)^kprobe  \S+ +[1-9]\d* +0$`, out)
		}
	}
	require.Greater(t, n, 10)
	require.Positive(t, hit)
}

// checkedProbes is the file "probes" that a page makes with printf.
func checkedProbes(t *testing.T, page string) string {
	m := regexp.MustCompile(`(?m)^    \$ (printf .*) > ?probes$`).FindStringSubmatch(page)
	require.NotNil(t, m)
	list, err := exec.Command("sh", "-c", m[1]).Output()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "probes")
	require.NoError(t, os.WriteFile(file, list, 0o600))
	return file
}

// typed runs a command as a shell would, and gives its exit code and output, but for how far it
// is: that is said on slow machines only.
func typed(command string) (int, string) {
	var out bytes.Buffer
	code := execute(append([]string{"kprobelab"}, shellWords(command)...), &out, &out)
	return code, soFar.ReplaceAllString(out.String(), "")
}

var soFar = regexp.MustCompile(`(?m)^explore: (it is not known how many runs|\d+ runs, \d+ states after ).*\n`)

// shellWords splits at blanks, but for those inside single quotes.
func shellWords(command string) (words []string) {
	word, quoted, open := "", false, false
	for _, r := range command + " " {
		switch {
		case r == '\'':
			open, quoted = !open, true
		case r == ' ' && !open:
			if word != "" || quoted {
				words = append(words, word)
			}
			word, quoted = "", false
		default:
			word += string(r)
		}
	}
	return words
}

// unindent takes the four columns away that make a block code.
func unindent(block string) string {
	lines := strings.Split(strings.TrimRight(block, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, "    ")
	}
	return strings.Join(lines, "\n")
}

func masked(text string) string {
	return clock.ReplaceAllString(duration.ReplaceAllString(address.ReplaceAllString(text, "ADDRESS"), "N ns"), "TIME:")
}
