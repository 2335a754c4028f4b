package profile

import (
	"fmt"
	"slices"
	"strings"
)

// Asked holds the releases that were found to have a value in a field. The sources are booted
// kernels, the functions, code or symbols of images, and source trees.
type Asked struct {
	// Field and Value are as Fields has them.
	Field, Value string
	// How is booted, asked, code, symbol or tree.
	How string
	// Releases lists the releases that have the value.
	Releases []Version
}

// Record is a public record of the release that took a change over.
type Record struct {
	// Where is changelog (Debian's, of the stable release), queue (the patches of stable
	// releases), announcement (the mail that announces a release), commit (of mainline) or
	// configuration, where no change of the kernel's decides.
	Where string
	// Release is the first release with the change, Title the commit's title.
	Release Version
	Title   string
	// Commit is the first 12 digits of mainline's hash, where it is known.
	Commit string
	// Fields are the fields that it changed.
	Fields []string
}

// ReadAsked reads lines of FIELD HOW VALUE RELEASE…; lines that begin with # are comments. A + in
// VALUE is a space, and - alone is no text.
func ReadAsked(text string) (list []Asked, err error) {
	err = lines(text, func(line string) error {
		w := strings.Fields(line)
		if len(w) < 4 {
			return fmt.Errorf("profile: %q is not FIELD HOW VALUE RELEASE…", line)
		}
		a := Asked{Field: w[0], How: w[1], Value: readValue(w[2])}
		a.Releases, err = versions(w[3:])
		list = append(list, a)
		return err
	})
	return list, err
}

// ReadRecords reads lines of WHERE RELEASE FIELD[,FIELD…] [HASH] TITLE.
func ReadRecords(text string) (list []Record, err error) {
	err = lines(text, func(line string) error {
		w := strings.SplitN(line, " ", 4)
		if len(w) < 4 {
			return fmt.Errorf("profile: %q is not WHERE RELEASE FIELDS TITLE", line)
		}
		v, err := versions(w[1:2])
		r := Record{Where: w[0], Release: v[0], Fields: strings.Split(w[2], ","), Title: w[3]}
		if hash, title, ok := strings.Cut(w[3], " "); ok && isHash(hash) {
			r.Commit, r.Title = hash, title
		}
		list = append(list, r)
		return err
	})
	return list, err
}

// readValue undoes WriteValue.
func readValue(word string) string {
	if word == "-" {
		return ""
	}
	return strings.ReplaceAll(word, "+", " ")
}

// WriteValue is a value as one word of a line that ReadAsked reads.
func WriteValue(value string) string {
	if value == "" {
		return "-"
	}
	return strings.ReplaceAll(value, " ", "+")
}

// isHash reports whether a word is 12 digits of a hash.
func isHash(word string) bool {
	return len(word) == 12 && strings.Trim(word, "0123456789abcdef") == ""
}

func lines(text string, read func(line string) error) error {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if err := read(line); err != nil {
			return err
		}
	}
	return nil
}

func versions(words []string) (list []Version, err error) {
	for _, w := range words {
		v, ok := ParseVersion(w)
		if !ok {
			err = fmt.Errorf("profile: %q is no release", w)
		}
		list = append(list, v)
	}
	return list, err
}

// Dates returns the releases that a row dates: From, Until, and the releases of Stable.
func (s *Change) Dates() []Version {
	var list []Version
	for _, v := range append([]Version{s.From, s.Until}, s.Stable...) {
		if v != (Version{}) && !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// Evidence says in a few words why a date of a row is believed: the nearest release below
// it and the nearest from it on that were found to differ, and the records. Empty: nothing
// but the row's own note.
func (s *Change) Evidence(date Version, asked []Asked, records []Record) string {
	var words []string
	if text := s.bracket(date, asked); text != "" {
		words = append(words, text)
	}
	for i := range records {
		r := &records[i]
		if r.Release == date && slices.Contains(r.Fields, s.Field) {
			words = append(words, fmt.Sprintf("%s: %q", strings.TrimSpace(r.Where+" "+r.Commit), r.Title))
		}
	}
	return strings.Join(words, "; ")
}

// found holds the finding for one release: how it was made, and whether the release has the value.
type found struct {
	release Version
	how     string
	has     bool
}

// bracket finds the neighbours of a date that differ.
func (s *Change) bracket(date Version, asked []Asked) string {
	var below, above *found
	for i := range asked {
		a := &asked[i]
		if a.Field != s.Field {
			continue
		}
		for _, r := range a.Releases {
			f := &found{r, a.How, a.Value == s.valueText()}
			switch {
			case !s.near(date, r):
			case r.before(date) && (below == nil || below.release.before(r)):
				below = f
			case !r.before(date) && (above == nil || r.before(above.release)):
				above = f
			}
		}
	}
	if below == nil || above == nil || below.has == above.has {
		return ""
	}
	return fmt.Sprintf("%s %s %s, %s %s %s", below.release, below.how, has(below.has), above.release, above.how, has(above.has))
}

// near: a release says something of a date of its series; of a date that begins a series,
// those do that have not taken the change over by a date of their own.
func (s *Change) near(date, r Version) bool {
	if date.Patch != 0 {
		return r.Major == date.Major && r.Minor == date.Minor
	}
	for _, from := range s.Stable {
		if from.Major == r.Major && from.Minor == r.Minor {
			return r.before(from)
		}
	}
	return true
}

// valueText returns the row's value in the form of Fields.
func (s *Change) valueText() string {
	c := &Config{}
	v := s.From
	s.apply(c, v)
	if !s.holds(v) && len(s.Stable) > 0 {
		s.apply(c, s.Stable[0])
	}
	return c.Field(s.Field)
}

func has(yes bool) string {
	if yes {
		return "has it"
	}
	return "has it not"
}
