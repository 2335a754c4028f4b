package debian

import (
	"path/filepath"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
)

// Source is one suite at one address, of apt's sources: sources.list(5).
type Source struct {
	URI, Suite string
	Components []string
	// Keys are the files of the keys that sign it, Key is a key in the entry itself; both are empty
	// if it names none.
	Keys []string
	Key  string
	// Expired is true if an index is accepted past its date of validity.
	Expired bool
}

// Named reports whether the entry names its keys.
func (s *Source) Named() bool { return len(s.Keys) > 0 || s.Key != "" }

// SystemSources reads the sources of apt below root, as far as they can be read:
// etc/apt/sources.list and the files in sources.list.d.
func SystemSources(root string) []Source {
	apt := filepath.Join(root, "etc", "apt")
	var list []Source
	for _, pattern := range []string{"sources.list", "sources.list.d/*.list", "sources.sources", "sources.list.d/*.sources"} {
		names, _ := filepath.Glob(filepath.Join(apt, pattern))
		for _, name := range names {
			of, err := ReadSources(name)
			if err == nil {
				list = append(list, of...)
			}
		}
	}
	if Configuration(root).Bool("Acquire::Check-Valid-Until", true) {
		return list
	}
	for i := range list {
		list[i].Expired = true
	}
	return list
}

// ReadSources reads a file of apt's sources, in the form that its name says: .sources, or one line an entry.
func ReadSources(name string) ([]Source, error) {
	text, err := bounded.ReadFile(name, bounded.SourcesFile)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(name, ".sources") {
		return stanzaSources(string(text))
	}
	return lineSources(string(text)), nil
}

// off are the words that switch an entry off.
var off = []string{"no", "false", "0", "off", "without", "disable"}

func stanzaSources(text string) ([]Source, error) {
	var list []Source
	err := stanzas(strings.NewReader(text), nil, func(f map[string]string) error {
		if !slices.Contains(strings.Fields(f["types"]), "deb") || slices.Contains(off, strings.ToLower(f["enabled"])) {
			return nil
		}
		of := Source{Components: strings.Fields(f["components"]), Expired: slices.Contains(off, strings.ToLower(f["check-valid-until"]))}
		if signed := f["signed-by"]; strings.Contains(signed, "BEGIN PGP") {
			of.Key = inlineKey(signed)
		} else {
			of.Keys = keyFiles(strings.Fields(signed))
		}
		for _, uri := range strings.Fields(f["uris"]) {
			for _, suite := range strings.Fields(f["suites"]) {
				of.URI, of.Suite = uri, suite
				list = append(list, of)
			}
		}
		return nil
	})
	return list, err
}

// inlineKey is an armored key as it was before it stood in a field: a dot alone is an empty line.
func inlineKey(field string) string {
	lines := strings.Split(field, "\n")
	for i, line := range lines {
		if line == "." {
			lines[i] = ""
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n")) + "\n"
}

// keyFiles are the files among the values of Signed-By; a fingerprint is none.
func keyFiles(values []string) (files []string) {
	for _, v := range values {
		for _, name := range strings.Split(v, ",") {
			if filepath.IsAbs(name) {
				files = append(files, name)
			}
		}
	}
	return files
}

func lineSources(text string) (list []Source) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "deb" {
			continue
		}
		words = words[1:]
		var of Source
		if strings.HasPrefix(words[0], "[") {
			words = lineOptions(words, &of)
		}
		if len(words) < 2 {
			continue
		}
		of.URI, of.Suite, of.Components = words[0], words[1], words[2:]
		list = append(list, of)
	}
	return list
}

// lineOptions reads the options of an entry, which brackets have around them, and returns the words after them.
func lineOptions(words []string, of *Source) []string {
	for i, word := range words {
		name, value, _ := strings.Cut(strings.Trim(word, "[]"), "=")
		switch strings.ToLower(name) {
		case "signed-by":
			of.Keys = keyFiles([]string{value})
		case "check-valid-until":
			of.Expired = slices.Contains(off, strings.ToLower(value))
		}
		if strings.HasSuffix(word, "]") {
			return words[i+1:]
		}
	}
	return nil
}

// suites are names of Debian's suites. Other vendors like to name theirs after them.
var suites = []string{"oldoldstable", "oldstable", "stable", "testing", "unstable", "sid", "bullseye", "bookworm", "trixie", "forky", "duke"}

// Mirrors are the system's sources of Debian's archive and its security updates; nil for none.
type Mirrors struct{ Main, Security *Source }

// Debian finds the entries of Debian's own archive among sources. An entry with Debian's key ranks
// before an entry whose address ends as Debian's do, and that before an entry whose suite has a
// name of Debian's and that names no key.
func Debian(list []Source) Mirrors {
	var m Mirrors
	for rank := range 3 {
		for i := range list {
			s := &list[i]
			base, security := strings.CutSuffix(strings.TrimSuffix(s.Suite, "/updates"), "-security")
			security = security || strings.HasSuffix(s.Suite, "/updates")
			_, updates := strings.CutSuffix(base, "-updates")
			if debianRank(s) != rank || !slices.Contains(suites, base) || updates || !slices.Contains(s.Components, "main") || !fetched(s.URI) {
				continue
			}
			switch {
			case security && m.Security == nil:
				m.Security = s
			case !security && m.Main == nil:
				m.Main = s
			}
		}
	}
	return m
}

// fetched reports whether an address is one of HTTP's or a folder's: others (cdrom:, tor+http:) are left to apt.
func fetched(uri string) bool {
	scheme, _, _ := strings.Cut(uri, ":")
	return scheme == "http" || scheme == "https" || scheme == "file"
}

func debianRank(s *Source) int {
	uri := strings.TrimSuffix(s.URI, "/")
	switch {
	case slices.ContainsFunc(s.Keys, func(k string) bool { return strings.Contains(filepath.Base(k), "debian-archive") }):
		return 0
	case strings.HasSuffix(uri, "/debian"), strings.HasSuffix(uri, "/debian-security"):
		return 1
	case s.Named():
		return 3
	}
	return 2
}

// KeyFiles returns the files of the keys that check a source below root: the files that the source
// names, else Debian's own keyring, else all keyrings that the system trusts for any source.
func (s *Source) KeyFiles(root string) []string {
	if s.Named() {
		return s.Keys
	}
	for _, name := range []string{"debian-archive-keyring.pgp", "debian-archive-keyring.gpg"} {
		name = filepath.Join(root, "usr", "share", "keyrings", name)
		if f, err := bounded.Open(name); err == nil {
			f.Close()
			return []string{name}
		}
	}
	var list []string
	for _, pattern := range []string{"trusted.gpg", "trusted.gpg.d/*.gpg", "trusted.gpg.d/*.asc"} {
		names, _ := filepath.Glob(filepath.Join(root, "etc", "apt", filepath.FromSlash(pattern)))
		list = append(list, names...)
	}
	return list
}
