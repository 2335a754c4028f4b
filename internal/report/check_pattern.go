package report

import (
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
)

// isPattern tells a pattern of functions from a name.
func isPattern(place string) bool { return strings.ContainsAny(place, "*?[") }

// traced are the functions that the function tracer knows, as in
// available_filter_functions, by address: of several symbols at one address that is the
// first. In a kernel without ftrace sites they are all functions.
func (k *checker) traced() iter.Seq[*kimage.Symbol] {
	return func(yield func(*kimage.Symbol) bool) {
		symbols := k.Symbols()
		for i := range symbols {
			s := &symbols[i]
			if !s.IsFunction() || !k.InText(s.Addr) || k.Traces() && (k.alias(s) || !k.Traceable(s.Addr)) {
				continue
			}
			if !yield(s) {
				return
			}
		}
	}
}

// alias reports whether the address of a symbol is known by another name.
func (k *checker) alias(s *kimage.Symbol) bool {
	first, ok := k.SymbolAt(s.Addr)
	return ok && first.Addr == s.Addr && first.Name != s.Name
}

// matching are the names of the functions that a pattern, or a name, matches, among the
// traced, by which tools resolve patterns. MODULE:PATTERN matches in a loaded module.
func (k *checker) matching(pattern string) (names []string, err error) {
	module, want, in := strings.Cut(pattern, ":")
	if !in {
		module, want = "", pattern
	}
	if _, err := path.Match(want, ""); err != nil {
		return nil, fmt.Errorf("%q is no pattern", pattern)
	}
	seen := map[string]bool{}
	for s := range k.traced() {
		if ok, _ := path.Match(want, s.Name); !ok || s.Module != module || seen[s.Name] {
			continue
		}
		seen[s.Name] = true
		name := s.Name
		if in {
			name = module + ":" + name
		}
		names = append(names, name)
	}
	return names, nil
}

// mostRefused is the most refusing functions of a pattern that are named.
const mostRefused = 20

// pattern answers for a probe on each function that a pattern matches. It attaches if
// one of them takes it, because tools go on without the others.
func (k *checker) pattern(p *Probe) CheckCell {
	c := CheckCell{Found: FoundPattern}
	names, err := k.matching(p.place)
	if err != nil {
		c.refuse(errno.EINVAL, rule.Line, err.Error())
		return c
	}
	if len(names) == 0 {
		c.refuse(errno.ENOENT, rule.NoMatch, rule.NoMatch.Why())
		return c
	}
	var runs []string
	var first CheckCell
	for _, name := range names {
		one := *p
		one.place = name
		answer := k.cell(&one)
		switch {
		case !answer.accepted():
			if len(c.Others) == 0 {
				first = answer
			}
			if len(c.Others) < mostRefused {
				c.Others = append(c.Others, name)
			}
		case !slices.Contains(runs, answer.Runs):
			runs = append(runs, answer.Runs)
			c.Attached++
		default:
			c.Attached++
		}
	}
	slices.Sort(runs)
	c.Matches, c.Runs = len(names), strings.Join(runs, "+")
	if c.Attached == 0 {
		c.Errno, c.Reason, c.Detail = first.Errno, first.Reason, first.Detail
	}
	return c
}

// any answers for a group: the first alternative that attaches, else the first one's
// refusal, and in words each one's.
func (k *checker) any(p *Probe) CheckCell {
	var first CheckCell
	var why []string
	for i := range p.any {
		c := k.cell(&p.any[i])
		if c.accepted() {
			c.Chosen = p.any[i].Text
			return c
		}
		if i == 0 {
			first = c
		}
		why = append(why, fmt.Sprintf("%s: %s", p.any[i].Text, c.brief(p.any[i].Return)))
	}
	first.Absent = nil // that is one alternative's
	first.Detail = "none attaches: " + strings.Join(why, "; ")
	return first
}
