package definition

import (
	"strings"

	"kprobelab/errno"
	"kprobelab/x86"
)

// parser reads the arguments of one definition (struct
// traceprobe_parse_context).
type parser struct {
	*context
	// code is the program of the argument that is being read.
	code *program
	// last is the BTF type of the value that was fetched last; nil if BTF does
	// not have it.
	last *typed
	// reached is the place in the word where 6.12 puts carets while it reads
	// the expression: after its outermost +off(, and after each field's name
	// but the last (ctx->offset). Other releases put them at the expression's
	// start.
	reached int
	// depth is the number of expressions around the one that is being read.
	depth int
}

// maxStack bounds $stackN and $argN (PARAM_MAX_STACK: THREAD_SIZE in words).
const maxStack = 2048

// fetch reads a fetch expression, whose text begins offs bytes after the start
// of its word, and appends its operations (parse_probe_arg).
func (p *parser) fetch(text string, offs int) error {
	if p.c.Typecasts && nests(text) {
		return p.nested(text, offs)
	}
	var err error
	switch first(text) {
	case '$':
		err = p.variable(text, offs)
	case '%':
		err = p.register(text[1:], offs)
	case '@':
		err = p.memory(text[1:], offs)
	case '+', '-':
		err = p.deref(text, offs)
	case '\\':
		err = p.immediate(text[1:], offs)
	case '(':
		if p.c.EventCasts {
			return bad(offs, TypecastNotEvent)
		}
	default:
		if p.c.BTFArgs && (isLetter(first(text)) || first(text) == '_') {
			switch {
			case !p.hasArgs():
				return bad(offs, NosupBTFArg)
			case p.c.NoBTFArgs:
				return &fault{NosupBTFArg, errno.EOPNOTSUPP, offs}
			}
			err = p.parameter(text, offs)
		}
	}
	if err == nil && p.code.op().Code == OpNop {
		return bad(offs, BadFetchArg)
	}
	return err
}

