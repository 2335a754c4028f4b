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
	code, err := gnu(text, at)
	var intel *IntelError
	if err != nil && !errors.As(err, &intel) {
		if line, ok := firstIntel(text); ok {
			return nil, fmt.Errorf("%w (%w)", &IntelError{line}, err)
		}
	}
	return code, err
}

// gnu assembles lines in GNU syntax.
func gnu(text string, at x86.Addr) ([]byte, error) {
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
	// addresses has the number of the line of each address in a listing. first is its first address, function
	// the name of its function.
	addresses map[x86.Addr]int
	first     x86.Addr
	function  string
	// compiled: there are directives, as in a compiler's output. data: the lines are of a section without code;
	// sections are the sections before.
	compiled, data bool
	sections       []bool
	// others are the numbers of symbols that are not in the text.
	others map[string]int64
}

// line is an instruction.
type line struct {
	number int
	text   string
	code   []byte
	// moves: the code depends on where it stands. fixed: it was given as bytes.
	moves, fixed bool
	// next is the address after it in a listing, 0 if there is none.
	next x86.Addr
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
		if err := p.line(n, s); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return p, nil
}

// line takes a line: a disassembler's, or instructions.
func (p *program) line(n int, s string) error {
	s, _, _ = strings.Cut(s, "#")
	taken, rest, err := p.listing(n, s)
	switch {
	case err != nil:
		return err
	case taken && rest == "":
		return nil
	case taken:
		s = names.ReplaceAllString(rest, "")
	}
	for _, one := range strings.Split(s, ";") {
		if err := p.add(n, one); err != nil {
			return err
		}
	}
	return nil
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
	switch s = strings.Join(strings.Fields(s), " "); {
	case strings.HasPrefix(s, "."):
		return p.directive(number, s)
	case s != "" && !p.data:
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
		if l.fixed || l.code != nil && !l.moves {
			continue
		}
		target := func(name string) (x86.Addr, bool) {
			l.moves = true
			if to, ok := p.labels[name]; ok {
				return starts[to], true
			}
			if to, ok := p.numbered(name, n); ok {
				return starts[to], true
			}
			if to, ok := p.listedTarget(name, at, starts); ok {
				return to, true
			}
			if p.isOther(l.text, name) {
				return p.outside(name, at), true
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

// numbered returns the line of a label such as 1: that is meant by 1f or 1b.
func (p *program) numbered(name string, from int) (int, bool) {
	digits := strings.TrimRight(name, "fb")
	if digits == "" || len(name) != len(digits)+1 || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	to, ok := p.labels[digits]
	return to, ok && (to > from) == (name[len(name)-1] == 'f')
}

// symbol is the name of a function or of data.
var symbol = regexp.MustCompile(`^[A-Za-z_.$][\w.$]*(@[A-Z]+)?$`)

// isOther: a name is a symbol that is elsewhere: one that is called or, in a compiler's output, any.
func (p *program) isOther(text, name string) bool {
	return symbol.MatchString(name) && (p.compiled || strings.HasPrefix(text, "call") || strings.HasSuffix(name, "@PLT"))
}

// anySize are mnemonics that have one size unless the line names another.
var anySize = map[string]bool{"call": true, "jmp": true, "push": true, "pop": true, "ret": true, "leave": true, "pushf": true, "popf": true, "iret": true}

// assemble makes the shortest code of at least that many bytes for an instruction.
func assemble(text string, at x86.Addr, least int, target func(string) (x86.Addr, bool)) ([]byte, error) {
	if head, bare := cutPrefixes(text); len(head) > 0 || bare != text {
		code, err := assemble(bare, at.Add(int64(len(head))), max(0, least-len(head)), target)
		return append(head, code...), err
	}
	name, rest, _ := strings.Cut(text, " ")
	if code, ok := stringCodes[name]; ok && (rest == "" || strings.Contains(rest, "(%r")) {
		return slices.Clone(code), nil
	}
	name = usual(name)
	if short, ok := strings.CutSuffix(name, "q"); ok && anySize[short] && forms()[name] == nil { // callq, which only has 64 bits
		name = short
	}
	o, err := readOperands(rest, target)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	if len(o.list) == 1 && shifts[strings.TrimRight(name, "bwlq")] {
		return assemble(name+" $1,"+rest, at, least, target)
	}
	if short, ok := bare(name, o.registers()); ok {
		if code, err := o.assemble(short, text, at, least); err == nil {
			return code, nil
		}
	}
	return o.assemble(name, text, at, least)
}

// assemble makes the code of a mnemonic with these operands.
func (o *operands) assemble(name, text string, at x86.Addr, least int) ([]byte, error) {
	if m := o.memory; m != nil && m.to != 0 { // its displacement has 4 bytes, wherever it leads
		to := m.to
		defer func() { m.to, m.disp = to, 0 }()
		m.to = 0
		code, err := o.assemble(name, text, at, least)
		if err != nil {
			return nil, err
		}
		m.disp = to.Sub(at.Add(int64(len(code))))
		return o.assemble(name, text, at, least)
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

// shorter decides between two codes of an instruction; of equally long ones it takes the first in the order of
// the opcodes, as most assemblers do.
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
