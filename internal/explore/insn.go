package explore

import (
	"encoding/binary"
	"strings"

	"kprobelab/x86"
)

// insn is one of the few instructions that a CPU here knows: the instructions of scenarios
// and of detour buffers. code has the bytes from the opcode on, n is its length in bytes.
type insn struct {
	code string
	n    int
	do   func(t *task, c []byte) bool
}

// insns are tried in their order: the first whose code begins the bytes is executed. do
// returns false for an access to memory that is not there.
var insns = []insn{
	{"\x90", 1, nothing},
	{"\x48\x89\xf8", 3, func(t *task, _ []byte) bool { t.regs.AX = t.regs.DI; return true }},
	{"\x48\x83\xc0", 4, func(t *task, c []byte) bool { t.regs.AX += rel8(c[3:]); return true }},
	{"\x48\x83\xe8", 4, func(t *task, c []byte) bool { t.regs.AX -= rel8(c[3:]); return true }},
	{"\x48\xff\xc0", 3, func(t *task, _ []byte) bool { t.regs.AX++; return true }},
	{"\x0f\x1f\x44\x00\x00", 5, nothing},
	{"\x0f\x1f\x40\x00", 4, nothing},
	{"\x0f\x1f\x00", 3, nothing},
	{"\x66\x90", 2, nothing},
	{"\x0f\x0d\x0c\x24", 4, nothing}, // prefetchw (%rsp)
	{"\xc3", 1, func(t *task, _ []byte) bool { return t.pop(&t.regs.IP) }},
	{"\xe8", 5, func(t *task, c []byte) bool { return t.push(t.regs.IP) && t.jump(rel32(c[1:])) }},
	{"\xff\xd0", 2, func(t *task, _ []byte) bool { ip := t.regs.IP; t.regs.IP = t.regs.AX; return t.push(ip) }},
	{"\x48\x8d\x05", 7, func(t *task, c []byte) bool { t.regs.AX = t.regs.IP + rel32(c[3:]); return true }},
	{"\x48\xff\x2c\x24", 4, func(t *task, _ []byte) bool { return t.load(t.regs.SP, &t.regs.IP) }}, // ljmp *(%rsp), the code segment as it is
	{"\x48\x83\x04\x24", 5, func(t *task, c []byte) bool {
		v := uint64(0)
		return t.load(t.regs.SP, &v) && t.store(t.regs.SP, v+rel8(c[4:]))
	}},
	{"\xff\x74\x24", 4, func(t *task, c []byte) bool {
		v := uint64(0)
		return t.load(t.regs.SP+rel8(c[3:]), &v) && t.push(v)
	}},
	{"\x8f\x44\x24", 4, func(t *task, c []byte) bool {
		v := uint64(0)
		return t.pop(&v) && t.store(t.regs.SP+rel8(c[3:]), v)
	}},
	{"\xe9", 5, func(t *task, c []byte) bool { return t.jump(rel32(c[1:])) }},
	{"\xeb", 2, func(t *task, c []byte) bool { return t.jump(rel8(c[1:])) }},
	{"\x48\x83\xf8", 4, func(t *task, c []byte) bool { t.compare(t.regs.AX, rel8(c[3:])); return true }},
	{"\x7e", 2, func(t *task, c []byte) bool { return !t.lessOrEqual() || t.jump(rel8(c[1:])) }},
	{"\xf4", 1, func(t *task, _ []byte) bool { t.exited = true; return true }},
	{"\x48\x89\xe7", 3, func(t *task, _ []byte) bool { t.regs.DI = t.regs.SP; return true }},
	{"\xfa", 1, func(t *task, _ []byte) bool { t.regs.Flags &^= x86.FlagIF; return true }},
	{"\xfb", 1, func(t *task, _ []byte) bool { t.regs.Flags |= x86.FlagIF; return true }},
	{"\x9c", 1, func(t *task, _ []byte) bool { return t.push(t.regs.Flags) }},
	{"\x9d", 1, func(t *task, _ []byte) bool { return t.pop(&t.regs.Flags) }},
	{"\xb8", 5, func(t *task, c []byte) bool { t.regs.AX = uint64(binary.LittleEndian.Uint32(c[1:])); return true }},
	{"\x6a", 2, func(t *task, c []byte) bool { return t.push(rel8(c[1:])) }},
	{"\x68", 5, func(t *task, c []byte) bool { return t.push(rel32(c[1:])) }},
	{"\x48\x83\xec", 4, func(t *task, c []byte) bool { t.regs.SP -= rel8(c[3:]); return true }},
	{"\x48\x83\xc4", 4, func(t *task, c []byte) bool { t.regs.SP += rel8(c[3:]); return true }},
	{"\x48\x89\xe6", 3, func(t *task, _ []byte) bool { t.regs.SI = t.regs.SP; return true }},
	{"\x48\x89\xf7", 3, func(t *task, _ []byte) bool { t.regs.DI = t.regs.SI; return true }},
	{"\x48\x89\x7e", 4, func(t *task, c []byte) bool { return t.store(t.regs.SI+rel8(c[3:]), t.regs.DI) }},
	{"\x48\x8d\x6c\x24", 5, func(t *task, c []byte) bool { t.regs.BP = t.regs.SP + rel8(c[4:]); return true }},
	{"\x48\xbf", 10, func(t *task, c []byte) bool { t.regs.DI = binary.LittleEndian.Uint64(c[2:]); return true }},
	{"\x48\x8b\x94\x24", 8, func(t *task, c []byte) bool { return t.load(t.regs.SP+rel32(c[4:]), &t.regs.DX) }},
	{"\x48\x89\x94\x24", 8, func(t *task, c []byte) bool { return t.store(t.regs.SP+rel32(c[4:]), t.regs.DX) }},
	{"\x0f\x01\xca", 3, nothing}, // clac
}