// first returns the first byte of a text, 0 for "".
func first(s string) byte {
	if s == "" {
		return 0
	}
	return s[0]
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// register reads a name of struct pt_regs (regs_query_register_offset).
func (p *parser) register(name string, offs int) error {
	at, ok := x86.RegOffset(name)
	if !ok {
		return bad(offs, BadRegName)
	}
	*p.code.op() = Op{Code: OpReg, Param: at}
	return nil
}

// variable reads what begins with a $ (parse_probe_vars).
func (p *parser) variable(text string, offs int) error {
	name := text[1:]
	op := p.code.op()
	switch {
	case name == "retval" || p.c.BTFArgs && strings.HasPrefix(name, "retval"):
		return p.retval(text, offs)
	case strings.HasPrefix(name, "stack"):
		return p.stack(strings.TrimPrefix(name, "stack"), offs)
	case p.c.Typecasts && strings.HasPrefix(name, "current"):
		return p.current(text, offs)
	case p.c.CommFetch && (name == "comm" || name == "COMM" && p.c.CommUpper):
		*op = Op{Code: OpComm}
		return nil
	case p.c.ArgFetch && strings.HasPrefix(name, "arg") && (p.entry || p.c.ExitArgs):
		return p.argument(strings.TrimPrefix(name, "arg"), offs)
	}
	return bad(offs, BadVar)
}

func (p *parser) retval(text string, offs int) error {
	switch {
	case !p.exit:
		return bad(offs, RetvalOnProbe)
	case p.c.BTFArgs && !p.c.NoBTFArgs && !p.user:
		return p.parameter(text, offs)
	}
	*p.code.op() = Op{Code: OpRetval}
	return nil
}

func (p *parser) stack(number string, offs int) error {
	if number == "" {
		*p.code.op() = Op{Code: OpStackP}
		return nil
	}
	n, err := kstrtoull(number, 10)
	switch {
	case !isDigit(number[0]) || err != nil:
		return bad(offs, BadVar)
	case n > maxStack:
		return bad(offs, BadStackNum)
	}
	*p.code.op() = Op{Code: OpStack, Param: int(n)}
	return nil
}

// argument reads the number of $argN. It can be used at entries, and from 6.9 on
// at returns.
func (p *parser) argument(number string, offs int) error {
	n, err := kstrtoull(number, 10)
	switch {
	case err != nil:
		return bad(offs, BadVar)
	case n == 0 || n > maxStack:
		return bad(offs, BadArgNum)
	case !p.hasArgs():
		return bad(offs, NofentryArgs)
	}
	p.loadArgument(int(n) - 1)
	return nil
}

// loadArgument loads an argument, in a return probe as it was at the entry.
func (p *parser) loadArgument(n int) {
	code := OpArg
	if p.exit {
		code = OpEntryData
	}
	*p.code.op() = Op{Code: code, Param: n}
}

// memory reads the text after an @: an address or a symbol. The memory there is
// fetched.
func (p *parser) memory(text string, offs int) error {
	var again int64
	switch {
	case isDigit(first(text)):
		v, err := kstrtoull(text, 0)
		if err != nil {
			return badNumber(offs, BadMemAddr, err)
		}
		*p.code.op() = Op{Code: OpImm, Imm: v}
	case first(text) == '+' && !p.user:
		return bad(offs, FileOnKprobe)
	case first(text) == '+':
		v, err := kstrtoull(text[1:], 0)
		if err != nil {
			return badNumber(offs, BadMemAddr, err)
		}
		*p.code.op() = Op{Code: OpFile, Imm: v}
		if p.c.FileOffsetTwice {
			again = int64(v)
		}
	case p.user:
		return bad(offs, SymOnUprobe)
	default:
		*p.code.op() = Op{Code: OpSymbol, Data: text}
		if !p.code.next() {
			return bad(offs, TooManyOps)
		}
		*p.code.op() = Op{Code: OpImm}
	}
	if !p.code.next() {
		return bad(offs, TooManyOps)
	}
	*p.code.op() = Op{Code: OpDeref, Offset: again}
	return nil
}

// deref reads +off(…), -off(…), +uoff(…). The kernel finds the place of the
// inner text by counting: the digits of the offset, and one for the sign. It
// does not count a u, so the places inside +uoff(…) are one too small.
func (p *parser) deref(text string, offs int) error {
	code := OpDeref
	if p.c.ArgFetch && len(text) > 1 && text[1] == 'u' {
		code = OpUDeref
		text = text[:1] + text[2:]
	}
	text = strings.TrimPrefix(text, "+")
	number, inner, ok := strings.Cut(text, "(")
	if !ok {
		return bad(offs, DerefNeedBrace)
	}
	off, err := kstrtoll(number, 0)
	if err != nil {
		return badNumber(offs, BadDerefOffs, err)
	}
	offs += len(number) + 1
	if first(text) != '-' {
		offs++
	}
	closing := strings.LastIndexByte(inner, ')')
	if closing < 0 {
		return bad(offs+len(inner), DerefOpenBrace)
	}
	p.reached = offs
	if err := p.fetch(inner[:closing], offs); err != nil {
		return err
	}
	p.reached = offs
	if c := p.code.op().Code; c == OpComm || c == OpData {
		return bad(offs, CommCantDeref)
	}
	if !p.code.next() {
		return bad(offs, TooManyOps)
	}
	*p.code.op() = Op{Code: code, Offset: off}
	p.last = nil
	return nil
}

// immediate reads the text after a backslash: a number, or a text in quotes.
func (p *parser) immediate(text string, offs int) error {
	if !p.c.ArgFetch {
		return nil // no fetch method
	}
	if strings.HasPrefix(text, `"`) {
		text = text[1:]
		if text == "" && p.c.LoneQuote {
			*p.code.op() = Op{Code: OpData}
			return nil
		}
		if !strings.HasSuffix(text, `"`) {
			return bad(offs+2+len(text), ImmstrNoClose)
		}
		*p.code.op() = Op{Code: OpData, Data: text[:len(text)-1]}
		return nil
	}
	v, err := number(text)
	if err != nil {
		return badNumber(offs+1, BadImm, err)
	}
	*p.code.op() = Op{Code: OpImm, Imm: v}
	return nil
}

// number reads an immediate, with a sign or without (str_to_immediate).
func number(text string) (uint64, error) {
	switch c := first(text); {
	case isDigit(c):
		return kstrtoull(text, 0)
	case c == '-':
		v, err := kstrtoll(text, 0)
		return uint64(v), err
	case c == '+':
		v, err := kstrtoll(text[1:], 0)
		return uint64(v), err
	}
	return 0, errno.EINVAL
}

// SymbolOffset splits what follows an @ into the symbol and the offset, as the
// kernel does when the probe is registered. EINVAL and ERANGE are about the
// offset.
func SymbolOffset(text string) (symbol string, offset int64, err error) {
	i := strings.IndexAny(text, "+-")
	if i < 0 {
		return text, 0, nil
	}
	offset, err = kstrtoll(text[i:], 0)
	return text[:i], offset, err
}
