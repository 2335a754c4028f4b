// Package show writes values of guest code as people read them: return values
// as numbers of their C type, buffers as strings or hex dumps.
//
// It must not know where a value comes from.
package show

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"kprobelab/errno"
	"kprobelab/internal/callsyntax"
)

// Kind is the form in which values of a C type are printed.
type Kind int

// The kinds of value.
const (
	// Unknown is a register whose type is not known.
	Unknown Kind = iota
	// Void has no value.
	Void
	// Signed and Unsigned are integers.
	Signed
	Unsigned
	// Bool is _Bool.
	Bool
	// Pointer is an address.
	Pointer
)

// Type is a C type as far as showing a value needs it.
type Type struct {
	Kind Kind
	// Size in bytes; 0 means 8.
	Size int
}

// Number gives the register's content as the number of that type.
func (t Type) Number(rax uint64) int64 {
	shift := uint(64 - 8*t.size())
	if t.Kind == Signed {
		return int64(rax<<shift) >> shift
	}
	return int64(rax << shift >> shift)
}

func (t Type) size() int {
	if t.Size <= 0 || t.Size > 8 {
		return 8
	}
	return t.Size
}

// Value writes the register's content: a number with its hexadecimal form, a
// negative errno with its name, an address, true or false.
func Value(rax uint64, t Type) string {
	n := t.Number(rax)
	switch {
	case t.Kind == Void:
		return "void"
	case t.Kind == Bool:
		return strconv.FormatBool(rax&0xff != 0)
	case t.Kind == Pointer && n == 0:
		return "NULL"
	case t.Kind == Pointer && !isErrno(n):
		return fmt.Sprintf("0x%x", uint64(n))
	case t.Kind == Unsigned:
		return strconv.FormatUint(uint64(n), 10) + inHex(uint64(n))
	case isErrno(n):
		return fmt.Sprintf("%d%s", n, inHex(rax, errnoName(n)...))
	case t.Kind == Unknown:
		return unknown(rax)
	}
	bits := uint(64 - 8*t.size())
	return strconv.FormatInt(n, 10) + inHex(rax<<bits>>bits)
}

// kernelHalf is the first address of the kernel's half of the address space.
const kernelHalf = 0xffff800000000000

// unknown writes a value without a type: it tells an address of the kernel,
// which looks like nothing else, and a negative errno.
func unknown(rax uint64) string {
	asInt := Type{Kind: Signed, Size: 4}.Number(rax)
	switch {
	case rax >= kernelHalf:
		return fmt.Sprintf("0x%x", rax)
	case rax>>32 == 0 && isErrno(asInt):
		return strconv.FormatUint(rax, 10) + inHex(rax, append([]string{fmt.Sprintf("as an int %d", asInt)}, errnoName(asInt)...)...)
	}
	return strconv.FormatUint(rax, 10) + inHex(rax)
}

// isErrno is the kernel's IS_ERR_VALUE, of both an int and a pointer.
func isErrno(n int64) bool { return n < 0 && n >= -4095 }

func errnoName(n int64) []string {
	name := errno.Errno(-n).Name()
	if strings.ContainsRune(name, ' ') {
		return nil
	}
	return []string{"-" + name}
}

// inHex is " (0x2a)", or nothing where the hexadecimal form is the same.
func inHex(v uint64, more ...string) string {
	if v <= 9 && len(more) == 0 {
		return ""
	}
	return " (" + strings.Join(append([]string{"0x" + strconv.FormatUint(v, 16)}, more...), ", ") + ")"
}

// maxDump is how much of a buffer is dumped.
const maxDump = 512

// A buffer as small as this is written on the line; one that may be a number
// shows its bytes, even where they make a text.
const (
	maxInline = 16
	maxNumber = 8
)

// Buffer writes a buffer's content: as a C string where it holds printable
// text that ends with a NUL, a few bytes as {01 ff}, else as a hex dump of
// lines that begin with the indentation, the first on a new line.
func Buffer(b []byte, indent string) string {
	text, ok := cString(b)
	switch {
	case ok && (len(b) == 0 || len(b) > maxNumber):
		return callsyntax.Quote(text)
	case ok:
		return fmt.Sprintf("%s {% x}", callsyntax.Quote(text), b)
	case len(b) <= maxInline:
		return fmt.Sprintf("{% x}", b)
	}
	return strings.TrimRight("\n"+Dump(b, indent), "\n")
}

// cString is the text before the first NUL, where all of it is printable and
// only zeros follow. An empty buffer's text is empty.
func cString(b []byte) ([]byte, bool) {
	text, rest, found := bytes.Cut(b, []byte{0})
	if !found && len(b) > 0 || len(bytes.Trim(rest, "\x00")) > 0 || !utf8.Valid(text) {
		return nil, false
	}
	for _, r := range string(text) {
		if !unicode.IsPrint(r) && !unicode.IsSpace(r) {
			return nil, false
		}
	}
	return text, true
}

// Dump writes 16 bytes a line with their offset and their text, as hexdump -C
// does; a long buffer and zeros at the end are cut short, and it says so.
func Dump(b []byte, indent string) string {
	var s strings.Builder
	body := b[:min(len(b), maxDump)]
	if trimmed := len(bytes.TrimRight(body, "\x00")); len(body)-trimmed > 32 {
		body = body[:(trimmed+16)&^15]
	}
	for off := 0; off < len(body); off += 16 {
		line := body[off:min(off+16, len(body))]
		fmt.Fprintf(&s, "%s%04x  %-47s  |%s|\n", indent, off, fmt.Sprintf("% x", line), printable(line))
	}
	if rest := b[len(body):]; len(rest) > 0 {
		what := "more bytes"
		if len(bytes.Trim(rest, "\x00")) == 0 {
			what = "more bytes, all zero"
		}
		fmt.Fprintf(&s, "%s… %d %s\n", indent, len(rest), what)
	}
	return s.String()
}

func printable(line []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '.'
		}
		return r
	}, latin1(line))
}

// latin1 makes one rune of each byte, so that the column keeps its width.
func latin1(b []byte) string {
	r := make([]rune, len(b))
	for i, c := range b {
		r[i] = rune(c)
	}
	return string(r)
}