// byFirst has the instructions by their first byte.
var byFirst = func() (table [256][]insn) {
	list := insns
	for r := range 8 {
		list = append(list,
			insn{string([]byte{0x50 + byte(r)}), 1, func(t *task, _ []byte) bool { return t.push(*t.regs.Reg(r)) }},
			insn{string([]byte{0x58 + byte(r)}), 1, func(t *task, _ []byte) bool { return t.pop(t.regs.Reg(r)) }},
			insn{string([]byte{0x41, 0x50 + byte(r)}), 2, func(t *task, _ []byte) bool { return t.push(*t.regs.Reg(r + 8)) }},
			insn{string([]byte{0x41, 0x58 + byte(r)}), 2, func(t *task, _ []byte) bool { return t.pop(t.regs.Reg(r + 8)) }})
	}
	for _, in := range list {
		table[in.code[0]] = append(table[in.code[0]], in)
	}
	return table
}()

func nothing(*task, []byte) bool { return true }

// prefixes are passed over: of the instructions here they change nothing but the
// length.
const prefixes = "\x2e\x3e\x26\x36"

// decode finds the instruction at the start of c, and its whole length; nil if it is unknown.
func decode(c []byte) (*insn, int) {
	skip := 0
	for skip < len(c) && skip < 4 && strings.IndexByte(prefixes, c[skip]) >= 0 {
		skip++
	}
	if c = c[skip:]; len(c) == 0 {
		return nil, 0
	}
	for i := range byFirst[c[0]] {
		in := &byFirst[c[0]][i]
		if len(c) >= in.n && string(c[:len(in.code)]) == in.code {
			return in, skip + in.n
		}
	}
	return nil, 0
}

func rel8(c []byte) uint64  { return uint64(int64(int8(c[0]))) }
func rel32(c []byte) uint64 { return uint64(int64(int32(binary.LittleEndian.Uint32(c)))) }

func (t *task) jump(by uint64) bool { t.regs.IP += by; return true }

func (t *task) push(v uint64) bool {
	t.regs.SP -= 8
	if t.regs.SP < uint64(stackBase)+uint64(stackSize*t.n) {
		return false // the stack is full
	}
	return t.store(t.regs.SP, v)
}

func (t *task) pop(v *uint64) bool {
	sp := t.regs.SP
	t.regs.SP += 8
	return t.load(sp, v)
}

func (t *task) load(at uint64, v *uint64) bool {
	b := t.w.mem(x86.Addr(at), 8)
	if b == nil {
		return false
	}
	*v = binary.LittleEndian.Uint64(b)
	return true
}

func (t *task) store(at, v uint64) bool {
	b := t.w.mem(x86.Addr(at), 8)
	if b == nil || t.w.isText(x86.Addr(at)) {
		return false
	}
	binary.LittleEndian.PutUint64(b, v)
	return true
}

// compare sets the flags that conditions test, as cmp does.
func (t *task) compare(a, b uint64) {
	d := a - b
	t.regs.Flags &^= x86.FlagZF | x86.FlagSF | x86.FlagOF | x86.FlagCF
	if d == 0 {
		t.regs.Flags |= x86.FlagZF
	}
	if int64(d) < 0 {
		t.regs.Flags |= x86.FlagSF
	}
	if int64((a^b)&(a^d)) < 0 {
		t.regs.Flags |= x86.FlagOF
	}
	if a < b {
		t.regs.Flags |= x86.FlagCF
	}
}

// lessOrEqual is the condition of jle.
func (t *task) lessOrEqual() bool {
	f := t.regs.Flags
	return f&x86.FlagZF != 0 || f&x86.FlagSF != 0 != (f&x86.FlagOF != 0)
}
