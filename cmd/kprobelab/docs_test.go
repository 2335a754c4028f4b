package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
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
	// Of these pages, the commands that need no file of the reader's are run.
	some := map[string]*regexp.Regexp{
		"docs/hazards.md": regexp.MustCompile(`^hazards `), "docs/losses.md": regexp.MustCompile(`^run `),
		"docs/uprobes.md": regexp.MustCompile(`^explain `), "docs/watch.md": regexp.MustCompile(`^(run|explain) `),
	}
	for _, page := range append([]string{"README.md", "docs/tour.md", "docs/decoder.md"}, slices.Sorted(maps.Keys(some))...) {
		doc, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, s := range sessions(string(doc)) {
			if only := some[page]; only != nil && !only.MatchString(s.command) {
				continue
			}
			if strings.Contains(s.command, "three.py") { // the page's own decoder
				continue
			}
			if strings.HasPrefix(s.command, "boot ") { // which prints how long it took
				continue
			}
			if !present(regexp.MustCompile(`\.cache/\S+`).FindAllString(s.command, -1)) {
				continue
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

// present reports whether all images and dumps of a command are there; with -short, whether it has none.
func present(files []string) bool {
	for _, f := range files {
		if _, err := os.Stat(f); err != nil || testing.Short() {
			return false
		}
	}
	return true
}

// README is for a stranger; docs/tour.md has one example of each thing.
func TestReadmeIsShort(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(readme), "\n"), 150)
}

// Every file and every heading that a page names is there.
func TestLinksOfPages(t *testing.T) {
	t.Chdir("../..")
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "ci/*.md", "testdata/*.md", "decoder/opcodes/*.md"} {
		list, err := filepath.Glob(pattern)
		require.NoError(t, err)
		pages = append(pages, list...)
	}
	n := 0
	for _, page := range pages {
		doc, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`\]\(([^):#]*)(#[^)]*)?\)`).FindAllStringSubmatch(string(doc), -1) {
			n++
			to := page
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(page), m[1])
			}
			text, err := os.ReadFile(to)
			if st, statErr := os.Stat(to); statErr == nil && st.IsDir() {
				continue
			}
			if !assert.NoError(t, err, "%s: %s", page, m[0]) || m[2] == "" || filepath.Ext(to) != ".md" {
				continue
			}
			assert.Contains(t, anchors(string(text)), m[2], "%s: %s", page, m[0])
		}
	}
	require.Greater(t, n, 300)
}

// anchors are the headings of a page as links name them.
func anchors(page string) (list []string) {
	seen := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		name = "#" + strings.ReplaceAll(name, " ", "-")
		if n := seen[name]; n > 0 {
			list = append(list, fmt.Sprintf("%s-%d", name, n))
		} else {
			list = append(list, name)
		}
		seen[name]++
	}
	return list
}

// The film in README shows what its commands print, but for the lines that the screen has no room for. It has no script, and
// is small.
func TestTheFilmShowsWhatIsPrinted(t *testing.T) {
	film, err := os.ReadFile("../../docs/film.svg")
	require.NoError(t, err)
	require.Less(t, len(film), 100_000)
	require.NotContains(t, string(film), "<script")
	var svg struct {
		Scenes []struct {
			Command string   `xml:"aria-label,attr"`
			Lines   []string `xml:"text"`
		} `xml:"g>g"`
	}
	require.NoError(t, xml.Unmarshal(film, &svg))
	require.Len(t, svg.Scenes, 4)
	t.Setenv("KPROBELAB_CACHE", "off")
	for _, s := range svg.Scenes {
		command, ok := strings.CutPrefix(s.Command, "kprobelab ")
		require.True(t, ok)
		require.Equal(t, "$ "+s.Command, s.Lines[0])
		code, out := typed(command)
		require.Zero(t, code, out)
		var printed []string
		for line := range strings.Lines(out) {
			if line = strings.TrimRight(line, "\n"); line != "" { // the film has no empty texts
				printed = append(printed, line)
			}
		}
		shown := s.Lines[1:]
		if last := len(shown) - 1; shown[last] == "…" {
			shown = shown[:last]
		} else {
			require.Len(t, shown, len(printed), command)
		}
		for i, line := range shown {
			if begin, cut := strings.CutSuffix(line, "…"); cut {
				require.True(t, strings.HasPrefix(masked(printed[i]), masked(begin)), "%s\n%s\n%s", command, line, printed[i])
			} else {
				require.Equal(t, masked(line), masked(printed[i]), command)
			}
		}
	}
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
