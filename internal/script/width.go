package script

// An expression has 64 bits. These make expressions of fewer: a number is computed at once.

// Plus is a sum with a constant.
func Plus(x Expr, n int64) Expr {
	if n == 0 {
		return x
	}
	if c, ok := x.(Number); ok {
		return c + Number(n)
	}
	return Binary{Op: Add, X: x, Y: Number(n)}
}

// Mask are the low bits of a number.
func Mask(bits int) int64 {
	if bits >= 64 {
		return -1
	}
	return 1<<bits - 1
}

// Low are the low bits of a number, with zeros above them.
func Low(x Expr, bits int) Expr {
	if bits >= 64 {
		return x
	}
	if n, ok := x.(Number); ok {
		return n & Number(Mask(bits))
	}
	return Binary{Op: And, X: x, Y: Number(Mask(bits))}
}

// Extend is a number of so many bits with its sign above them.
func Extend(n int64, bits int) int64 { return n << (64 - bits) >> (64 - bits) }

// Signed is Extend of an expression.
func Signed(x Expr, bits int) Expr {
	if bits >= 64 {
		return x
	}
	if n, ok := x.(Number); ok {
		return Number(Extend(int64(n), bits))
	}
	by := Number(64 - bits)
	return Binary{Op: Shr, X: Binary{Op: Shl, X: x, Y: by}, Y: by}
}

// Field is a bit field of a word: bits of them, the lowest at a bit.
func Field(x Expr, bit, bits int, signed bool) Expr {
	if n, ok := x.(Number); ok {
		x = Number(uint64(n) >> bit)
	} else {
		x = Binary{Op: ShrU, X: x, Y: Number(bit)}
	}
	if signed {
		return Signed(x, bits)
	}
	return Low(x, bits)
}
