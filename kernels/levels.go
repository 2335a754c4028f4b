package kernels

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Levels returns the releases of one flavour from the oldest to the newest, one of each stable release: of builds for several
// suites of Debian's (6.12.107+deb12, 6.12.107+deb13) the newest suite's.
func Levels(list []Listed, flavour string) (releases []string) {
	for _, l := range list {
		if flavourOf(l.Release) == flavour && !strings.Contains(l.Release, "-0.deb") {
			releases = append(releases, l.Release)
		}
	}
	slices.SortFunc(releases, newer)
	level := func(r string) string {
		before, _, _ := strings.Cut(r, "+")
		return before
	}
	releases = slices.CompactFunc(releases, func(a, b string) bool { return a == b || strings.Contains(a, "+") && level(a) == level(b) })
	slices.Reverse(releases)
	return releases
}

// Between returns the releases from the one that the first word means to the one of the second; the whole list for no words. A word
// is a release, a series or newest.
func Between(releases, words []string) ([]string, error) {
	if len(words) == 0 {
		return releases, nil
	}
	if len(words) != 2 {
		return nil, fmt.Errorf("%w: two kernels are wanted, the oldest and the newest, not %d", ErrKernel, len(words))
	}
	var at [2]int
	for i, text := range words {
		w, err := parseWord(text)
		if err != nil {
			return nil, err
		}
		n := len(releases) - 1
		for n >= 0 && !w.means(releases[n]) {
			n--
		}
		if n < 0 {
			return nil, fmt.Errorf("%w: %s is none of the %d kernels that can be asked", ErrKernel, text, len(releases))
		}
		at[i] = n
	}
	if at[0] > at[1] {
		at[0], at[1] = at[1], at[0]
	}
	return releases[at[0] : at[1]+1], nil
}

// Line returns the kernels that can be had, of Debian's default flavour, from the oldest to the newest, between two words (Between).
// Offline they are the kept ones.
func (s *Store) Line(ctx context.Context, words []string) ([]string, error) {
	list, err := s.List(ctx, !s.o.Offline)
	if err != nil {
		return nil, err
	}
	return Between(Levels(list, DefaultFlavour), words)
}

// VersionOf returns the version of a kept kernel's package, "" if it is not known.
func (s *Store) VersionOf(release string) string {
	k, err := s.Find(release)
	if err != nil {
		return ""
	}
	return k.Version
}
