package debian

import (
	"errors"
	"fmt"
	"strings"

	"kprobelab/internal/bounded"
)

// ErrNeeds is a package, or one of its dependencies, that the suites do not have.
var ErrNeeds = errors.New("the package cannot be had")

// relation is a package that another needs, perhaps in some versions alone: deb-control(5), Depends.
type relation struct{ name, operator, version string }

// relations reads a field: all of its entries are needed, one of an entry's alternatives.
func relations(field string) (list [][]relation) {
	for entry := range strings.SplitSeq(field, ",") {
		var of []relation
		for one := range strings.SplitSeq(entry, "|") {
			name, rest, _ := strings.Cut(one, "(")
			name, _, _ = strings.Cut(strings.TrimSpace(name), ":")
			operator, version, _ := strings.Cut(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), ")")), " ")
			if i := strings.LastIndexAny(operator, "<>="); i >= 0 && version == "" {
				operator, version = operator[:i+1], operator[i+1:]
			}
			if name != "" {
				of = append(of, relation{name, operator, strings.TrimSpace(version)})
			}
		}
		if of != nil {
			list = append(list, of)
		}
	}
	return list
}

// fits reports whether a version does.
func (r relation) fits(version string) bool {
	c := Compare(version, r.version)
	switch r.operator {
	case "<<":
		return c < 0
	case "<=", "<":
		return c <= 0
	case "=":
		return c == 0
	case ">=", ">":
		return c >= 0
	case ">>":
		return c > 0
	}
	return true
}

// With lists a package and all that it needs, each once, in the order in which they are found. Of a package, the newest
// version that fits is taken; of alternatives, the first that there is.
func (l *List) With(names ...string) ([]*Package, error) {
	var list []*Package
	taken := map[string]bool{}
	var needed [][]relation
	for _, name := range names {
		needed = append(needed, []relation{{name: name}})
	}
	for ; len(needed) > 0; needed = needed[1:] {
		p := l.choose(needed[0], taken)
		if p == nil {
			return nil, fmt.Errorf("%w: the suites have no %s", ErrNeeds, needed[0][0].name)
		}
		if taken[p.Name] {
			continue
		}
		if len(list) == bounded.Dependencies {
			return nil, fmt.Errorf("%w: it needs more than %d others", ErrNeeds, bounded.Dependencies)
		}
		taken[p.Name] = true
		list = append(list, p)
		needed = append(needed, relations(p.Needs)...)
	}
	return list, nil
}

// choose returns one of the alternatives: one that is taken already, else the first.
func (l *List) choose(of []relation, taken map[string]bool) *Package {
	var found *Package
	for _, r := range of {
		for _, p := range l.named[r.name] {
			if r.fits(p.Version) {
				if taken[p.Name] {
					return p
				}
				if found == nil {
					found = p
				}
				break
			}
		}
		for _, p := range l.provided[r.name] {
			if taken[p.Name] {
				return p
			}
			// What is provided has a version of its own, which is not looked at where one is asked for.
			if found == nil && (r.operator == "" || r.operator == "=" || r.operator == ">=") {
				found = p
			}
		}
	}
	return found
}
