package stap

import (
	"kprobelab/internal/script"
)

// builtin is a function of the library that is written in Go.
type builtin struct {
	name   string
	doc    string
	params []vtype
	// least is the number of arguments that a call must have; otherwise has the values of the others
	// if they are not given.
	least     int
	otherwise []script.Expr
	result    vtype
	// points is the structure that its result points to.
	points string
	// guru: only -g allows the function.
	guru   bool
	number func(s System, t *script.Thread, a *script.Args) int64
	text   func(s System, t *script.Thread, a *script.Args, dst []byte) []byte
	// code is the builtin in the core's form.
	code *script.Builtin
}

// inCore makes a builtin's form of the core.
func (b *builtin) inCore() *script.Builtin {
	m := &script.Builtin{Name: b.name, Result: b.result.script()}
	for _, p := range b.params {
		m.Params = append(m.Params, p.script())
	}
	if b.text != nil {
		m.Text = func(t *script.Thread, a *script.Args, dst []byte) []byte {
			return b.text(system(t, a), t, a, dst)
		}
	} else {
		m.Int = func(t *script.Thread, a *script.Args) int64 { return b.number(system(t, a), t, a) }
	}
	return m
}

func system(t *script.Thread, a *script.Args) System {
	s, _ := t.Context.(System)
	if s == nil {
		t.Fail(a.Near, "there is no kernel here")
	}
	return s
}

// builtins are the functions by their names.
var builtins = map[string]*builtin{}

// valueless are the functions that give no value, so that none can be printed.
var valueless = map[string]bool{
	"abort": true, "error": true, "exit": true, "log": true, "print_backtrace": true, "print_regs": true, "print_stack": true,
	"print_syms": true, "printk": true, "warn": true,
}

func define(result vtype, signature, doc string, b builtin) {
	name, params := split(signature)
	b.name, b.doc, b.result, b.params = name, doc, result, params
	b.least = len(params) - len(b.otherwise)
	one := b
	one.code = one.inCore()
	builtins[name] = &one
}

// split reads "name(long, string)".
func split(signature string) (name string, params []vtype) {
	for i := range signature {
		if signature[i] == '(' {
			name = signature[:i]
			for _, w := range fields(signature[i+1 : len(signature)-1]) {
				if w == "string" {
					params = append(params, str)
				} else {
					params = append(params, long)
				}
			}
			break
		}
	}
	return name, params
}

func fields(s string) []string {
	var out []string
	word := ""
	for _, c := range s + "," {
		switch c {
		case ',':
			if word != "" {
				out = append(out, word)
			}
			word = ""
		case ' ':
		default:
			word += string(c)
		}
	}
	return out
}
