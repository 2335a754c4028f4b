package callsyntax

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Call is one call of a guest function.
type Call struct {
	// Name is the function's symbol, "module:name" where one is meant.
	Name string
	Args []Arg
	// Col is the column of the name in the text, in bytes from 1.
	Col int
}

// String writes the call so that Parse reads it back.
func (c Call) String() string {
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		args[i] = a.String()
	}
	return c.Name + "(" + strings.Join(args, ", ") + ")"
}

// Arg is an argument of a call: an Int, String, Buf, Bytes or SymbolRef.
type Arg interface {
	// String writes the argument so that Parse reads it back.
	String() string
	// Column is its column in the text, in bytes from 1.
	Column() int
}

// pos is the place of an argument in its text.
type pos struct{ Col int }

// Column is the place in bytes from 1.
func (p pos) Column() int { return p.Col }

// Form is how an integer was written, which is how it is printed again.
type Form int

// The forms of an integer.
const (
	Decimal Form = iota
	// Negative is a decimal number after a minus sign.
	Negative
	Hex
	// Char is a character constant.
	Char
	// Named is a constant of the kernel, or several with | between them.
	Named
)

// Int is an integer argument.
type Int struct {
	pos
	// Value is the number in two's complement: -1 is all ones.
	Value uint64
	Form  Form
	// Text is how a Named one is written.
	Text string
}

// String writes it in the form that it was written in.
func (i Int) String() string {
	switch i.Form {
	case Named:
		return i.Text
	case Negative:
		return "-" + strconv.FormatUint(-i.Value, 10)
	case Hex:
		return "0x" + strconv.FormatUint(i.Value, 16)
	case Char:
		return "'" + escape(string([]byte{byte(i.Value)}), '\'') + "'"
	default:
		return strconv.FormatUint(i.Value, 10)
	}
}

// Fits reports whether the number can be passed as an integer of that size in
// bytes without losing a bit, as a signed one or as an unsigned one: people
// write -1 for ~0U.
func (i Int) Fits(size int) bool {
	if size >= 8 || size <= 0 {
		return true
	}
	bits := uint(size) * 8
	if i.Form == Negative || i.Form == Named && int64(i.Value) < 0 {
		return int64(i.Value) < 0 && int64(i.Value) >= -(int64(1)<<(bits-1)) || i.Value == 0
	}
	return i.Value>>bits == 0
}

// String is a guest buffer that holds a text and a NUL.
type String struct {
	pos
	// Text is without the NUL that the buffer ends with.
	Text string
}

// String writes it as a C string literal.
func (s String) String() string { return `"` + escape(s.Text, '"') + `"` }

// Buf is a guest buffer of N zero bytes.
type Buf struct {
	pos
	N int
}

// String writes it as buf[N].
func (b Buf) String() string { return "buf[" + strconv.Itoa(b.N) + "]" }

// Bytes is a guest buffer with given content.
type Bytes struct {
	pos
	Data []byte
}

// String writes it as {01 ff}.
func (b Bytes) String() string { return fmt.Sprintf("{% x}", b.Data) }

// SymbolRef is the address Off bytes past the start of a symbol.
type SymbolRef struct {
	pos
	Name string
	Off  uint64
}

// String writes it as &name+0xoff.
func (s SymbolRef) String() string {
	if s.Off == 0 {
		return "&" + s.Name
	}
	return "&" + s.Name + "+0x" + strconv.FormatUint(s.Off, 16)
}

// Quote writes bytes as a C string literal, the way an argument is written.
func Quote(b []byte) string { return String{Text: string(b)}.String() }

// escape writes what stands between the quotes. Octal escapes always have three
// digits, so that a digit that follows is not taken for part of one.
func escape(s string, quote byte) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case n == 1 && (byte(r) == quote || r == '\\'):
			b.WriteByte('\\')
			b.WriteByte(byte(r))
		case n == 1 && letterOf[s[0]] != 0:
			b.WriteByte('\\')
			b.WriteByte(letterOf[s[0]])
		case r == utf8.RuneError && n == 1, !strconv.IsPrint(r), quote == '\'' && n > 1:
			for _, c := range []byte(s[:n]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}
