package archive

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNone: a folder has no file of an archive, or none that matches.
var ErrNone = errors.New("no kernel is packed there")

// List returns the files of a folder, in the order of their releases. Patterns, if
// there are any, pick releases, as in a shell; a malformed one is path.ErrBadPattern.
func List(dir string, patterns ...string) ([]string, error) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []string
	packed := 0
	for _, e := range all {
		name, ok := strings.CutSuffix(e.Name(), Suffix)
		if !ok || strings.HasPrefix(name, ".") {
			continue
		}
		packed++
		match, err := matches(patterns, name)
		if err != nil {
			return nil, err
		}
		if match {
			list = append(list, e.Name())
		}
	}
	switch {
	case packed == 0:
		return nil, fmt.Errorf("%s: %w: it has no file *%s; kprobelab pack IMAGE... -o %s makes them", dir, ErrNone, Suffix, dir)
	case len(list) == 0:
		return nil, fmt.Errorf("%s: %w: none of %d is of a release %s", dir, ErrNone, packed, strings.Join(patterns, " or "))
	}
	slices.SortFunc(list, byRelease)
	for i := range list {
		list[i] = filepath.Join(dir, list[i])
	}
	return list, nil
}

// matches reports whether a file's release fits a pattern, alone or with the rest of
// the file's name.
func matches(patterns []string, name string) (bool, error) {
	found := len(patterns) == 0
	for _, p := range patterns {
		for n := name; ; n = n[:strings.LastIndexByte(n, '.')] {
			ok, err := path.Match(p, n)
			if err != nil {
				return false, fmt.Errorf("%q: %w", p, err)
			}
			if found = found || ok; !strings.Contains(n, ".") {
				break
			}
		}
	}
	return found, nil
}

// byRelease orders names so that numbers in them count as numbers: 6.2 comes before 6.12.
func byRelease(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x == 0 || y == 0 {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		m, n := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
		if c := cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n)); c != 0 {
			return c
		}
		a, b = a[x:], b[y:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits counts the digits at the beginning of a text.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}
