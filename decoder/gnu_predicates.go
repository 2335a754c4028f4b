package decoder

import "strings"

// Predicates in GNU syntax: the immediate of a comparison, or of a carry-less multiplication, has a
// name, which is a part of the mnemonic. An immediate without a name is an operand.

// predicates are the names of one kind of immediate, and after which letters of the
// mnemonic they stand.
type predicates struct {
	after string
	names map[byte]string
}

// comparisons are the predicates of cmpps to vcmpbf16. The legacy forms have the first
// eight.
var comparisons = [...]string{
	"eq", "lt", "le", "unord", "neq", "nlt", "nle", "ord",
	"eq_uq", "nge", "ngt", "false", "neq_oq", "ge", "gt", "true",
	"eq_os", "lt_oq", "le_oq", "unord_s", "neq_us", "nlt_uq", "nle_uq", "ord_s",
	"eq_us", "nge_uq", "ngt_uq", "false_os", "neq_os", "ge_oq", "gt_oq", "true_us",
}

// predicateKinds are the immediates that predicates name, by their kind.
var predicateKinds = map[byte]predicates{
	'8': {"cmp", numbered(comparisons[:8]...)},
	'p': {"vcmp", numbered(comparisons[:]...)},
	// GNU's tools have no names for 3 and 7, false and true.
	'c': {"vpcmp", numbered("eq", "lt", "le", "", "neq", "nlt", "nle")},
	'o': {"vpcom", numbered("lt", "le", "gt", "ge", "eq", "neq", "false", "true")},
	// With the mnemonic's own qdq: pclmullqlqdq.
	'l': {"pclmul", map[byte]string{0: "lql", 1: "hql", 0x10: "lqh", 0x11: "hqh"}},
}

func numbered(names ...string) map[byte]string {
	m := map[byte]string{}
	for n, name := range names {
		if name != "" {
			m[byte(n)] = name
		}
	}
	return m
}

// readPredicate finds the place in the mnemonic for the name of its first operand, an immediate.
func (t *template) readPredicate() {
	if len(t.operands) == 0 || t.operands[0].source != 'I' {
		return
	}
	p, ok := predicateKinds[t.operands[0].kind]
	if !ok {
		return
	}
	t.predicates = p.names
	t.predicateAt = strings.Index(t.mnemonic, p.after) + len(p.after)
}

// predicate returns the name of the instruction's immediate, "" if it has none.
func (g *gnuText) predicate() string {
	if g.t.predicates == nil {
		return ""
	}
	return g.t.predicates[g.i.code[g.i.Length-1]]
}
