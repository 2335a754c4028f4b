package bpftrace

// tree is a whole script.
type tree struct {
	definitions []string
	config      []*setting
	functions   []*node
	probes      []*probe
	// macros are the script's own; declared are the maps that it declares, with their kind and size; imports are the
	// files that it imports.
	macros   []*macro
	declared []*mapDeclaration
	imports  []*node
}

type setting struct {
	name  string
	value *node
	at    span
}

// probe is a block with its points.
type probe struct {
	points []*point
	pred   *node
	predAt span
	body   []*node
	at     span
	// named: the block uses the name of its probe. fields: it uses the fields of its event.
	named, fields bool
}

// op is the kind of a node.
type op uint8

const (
	nInt op = iota
	nString
	nStackMode
	nBuiltin
	nIdent
	nParam
	nParamCount
	nMap     // kids: the key, if any
	nVar     //
	nTuple   // kids
	nField   // kids[0], text
	nIndex   // kids[0], num: of a tuple
	nArray   // kids[0], kids[1]
	nDeref   // kids[0]
	nUnary   // text, kids[0]
	nIncr    // text ++ or --, post, kids[0]
	nBinary  // text, kids
	nTernary // kids
	nCast    // ctype, kids[0]
	nSizeof  // ctype or kids[0]
	nOffset  // ctype or kids[0], path
	nCall    // text, kids
	nBool    // num
	nBlock   // body, then kids: the value, if any
	nIfValue // kids: condition and two blocks
	nRecord  // names, kids
	nAddress // kids[0]

	sExpr   // kids[0]
	sAssign // kids: map or variable, value
	sLet    // kids[0], ctype
	sIf     // kids[0], body, other
	sWhile  // kids[0], body
	sUnroll // kids[0], body
	sFor    // kids: variable, map or range; body
	sJump   // text, kids
)

// node is an expression or a statement.
type node struct {
	op       op
	at       span
	text     string
	num      uint64
	negative bool
	post     bool
	// known: the name of a call is one of the tool's words. comptime: the value is needed before the script runs.
	// macro: the block is a macro's body.
	known, comptime, macro bool
	kids                   []*node
	ctype                  *typeName
	path                   []string
	// names are the names of a record's fields.
	names []string
	body  []*node
	other []*node

	// typ is the type that the checker finds; nil before. skip: the map is written, or used as a whole,
	// so that no value of it is read.
	typ  *Type
	skip bool
	// forMap, forVar and forKey: a call's value goes to a map, to a variable or into a key.
	forMap, forVar, forKey bool
	variable               *variable
}

// typeName is a type as the script writes it.
type typeName struct {
	name    string
	stars   int
	sized   bool // with [n]
	unsized bool // with []
	size    uint64
	at      span
	// of is the expression of typeof().
	of *node
}

func (n *node) literal() bool {
	return n.op == nInt || n.op == nString || n.op == nStackMode || n.op == nParam || n.op == nParamCount || n.op == nCall && n.text == "str" && n.post
}
