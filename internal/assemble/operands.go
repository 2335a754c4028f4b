package assemble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"kprobelab/decoder"
	"kprobelab/x86"
)

// operands are the operands of a line.
type operands struct {
	list []operand
	// memory is the operand in memory, nil for none.
	memory *memory
}

// operand is a register, a number, a target or memory, in this order of its fields.
type operand struct {
	register string
	number   *int64
	target   x86.Addr
	memory   memory
	// indirect: the branch goes where the operand says.
	indirect bool
}

// memory is disp(base,index,scale).
type memory struct {
	base, index       byte
	hasBase, hasIndex bool
	rip               bool
	scale             byte // its logarithm
	disp              int64
	// to is the place that a displacement from rip leads to, 0 if the displacement is a number.
	to x86.Addr
	// dispLen is how many bytes of disp an encoding has.
	dispLen int
}

// numbers are the registers', in the names of each size.
var numbers = func() map[string]byte {
	all := map[string]byte{}
	for _, names := range []string{
		"rax rcx rdx rbx rsp rbp rsi rdi", "eax ecx edx ebx esp ebp esi edi", "ax cx dx bx sp bp si di", "al cl dl bl spl bpl sil dil",
	} {
		for n, name := range strings.Fields(names) {
			all[name] = byte(n)
		}
	}
	for n, name := range strings.Fields("ah ch dh bh") {
		all[name] = byte(4 + n)
	}
	for n := byte(8); n < 16; n++ {
		for _, suffix := range []string{"", "d", "w", "b"} {
			all[fmt.Sprintf("r%d%s", n, suffix)] = n
		}
	}
	return all
}()

// readOperands reads what stands between commas; target finds an address by name.
func readOperands(text string, target func(string) (x86.Addr, bool)) (*operands, error) {
	o := &operands{}
	for _, s := range split(text) {
		one, err := readOperand(s, target)
		if err != nil {
			return nil, err
		}
		o.list = append(o.list, one)
	}
	for i := range o.list {
		if x := &o.list[i]; x.register == "" && x.number == nil && x.target == 0 {
			o.memory = &x.memory
		}
	}
	return o, nil
}

// split splits at the commas outside of brackets.
func split(text string) (list []string) {
	depth, from := 0, 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			list, from = append(list, strings.TrimSpace(text[from:i])), i+1
		}
	}
	if last := strings.TrimSpace(text[from:]); last != "" || from > 0 {
		list = append(list, last)
	}
	return list
}

func readOperand(s string, target func(string) (x86.Addr, bool)) (o operand, err error) {
	s, o.indirect = strings.CutPrefix(s, "*")
	switch {
	case strings.HasPrefix(s, "%") && !strings.ContainsAny(s, ":("):
		o.register = s[1:]
		if _, ok := numbers[o.register]; !ok {
			return o, fmt.Errorf("there is no register %s here", s)
		}
	case strings.HasPrefix(s, "$"):
		v, err := number(s[1:])
		if err != nil {
			to, ok := place(s[1:], target)
			if !ok {
				return o, err
			}
			v = int64(to)
		}
		o.number = &v
	case strings.HasSuffix(s, ")"):
		err = o.memory.read(s, target)
	default:
		to, ok := target(s)
		if !ok {
			return o, fmt.Errorf("%q is no operand, and no label", s)
		}
		o.target = to
	}
	return o, err
}

// number reads a number of 64 bits, with a sign or without.
func number(s string) (int64, error) {
	if v, err := strconv.ParseInt(s, 0, 64); err == nil {
		return v, nil
	}
	v, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number", s)
	}
	return int64(v), nil
}

var errMemory = errors.New("memory is such as 8(%rax), (%rax,%rcx,4) or 8(%rip)")

