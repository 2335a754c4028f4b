package kernels

import (
	"bufio"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/debian"
)

// word is a person's name for a kernel.
type word struct {
	// One of these: a release, a series of releases, a suite; or the newest.
	release, series, suite string
	newest                 bool
	// flavour is the ending of a Debian release, such as cloud-amd64.
	flavour string
}

// DefaultFlavour is Debian's smallest kernel, which boots fastest.
const DefaultFlavour = "cloud-amd64"

var (
	flavours    = []string{"cloud-amd64", "rt-amd64", "amd64"}
	seriesWord  = regexp.MustCompile(`^[0-9]+(\.[0-9]+){1,2}$`)
	releaseWord = regexp.MustCompile(`^[0-9]+\.[0-9]+[0-9A-Za-z._+~-]*[-+][0-9A-Za-z._+~-]+$`)
	suiteWord   = regexp.MustCompile(`^[a-z]+(-backports)?$`)
)

// parseWord reads a word: a release as uname -r says it, a series (6.12), a suite (trixie, bookworm-backports), newest; the last three
// perhaps with a flavour after a slash (trixie/rt-amd64).
func parseWord(text string) (word, error) {
	w := word{flavour: DefaultFlavour}
	name, flavour, ok := strings.Cut(text, "/")
	if ok {
		w.flavour = flavour
		if !slices.Contains(flavours, flavour) {
			return w, fmt.Errorf("%w: %q is none of the flavours %s", ErrKernel, flavour, strings.Join(flavours, ", "))
		}
	}
	switch {
	case name == "newest":
		w.newest = true
	case seriesWord.MatchString(name):
		w.series = name
	case suiteWord.MatchString(name):
		w.suite = name
	case !ok && isRelease(name) && releaseWord.MatchString(name):
		w.release = name
	default:
		return w, fmt.Errorf("%w: %q is neither a release (6.12.107+deb13-amd64), a series (6.12), a suite of Debian's (trixie) nor newest", ErrKernel, text)
	}
	return w, nil
}

// IsName reports whether a text may name a kernel, as Fetch takes it: a release, a series, a suite or newest.
func IsName(text string) bool {
	w, err := parseWord(text)
	return err == nil && (w.suite == "" || slices.Contains(suites, w.suite))
}

// means reports whether the word means a release. A suite has no releases of its own: Kernel.Suites and an index tell.
func (w word) means(release string) bool {
	if w.release != "" {
		return release == w.release
	}
	if w.suite != "" || flavourOf(release) != w.flavour && isDebian(release) {
		return false
	}
	if w.newest {
		return true
	}
	rest, ok := strings.CutPrefix(release, w.series)
	return ok && (rest == "" || !strings.ContainsRune("0123456789", rune(rest[0])))
}

// of is the suite with the flavour, "" for other words.
func (w word) of() string {
	if w.suite == "" {
		return ""
	}
	return w.suite + "/" + w.flavour
}

// flavourOf returns the flavour at the end of a Debian release.
func flavourOf(release string) string {
	for _, f := range flavours {
		if strings.HasSuffix(release, "-"+f) {
			return f
		}
	}
	return ""
}

func isDebian(release string) bool { return flavourOf(release) != "" }

// SystemSuite returns the suite of the system below root, or bookworm if it is not Debian.
func (s *Store) SystemSuite() string {
	text, err := bounded.ReadFile(filepath.Join(s.o.Root, "etc", "os-release"), bounded.SourcesFile)
	if err != nil {
		return "bookworm"
	}
	values := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "=")
		values[name] = strings.Trim(value, `"'`)
	}
	switch suite := values["VERSION_CODENAME"]; {
	case values["ID"] != "debian":
		return "bookworm"
	case suite == "":
		return "sid"
	default:
		return suite
	}
}

// newer orders releases, the newest first.
func newer(a, b string) int { return debian.Compare(b, a) }
