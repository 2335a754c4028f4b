package script

import "regexp"

// Expr is an expression: one of the types of this file.
type Expr interface{ Type() Type }

// Number and Text are constants.
type (
	Number int64
	Text   string
)

// Local is a variable of a function or a handler by its number.
type Local struct {
	N  int
	Of Type
}

// Global is a variable of the script.
type Global struct{ Var *Var }

// Elem is an element of an array. Reading one that is not there gives 0 or "".
type Elem struct {
	Array *Array
	Keys  []Expr
	Near  string
}

// Has reports whether an array has an element; a nil key stands for any.
type Has struct {
	Array *Array
	Keys  []Expr
}

// Op is an operator.
type Op uint8

const (
	Add Op = iota
	Sub
	Mul
	Div
	Mod
	Shl
	Shr
	And
	Or
	Xor
	Eq
	Ne
	Lt
	Le
	Gt
	Ge
	// Of unsigned integers. As on BPF, a division by 0 gives 0, and its remainder what was divided.
	DivU
	ModU
	ShrU
	LtU
	LeU
	GtU
	GeU
	// AndAlso and OrElse do not evaluate the second operand where the first one decides.
	AndAlso
	OrElse
	// Concat is of strings.
	Concat
	// Neg, Not, Complement have one operand.
	Neg
	Not
	Complement
	// Set is an assignment without an operation.
	Set
)

// Unary is an operator with one operand, an integer.
type Unary struct {
	Op Op
	X  Expr
}

// Binary is an operator with two operands. Comparisons compare strings, too.
type Binary struct {
	Op   Op
	X, Y Expr
	Near string
}

// Cond is the one or the other.
type Cond struct{ If, Then, Else Expr }

// Assign stores the result of Op, and has it as its value. With Old the value is what was there
// before.
type Assign struct {
	To   Expr // Local, Global, Elem, or of the target a Memory or a Register
	Op   Op
	X    Expr
	Old  bool
	Near string
}

// Call calls a function of the script.
type Call struct {
	Func *Func
	Args []Expr
	Near string
}

// CallBuiltin calls one of the host.
type CallBuiltin struct {
	Builtin *Builtin
	Args    []Expr
	Near    string
}

// Load reads memory at an address: 1, 2, 4 or 8 bytes, Size bytes.
type Load struct {
	Addr   Expr
	Size   int
	Signed bool
	Space  Space
	// Lenient reads 0 where there is a fault.
	Lenient bool
	Near    string
}

// Memory is an integer in the target's memory, which can only be assigned: Size bytes, or so many
// Bits of them from a Bit on.
type Memory struct {
	Addr      Expr
	Size      int
	Bit, Bits int
	// User is for the memory of the current task's program.
	User bool
	Near string
}

// Tuple is a string that holds several values, encoded as an element's key is.
type Tuple struct{ Parts []Expr }

// Part is one of a tuple's values; Layout are the types of all.
type Part struct {
	X      Expr
	Layout []Type
	N      int
}

// Member is an integer of 1, 2, 4 or 8 bytes in a string's bytes, or with Of String these bytes.
// Bytes that the string does not have are 0.
type Member struct {
	X         Expr
	Off, Size int
	Signed    bool
	Of        Type
}

// Register is a register of the hit, by its DWARF number.
type Register struct{ N int }

// Saved is word N that the entry of a function has stored for the return of the same call (SetSaved).
type Saved struct{ N int }

// Extractor selects a number of an aggregate, such as its count or its average.
type Extractor uint8

const (
	Count Extractor = iota
	Sum
	Min
	Max
	Avg
	Variance
)

// Extract reads a number of an aggregate: a Global or an Elem.
type Extract struct {
	What Extractor
	Of   Expr
	Near string
}

// Bucket is the count of one bucket of an aggregate's histogram.
type Bucket struct {
	Of   Expr
	N    Expr
	Near string
}

// Match matches a string with a regular expression; what it found is kept for Matched.
type Match struct {
	X       Expr
	Pattern *regexp.Regexp
	Not     bool
}

// Sprintf is a string made as Format says.
type Sprintf struct {
	Format []Piece
	Args   []Expr
	Near   string
}

// Seq executes a statement, and is X then. The statement does not leave the expression.
type Seq struct {
	Body Stmt
	X    Expr
}

// Rescue is the string X, or Else if the evaluation of X fails.
type Rescue struct{ X, Else Expr }

func (Number) Type() Type        { return Int }
func (Text) Type() Type          { return String }
func (e Local) Type() Type       { return e.Of }
func (e Global) Type() Type      { return e.Var.Type }
func (e Elem) Type() Type        { return e.Array.Value }
func (Has) Type() Type           { return Int }
func (Unary) Type() Type         { return Int }
func (e Binary) Type() Type      { return resultOf(e.Op) }
func (e Cond) Type() Type        { return e.Then.Type() }
func (e Assign) Type() Type      { return e.To.Type() }
func (e Call) Type() Type        { return e.Func.Result }
func (e CallBuiltin) Type() Type { return e.Builtin.Result }
func (Load) Type() Type          { return Int }
func (Memory) Type() Type        { return Int }
func (Tuple) Type() Type         { return String }
func (e Part) Type() Type        { return e.Layout[e.N] }
func (e Member) Type() Type      { return e.Of }
func (Register) Type() Type      { return Int }
func (Saved) Type() Type         { return Int }
func (Extract) Type() Type       { return Int }
func (Bucket) Type() Type        { return Int }
func (Match) Type() Type         { return Int }
func (e Seq) Type() Type         { return e.X.Type() }
func (Rescue) Type() Type        { return String }
func (Sprintf) Type() Type       { return String }

func resultOf(op Op) Type {
	if op == Concat {
		return String
	}
	return Int
}