// place reads a symbol, with a number added to it or without, as the compiler's output has it.
func place(s string, target func(string) (x86.Addr, bool)) (x86.Addr, bool) {
	i := strings.LastIndexAny(s, "+-")
	if first, second, ok := strings.Cut(s, "+"); ok && second != "" && strings.Trim(first, "0123456789") == "" { // gcc's 4+table
		s, i = second+"+"+first, len(second)
	}
	if i > 0 {
		if n, err := strconv.ParseInt(s[i:], 0, 32); err == nil {
			to, ok := target(s[:i])
			return to.Add(n), ok
		}
	}
	to, ok := target(s)
	return to, ok
}

func (m *memory) read(s string, target func(string) (x86.Addr, bool)) error {
	disp, inside, _ := strings.Cut(strings.TrimSuffix(s, ")"), "(")
	if disp = strings.TrimSpace(disp); disp != "" {
		var err error
		if m.disp, err = number(disp); err != nil {
			to, ok := place(disp, target)
			if !ok {
				return err
			}
			if m.disp = int64(to); strings.TrimSpace(inside) == "%rip" {
				m.disp, m.to = 0, to
			}
		}
	}
	parts := strings.Split(inside, ",")
	register := func(s string, n *byte) bool {
		name, ok := strings.CutPrefix(strings.TrimSpace(s), "%")
		var known bool
		*n, known = numbers[name]
		return ok && known && len(name) > 1 && (strings.HasPrefix(name, "r") && !strings.HasSuffix(name, "d") && !strings.HasSuffix(name, "w") && !strings.HasSuffix(name, "b"))
	}
	if strings.TrimSpace(parts[0]) == "%rip" && len(parts) == 1 {
		m.rip = true
		return nil
	}
	if strings.TrimSpace(parts[0]) != "" {
		if m.hasBase = register(parts[0], &m.base); !m.hasBase {
			return errMemory
		}
	}
	if len(parts) > 1 && strings.TrimSpace(parts[1]) == "%riz" { // no index, which x86asm says so of %r12
		parts = parts[:1]
	}
	if len(parts) > 1 {
		if m.hasIndex = register(parts[1], &m.index); !m.hasIndex || m.index == 4 {
			return errMemory
		}
	}
	if len(parts) > 2 {
		n := slices.Index([]string{"1", "2", "4", "8"}, strings.TrimSpace(parts[2]))
		if n < 0 || len(parts) > 3 {
			return errMemory
		}
		m.scale = byte(n)
	}
	return nil
}

// encode appends ModRM, SIB and displacement.
func (m *memory) encode(b []byte, reg byte) []byte {
	mod := map[int]byte{0: 0, 1: 1, 4: 2}[m.dispLen]
	if m.rip || !m.hasBase {
		mod = 0
	}
	index, base := byte(4), m.base&7
	if m.hasIndex {
		index = m.index & 7
	}
	switch {
	case m.rip:
		b = append(b, reg<<3|5)
	case !m.hasBase:
		b = append(b, reg<<3|4, m.scale<<6|index<<3|5)
	case m.hasIndex || base == 4:
		b = append(b, mod<<6|reg<<3|4, m.scale<<6|index<<3|base)
	default:
		b = append(b, mod<<6|reg<<3|base)
	}
	return append(b, binary.LittleEndian.AppendUint64(nil, uint64(m.disp))[:m.dispLen]...)
}

// encodings lists the encodings of a form with these operands, in any of its fields.
func (o *operands) encodings(f *form, at x86.Addr) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var fields []byte // what may stand in a field
		rex := false
		for _, x := range o.list {
			if n, ok := numbers[x.register]; ok {
				fields = append(fields, n)
				rex = rex || slices.Contains([]string{"spl", "bpl", "sil", "dil"}, x.register)
			}
		}
		rms, memories := append([]byte{0}, fields...), []*memory{nil}
		if !f.modrm {
			rms = []byte{0, 8}
		} else if o.memory != nil {
			rms, memories = rms[:1], nil
			for _, n := range []int{0, 1, 4} {
				if m := *o.memory; fits(m.disp, n) && (n == 4 || m.hasBase) {
					m.dispLen = n
					memories = append(memories, &m)
				}
			}
		}
		for _, reg := range append(fields, f.reg) {
			for _, rm := range rms {
				for _, m := range memories {
					if code := o.fill(f.encode(reg, rm, m, rex), at); code != nil && !yield(code) {
						return
					}
				}
			}
		}
	}
}

