// Package formula has the formulas of variables whose values are stored nowhere: numbers, registers
// and memory, and operations on them.
//
// It must not know the source of a formula, nor the code that computes it.
package formula

// Formula is one operation with its operands.
type Formula struct {
	Op Op
	// X and Y are the operands; Y is nil if there is one operand.
	X, Y *Formula
	// N is a number, a register's DWARF number, or how many bytes are read from memory.
	N int64
}

// Op is an operation on 64 bits. Those with a U are of unsigned numbers.
type Op int

// Number and Register are the leaves of a formula; Load reads at X, without a sign. A shift is by
// the lowest six bits of Y.
const (
	Number Op = iota
	Register
	Load
	Add
	Sub
	Mul
	Div
	DivU
	ModU
	And
	Or
	Xor
	Shl
	Shr
	ShrU
	Eq
	Ne
	Lt
	Le
	Gt
	Ge
	LtU
	LeU
	GtU
	GeU
	Neg
	Complement
)

// Of makes a number.
func Of(n int64) *Formula { return &Formula{Op: Number, N: n} }

// In makes the value of a register, plus a number.
func In(register int, plus int64) *Formula {
	f := &Formula{Op: Register, N: int64(register)}
	if plus == 0 {
		return f
	}
	return Two(Add, f, Of(plus))
}

// At makes the unsigned number of so many bytes in memory at an address.
func At(address *Formula, size int64) *Formula { return &Formula{Op: Load, X: address, N: size} }

// Two makes an operation on two formulas.
func Two(op Op, x, y *Formula) *Formula { return &Formula{Op: op, X: x, Y: y} }

// One makes an operation on one formula.
func One(op Op, x *Formula) *Formula { return &Formula{Op: op, X: x} }

// Narrow cuts a number to the bytes of a type.
func Narrow(x *Formula, size int64, signed bool) *Formula {
	if size <= 0 || size >= 8 {
		return x
	}
	if left := 64 - 8*size; signed {
		return Two(Shr, Two(Shl, x, Of(left)), Of(left))
	}
	return Two(And, x, Of(1<<(8*size)-1))
}
