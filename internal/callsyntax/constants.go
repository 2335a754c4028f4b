package callsyntax

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
)

// constantsText has the constants of Linux on x86-64 that system calls take, a name
// and a value a line (include/uapi). A test compares them with golang.org/x/sys/unix.
//
//go:embed constants.txt
var constantsText string

// constants are their values by name.
var constants = sync.OnceValue(func() map[string]Int {
	m := map[string]Int{}
	for line := range strings.Lines(constantsText) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		v, err := strconv.ParseInt(text, 0, 64)
		if err != nil {
			panic("constants.txt: " + line)
		}
		m[name] = Int{Value: uint64(v), Form: Named, Text: name}
	}
	return m
})

// flags reads what follows an integer: | and another one, over and over.
func (p *parser) flags(first Arg) (Arg, error) {
	all, ok := first.(Int)
	if !ok {
		return first, nil
	}
	for {
		back := p.at
		p.space()
		if !p.take('|') {
			p.at = back
			return all, nil
		}
		p.space()
		next, err := p.operand()
		if err != nil {
			return nil, err
		}
		all.Text = all.String() + "|" + next.String()
		all.Value |= next.Value
		all.Form = Named
	}
}

// operand is an integer or a constant.
func (p *parser) operand() (Int, error) {
	var a Arg
	var err error
	switch c := p.peek(); {
	case c == '-' || isDigit(c):
		a, err = p.integer()
	case c == '\'':
		a, err = p.char()
	case isNameStart(c):
		a, err = p.constant()
	default:
		err = p.errorf("expected a number or a constant after '|', found %s", p.found())
	}
	if err != nil {
		return Int{}, err
	}
	return a.(Int), nil
}

func (p *parser) constant() (Arg, error) {
	at := p.pos()
	word := p.while(isName)
	n, ok := constants()[word]
	if !ok {
		return nil, p.errorAt(at.Col, "%q is no constant that is known here; a symbol's address is &%s", word, word)
	}
	n.pos = at
	return n, nil
}