// fits: a number fits into that many bytes, with its sign.
func fits(v int64, n int) bool {
	if n == 0 {
		return v == 0
	}
	return n == 8 || v>>(8*n-1) == 0 || v>>(8*n-1) == -1
}

// fill puts the number or the distance of the target after an opcode; nil where that
// is no instruction.
func (o *operands) fill(head []byte, at x86.Addr) []byte {
	if head == nil {
		return nil
	}
	code := append(head, make([]byte, decoder.MaxInsnSize)...)[:decoder.MaxInsnSize]
	i, err := decoder.Decode(code)
	if err != nil || i.Length < len(head) || i.ImmLen > 0 && i.Length != int(i.ImmOff+i.ImmLen) {
		return nil
	}
	if i.ImmLen == 0 {
		return code[:i.Length]
	}
	var v int64
	for _, x := range o.list {
		switch {
		case i.HasTarget && x.target != 0:
			v = x.target.Sub(at.Add(int64(i.Length)))
		case x.number != nil:
			v = *x.number
		}
	}
	if !fits(v, int(i.ImmLen)) && (i.HasTarget || v>>(8*i.ImmLen) != 0 && !fitsNarrow(v, int(i.ImmLen))) {
		return nil
	}
	copy(code[i.ImmOff:], binary.LittleEndian.AppendUint64(nil, uint64(v))[:i.ImmLen])
	return code[:i.Length]
}

// fitsNarrow: v is a negative number of 16 or 32 bits, written without its sign, and
// fits as such.
func fitsNarrow(v int64, n int) bool {
	return v>>16 == 0 && fits(int64(int16(v)), n) || v>>32 == 0 && fits(int64(int32(v)), n)
}

// same: the decoder's text says that mnemonic and these operands.
func (o *operands) same(text, mnemonic string) bool {
	name, rest, _ := strings.Cut(text, " ")
	if name != mnemonic {
		return false
	}
	is, err := readOperands(rest, func(s string) (x86.Addr, bool) {
		v, err := strconv.ParseUint(s, 0, 64)
		return x86.Addr(v), err == nil
	})
	if err != nil || len(is.list) != len(o.list) {
		return false
	}
	for n, x := range o.list {
		y := is.list[n]
		if m := x.memory; y.target != 0 && y.register == "" && x.isAddress() && int64(y.target) == m.disp { // the decoder's memory without registers
			y.target, y.memory = 0, m
		}
		if x.register != y.register || x.target != y.target || x.memory != y.memory || x.indirect != y.indirect || (x.number == nil) != (y.number == nil) {
			return false
		}
		if x.number != nil && *x.number != *y.number && (uint32(*x.number) != uint32(*y.number) || o.wide() || *y.number>>32 != 0 && *y.number>>32 != -1) {
			return false
		}
	}
	return true
}

// isAddress: the operand is memory at an address, without registers.
func (x *operand) isAddress() bool {
	return x.register == "" && x.number == nil && x.target == 0 && !x.memory.hasBase && !x.memory.hasIndex && !x.memory.rip
}

// registers are the names of the operands that are registers.
func (o *operands) registers() (list []string) {
	for _, x := range o.list {
		if x.register != "" {
			list = append(list, x.register)
		}
	}
	return list
}

// wide: an operand has 64 bits.
func (o *operands) wide() bool {
	return slices.ContainsFunc(o.list, func(x operand) bool {
		return strings.HasPrefix(x.register, "r") && !strings.ContainsAny(x.register[len(x.register)-1:], "dwb")
	})
}
