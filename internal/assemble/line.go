package assemble

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kprobelab/decoder"
	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

var errPasses = errors.New("the branches push each other apart too often: write fewer")

// Code assembles lines for that address. An error says which line is not understood.
func Code(text string, at x86.Addr) ([]byte, error) {
	p, err := read(text)
	if err != nil {
		return nil, err
	}
	for n := 0; ; n++ {
		grown, err := p.pass(at)
		switch {
		case err != nil:
			return nil, err
		case n == bounded.AssemblyPasses:
			return nil, errPasses
		}
		if !grown {
			return p.code(), nil
		}
	}
}

// program is a text's instructions.
type program struct {
	list []*line
	// labels are the numbers of the lines that they stand before.
	labels map[string]int
}

// line is an instruction.
type line struct {
	number int
	text   string
	code   []byte
	// moves: the code depends on where it stands.
	moves bool
}

func (p *program) code() (all []byte) {
	for _, l := range p.list {
		all = append(all, l.code...)
	}
	return all
}

var label = regexp.MustCompile(`^[\w.$]+$`)

// read takes the text apart: instructions, one a line or with ; between them, labels before
// a colon, comments after a #.
func read(text string) (*program, error) {
	p := &program{labels: map[string]int{}}
	n := 0
	for s := range strings.Lines(text) {
		if n++; n > bounded.AssemblyLines {
			return nil, fmt.Errorf("these are more than %d lines", bounded.AssemblyLines)
		}
		if len(s) > bounded.AssemblyLine {
			return nil, fmt.Errorf("line %d has more than %d characters", n, bounded.AssemblyLine)
		}
		s, _, _ = strings.Cut(s, "#")
		for _, one := range strings.Split(s, ";") {
			if err := p.add(n, one); err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
		}
	}
	return p, nil
}

// add takes the labels before an instruction, and the instruction, if there is one.
func (p *program) add(number int, s string) error {
	for {
		name, rest, ok := strings.Cut(s, ":")
		if name = strings.TrimSpace(name); !ok || !label.MatchString(name) {
			break
		}
		if _, twice := p.labels[name]; twice {
			return fmt.Errorf("the label %s is there twice", name)
		}
		p.labels[name], s = len(p.list), rest
	}
	if s = strings.Join(strings.Fields(s), " "); s != "" {
		p.list = append(p.list, &line{number: number, text: s})
	}
	return nil
}

// pass assembles all lines, of which the labels are where the pass before has put them.
// Instructions only grow, so that there is an end.
func (p *program) pass(at x86.Addr) (grown bool, err error) {
	starts := []x86.Addr{at}
	for _, l := range p.list {
		starts = append(starts, starts[len(starts)-1].Add(int64(len(l.code))))
	}
	for n, l := range p.list {
		if l.code != nil && !l.moves {
			continue
		}
		target := func(name string) (x86.Addr, bool) {
			l.moves = true
			if to, ok := p.labels[name]; ok {
				return starts[to], true
			}
			offset, isOffset := strings.CutPrefix(name, "+")
			v, err := strconv.ParseUint(offset, 0, 64)
			if isOffset {
				v += uint64(at)
			}
			return x86.Addr(v), err == nil
		}
		code, err := assemble(l.text, starts[n], len(l.code), target)
		if err != nil {
			return false, fmt.Errorf("line %d: %w", l.number, err)
		}
		grown = grown || len(code) > len(l.code)
		l.code = code
	}
	return grown, nil
}

// anySize are mnemonics that have one size where nobody says another.
var anySize = map[string]bool{"call": true, "jmp": true, "push": true, "pop": true, "ret": true, "leave": true, "pushf": true, "popf": true, "iret": true}

// assemble makes the shortest code of at least that many bytes for an instruction.
func assemble(text string, at x86.Addr, least int, target func(string) (x86.Addr, bool)) ([]byte, error) {
	name, rest, _ := strings.Cut(text, " ")
	if short, ok := strings.CutSuffix(name, "q"); ok && anySize[short] && forms()[name] == nil { // callq, which only has 64 bits
		name = short
	}
	o, err := readOperands(rest, target)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	found := map[string][]byte{}
	for _, suffix := range []string{"", "b", "w", "l", "q"} {
		full := name + suffix
		for _, f := range forms()[full] {
			for code := range o.encodings(&f, at) {
				if best, ok := found[full]; len(code) >= least && (!ok || shorter(code, best)) && o.same(decoder.Text(code, at), full) {
					found[full] = code
				}
			}
		}
	}
	names := slices.Sorted(maps.Keys(found))
	switch {
	case len(names) == 0 && !known(name):
		return nil, fmt.Errorf("%s: there is no instruction %s here", text, name)
	case len(names) == 0:
		return nil, fmt.Errorf("%s: %s does not go with these operands", text, name)
	case len(names) > 1 && found[name] == nil && !anySize[name] && o.memory != nil:
		return nil, fmt.Errorf("%s: this may be %s", text, strings.Join(names, ", "))
	}
	best := found[name]
	for _, n := range names {
		if best == nil || found[name] == nil && shorter(found[n], best) {
			best = found[n]
		}
	}
	return best, nil
}

// shorter decides between two codes of an instruction; of equally long ones the first in
// the order of the opcodes is what other assemblers take, mostly.
func shorter(a, b []byte) bool {
	return len(a) < len(b) || len(a) == len(b) && bytes.Compare(a, b) < 0
}

// known: the mnemonic is there, with or without a letter for its size.
func known(name string) bool {
	for _, suffix := range []string{"", "b", "w", "l", "q"} {
		if forms()[name+suffix] != nil {
			return true
		}
	}
	return false
}
