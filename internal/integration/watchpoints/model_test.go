package watchpoints

import (
	"encoding/binary"
	"math/rand/v2"

	"kprobelab/machine"
	"kprobelab/x86"
)

// access is an access in the log.
type access struct {
	at   uint64
	n    int
	kind uint32
}

// step is an instruction, or an iteration of one: its accesses, and memory before and after it.
type step struct {
	ip, next      uint64
	begins        bool // not a further iteration
	log           []access
	before, after []byte // the model's memory
}

// The model's memory: data on both sides of a page's end, and the stack.
const (
	areaSize  = 160
	stackSize = 256
)

// Numbers of registers.
const (
	rax, rcx, rdx, rsp, rsi, rdi, r8, r9, r10, r11 = 0, 1, 2, 4, 6, 7, 8, 9, 10, 11
)

// model executes the instructions of gen.
type model struct {
	mem         []byte // the area, then the stack
	area, stack uint64
	r           [16]uint64
	x           [16]byte // xmm0
	carry       bool
	now         *step
	steps       []step
}

func (m *model) bytes(a uint64, n int) []byte {
	if off := a - m.area; off < areaSize {
		return m.mem[off : off+uint64(n)]
	}
	off := a - m.stack + areaSize
	return m.mem[off : off+uint64(n)]
}

func (m *model) load(a uint64, n int) uint64 {
	m.now.log = append(m.now.log, access{a, n, machine.WatchRead})
	var b [8]byte
	copy(b[:], m.bytes(a, n))
	return binary.LittleEndian.Uint64(b[:])
}

func (m *model) store(a uint64, n int, v uint64) {
	m.now.log = append(m.now.log, access{a, n, machine.WatchWrite})
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	copy(m.bytes(a, n), b[:n])
}

func mask(n int) uint64 { return ^uint64(0) >> (64 - 8*n) }

func (m *model) get(reg, n int) uint64 { return m.r[reg] & mask(n) }

func (m *model) set(reg, n int, v uint64) {
	if n == 4 {
		m.r[reg] = v & mask(4)
		return
	}
	m.r[reg] = m.r[reg]&^mask(n) | v&mask(n)
}

// begin and end enclose a step.
func (m *model) begin(ip uint64, begins bool) {
	m.now = &step{ip: ip, begins: begins, before: append([]byte(nil), m.mem...)}
}

func (m *model) end(next uint64) {
	m.now.next, m.now.after = next, append([]byte(nil), m.mem...)
	m.steps = append(m.steps, *m.now)
}

// insn is one instruction: its bytes at an address, and its effect. With rep, do makes one
// iteration, and the model makes a step for each.
type insn struct {
	code []byte
	rip  int // where in code an address is, relative to the end; 0: nowhere
	to   uint64
	do   func(m *model, ip uint64)
	rep  bool // do is one iteration, and reports whether another follows in m.carry
}

// loop is a body that runs some times; a plain program runs once.
type loop struct {
	times uint64
	body  []any // of insn and loop
}

// flow is an instruction that goes elsewhere in straight code: the model only sees that it
// is taken.
func (m *model) run(at uint64, list []any) uint64 {
	for _, x := range list {
		switch x := x.(type) {
		case insn:
			end := at + uint64(len(x.code))
			if !x.rep {
				m.begin(at, true)
				x.do(m, at)
				m.end(end)
				at = end
				continue
			}
			for first := true; ; first = false {
				if m.r[rcx] == 0 {
					if first { // it looks at the counter, and is complete
						m.begin(at, true)
						m.end(end)
					}
					break
				}
				m.begin(at, first)
				x.do(m, at)
				m.r[rcx]--
				next := at
				if m.r[rcx] == 0 || !m.carry {
					next = end
				}
				m.end(next)
				if next == end {
					break
				}
			}
			at = end
		case loop:
			start := at
			for n := x.times; ; {
				at = m.run(start, x.body)
				n--
				m.begin(at, true) // dec %r11d
				m.end(at + 3)
				m.begin(at+3, true) // jne
				next := at + 9
				if n > 0 {
					next = start
				}
				m.end(next)
				if n == 0 {
					at = next
					break
				}
			}
		}
	}
	return at
}

// assemble is the code of a list at an address.
func assemble(at uint64, list []any) (code []byte) {
	for _, x := range list {
		switch x := x.(type) {
		case insn:
			b := append([]byte(nil), x.code...)
			if x.rip > 0 {
				end := at + uint64(len(code)+len(b))
				binary.LittleEndian.PutUint32(b[x.rip:], uint32(x.to-end))
			}
			code = append(code, b...)
		case loop:
			body := assemble(at+uint64(len(code)), x.body)
			code = append(code, body...)
			back := int32(-(len(body) + 9))
			code = append(code, 0x41, 0xff, 0xcb, 0x0f, 0x85)
			code = binary.LittleEndian.AppendUint32(code, uint32(back))
		}
	}
	return code
}

// gen makes random programs over the model's memory.
type gen struct {
	*rand.Rand
	area uint64
}

// The registers that hold data: rax, rdx.
func (g *gen) data() int { return []int{rax, rdx}[g.IntN(2)] }

func (g *gen) size() int { return 1 << g.IntN(4) }

// index is the content of r10; displacements of both bases are from the area's middle.
const (
	index  = 5
	middle = areaSize / 2
)

// operand is a memory operand of n bytes: a ModRM with its rest, for a register in reg, and
// the REX bits.
type operand struct {
	at   uint64
	rex  byte
	rest []byte
	rip  int // where in rest the address is, from 1
}

func (g *gen) operand(reg, n int) operand {
	off := g.IntN(areaSize - n + 1)
	o := operand{at: g.area + uint64(off)}
	field := byte(reg&7) << 3
	if reg >= 8 {
		o.rex = 4
	}
	disp := binary.LittleEndian.AppendUint32(nil, uint32(int32(off-middle)))
	switch g.IntN(3) {
	case 0: // disp32(%r8)
		o.rex |= 1
		o.rest = append([]byte{0x80 | field}, disp...)
	case 1: // disp32(%r9,%r10,scale)
		scale := g.IntN(4)
		o.rex |= 3
		disp = binary.LittleEndian.AppendUint32(nil, uint32(int32(off-middle-index<<scale)))
		o.rest = append([]byte{0x84 | field, byte(scale)<<6 | 0x11}, disp...)
		o.rest[1] = byte(scale)<<6 | (r10&7)<<3 | r9&7
	default: // disp32(%rip)
		o.rest = append([]byte{0x05 | field}, 0, 0, 0, 0)
		o.rip = 1
	}
	return o
}

// with is an instruction of an opcode with a memory operand of size n, and bytes after it.
// Opcodes of bytes are one less than the others.
func (o operand) with(n int, opcode []byte, do func(m *model), tail ...byte) insn {
	var code []byte
	if n == 2 {
		code = append(code, 0x66)
	}
	rex := o.rex
	if n == 8 {
		rex |= 8
	}
	if rex != 0 || n == 1 {
		code = append(code, 0x40|rex)
	}
	code = append(code, opcode...)
	if n == 1 {
		code[len(code)-1]--
	}
	i := insn{do: func(m *model, _ uint64) { do(m) }}
	if o.rip > 0 {
		i.rip, i.to = len(code)+o.rip, o.at
	}
	i.code = append(append(code, o.rest...), tail...)
	return i
}

// wide is with for an opcode that has no form for bytes, or for no other size.
func (o operand) wide(prefix []byte, rex byte, opcode []byte, do func(m *model), tail ...byte) insn {
	code := append([]byte(nil), prefix...)
	if r := o.rex | rex; r != 0 {
		code = append(code, 0x40|r)
	}
	code = append(code, opcode...)
	i := insn{do: func(m *model, _ uint64) { do(m) }}
	if o.rip > 0 {
		i.rip, i.to = len(code)+o.rip, o.at
	}
	i.code = append(append(code, o.rest...), tail...)
	return i
}

func imm(n int, v uint32) []byte {
	return binary.LittleEndian.AppendUint32(nil, v)[:min(n, 4)]
}

func plain(do func(m *model), code ...byte) insn {
	return insn{code: code, do: func(m *model, _ uint64) { do(m) }}
}

// alu are operations on memory by the number in their opcode.
var alu = map[byte]func(a, b uint64) uint64{
	0: func(a, b uint64) uint64 { return a + b }, 1: func(a, b uint64) uint64 { return a | b },
	4: func(a, b uint64) uint64 { return a & b }, 5: func(a, b uint64) uint64 { return a - b },
	6: func(a, b uint64) uint64 { return a ^ b },
}

func (g *gen) alu() byte { return []byte{0, 1, 4, 5, 6}[g.IntN(5)] }

// insns are one random instruction, or some that belong together.
func (g *gen) insns() []any {
	n, reg := g.size(), g.data()
	o := g.operand(reg, n)
	v := g.Uint32()
	switch g.IntN(24) {
	case 0: // mov to memory
		return []any{o.with(n, []byte{0x89}, func(m *model) { m.store(o.at, n, m.get(reg, n)) })}
	case 1: // mov from memory
		return []any{o.with(n, []byte{0x8b}, func(m *model) { m.set(reg, n, m.load(o.at, n)) })}
	case 2: // mov of an immediate
		o := g.operand(0, n)
		return []any{o.with(n, []byte{0xc7}, func(m *model) { m.store(o.at, n, uint64(int64(int32(v)))) }, imm(n, v)...)}
	case 3: // alu on memory
		k := g.alu()
		return []any{o.with(n, []byte{k<<3 | 1}, func(m *model) { m.store(o.at, n, alu[k](m.load(o.at, n), m.get(reg, n))) })}
	case 4: // alu from memory
		k := g.alu()
		return []any{o.with(n, []byte{k<<3 | 3}, func(m *model) { m.set(reg, n, alu[k](m.get(reg, n), m.load(o.at, n))) })}
	case 5: // cmp, test: read only
		return []any{o.with(n, []byte{[]byte{0x39, 0x3b, 0x85}[g.IntN(3)]}, func(m *model) { m.load(o.at, n) })}
	case 6: // inc, dec, not, neg
		k := g.IntN(4)
		o := g.operand([]int{0, 1, 2, 3}[k], n)
		op := []byte{0xff, 0xff, 0xf7, 0xf7}[k]
		return []any{o.with(n, []byte{op}, func(m *model) {
			v := m.load(o.at, n)
			m.store(o.at, n, []uint64{v + 1, v - 1, ^v, -v}[k])
		})}
	case 7: // xchg
		return []any{o.with(n, []byte{0x87}, func(m *model) {
			v := m.load(o.at, n)
			m.store(o.at, n, m.get(reg, n))
			m.set(reg, n, v)
		})}
	case 8: // lock xadd
		i := o.with(n, []byte{0x0f, 0xc1}, func(m *model) {
			v := m.load(o.at, n)
			m.store(o.at, n, v+m.get(reg, n))
			m.set(reg, n, v)
		})
		return []any{locked(i)}
	case 9: // cmpxchg, which writes in either case
		o := g.operand(rdx, n)
		i := o.with(n, []byte{0x0f, 0xb1}, func(m *model) {
			if v := m.load(o.at, n); v == m.get(rax, n) {
				m.store(o.at, n, m.get(rdx, n))
			} else {
				m.store(o.at, n, v)
				m.set(rax, n, v)
			}
		})
		if g.IntN(2) == 0 {
			i = locked(i)
		}
		return []any{i}
	case 10: // push and pop of memory
		a, b := g.operand(6, 8), g.operand(0, 8)
		return []any{
			a.wide(nil, 0, []byte{0xff}, func(m *model) { v := m.load(a.at, 8); m.push(v) }),
			b.wide(nil, 0, []byte{0x8f}, func(m *model) { v := m.pop(); m.store(b.at, 8, v) }),
		}
	case 11: // push and pop of a register, with something between
		list := []any{plain(func(m *model) { m.push(m.r[rax]) }, 0x50)}
		if g.IntN(3) == 0 {
			list = append(list, g.insns()...)
		}
		return append(list, plain(func(m *model) { m.r[rdx] = m.pop() }, 0x5a))
	case 12: // movdqu: sixteen bytes
		a, b := g.operand(0, 16), g.operand(0, 16)
		return []any{
			a.wide([]byte{0xf3}, 0, []byte{0x0f, 0x6f}, func(m *model) {
				m.now.log = append(m.now.log, access{a.at, 16, machine.WatchRead})
				copy(m.x[:], m.bytes(a.at, 16))
			}),
			b.wide([]byte{0xf3}, 0, []byte{0x0f, 0x7f}, func(m *model) {
				m.now.log = append(m.now.log, access{b.at, 16, machine.WatchWrite})
				copy(m.bytes(b.at, 16), m.x[:])
			}),
		}
	case 13, 14, 15:
		return g.str()
	case 16: // call and ret, past each other
		return []any{
			insn{code: []byte{0xe8, 0, 0, 0, 0}, do: func(m *model, ip uint64) { m.push(ip + 5) }},
			plain(func(m *model) { m.r[r11+1] = m.pop() }, 0x41, 0x5c), // pop %r12
		}
	case 17: // push of an address and ret to it
		return []any{
			insn{code: []byte{0x4c, 0x8d, 0x25, 3, 0, 0, 0}, do: func(m *model, ip uint64) { m.r[12] = ip + 10 }}, // lea 3(%rip),%r12
			plain(func(m *model) { m.push(m.r[12]) }, 0x41, 0x54),
			plain(func(m *model) { m.pop() }, 0xc3),
		}
	case 18: // bts of a bit that a register selects
		n := max(n, 2)
		bit := g.IntN(areaSize * 8)
		o := operand{rex: 1, rest: []byte{0x80 | rdx<<3}}
		o.rest = binary.LittleEndian.AppendUint32(o.rest, uint32(-middle&0xffffffff))
		load := insn{code: append([]byte{0xba}, imm(4, uint32(bit))...), do: func(m *model, _ uint64) { m.r[rdx] = uint64(bit) }}
		at := g.area + uint64(bit/8)/uint64(n)*uint64(n)
		return []any{load, o.with(n, []byte{0x0f, 0xab}, func(m *model) {
			m.store(at, n, m.load(at, n)|1<<(bit%(8*n)))
		})}
	case 19: // movzx
		o := g.operand(reg, 1)
		return []any{o.wide(nil, 0, []byte{0x0f, 0xb6}, func(m *model) { m.set(reg, 4, m.load(o.at, 1)) })}
	case 20: // stc; setc, cmovc
		a, b := g.operand(0, 1), g.operand(rax, 4)
		return []any{
			plain(func(*model) {}, 0xf9),
			a.wide(nil, 0, []byte{0x0f, 0x92}, func(m *model) { m.store(a.at, 1, 1) }),
			b.wide(nil, 0, []byte{0x0f, 0x43}, func(m *model) { m.load(b.at, 4); m.set(rax, 4, m.r[rax]) }), // cmovnc: not taken, read
		}
	case 21: // lea and a long nop access nothing
		return []any{
			o.wide(nil, 8, []byte{0x8d}, func(m *model) { m.r[reg] = o.at }),
			g.operand(0, 8).wide(nil, 0, []byte{0x0f, 0x1f}, func(*model) {}),
		}
	case 22: // movq: eight bytes of sixteen
		a, b := g.operand(0, 8), g.operand(0, 8)
		return []any{
			a.wide([]byte{0xf3}, 0, []byte{0x0f, 0x7e}, func(m *model) {
				m.x = [16]byte{}
				binary.LittleEndian.PutUint64(m.x[:], m.load(a.at, 8))
			}),
			b.wide([]byte{0x66}, 0, []byte{0x0f, 0xd6}, func(m *model) { m.store(b.at, 8, binary.LittleEndian.Uint64(m.x[:])) }),
		}
	default: // shl by one
		o := g.operand(4, n)
		return []any{o.with(n, []byte{0xd1}, func(m *model) { m.store(o.at, n, m.load(o.at, n)<<1) })}
	}
}

func locked(i insn) insn {
	i.code = append([]byte{0xf0}, i.code...)
	if i.rip > 0 {
		i.rip++
	}
	return i
}

func (m *model) push(v uint64) {
	m.r[rsp] -= 8
	m.store(m.r[rsp], 8, v)
}

func (m *model) pop() uint64 {
	v := m.load(m.r[rsp], 8)
	m.r[rsp] += 8
	return v
}

// mov is mov of an immediate of 64 bits to rsi, rdi or rcx.
func mov(reg int, v uint64) insn {
	code := binary.LittleEndian.AppendUint64([]byte{0x48, 0xb8 | byte(reg)}, v)
	return insn{code: code, do: func(m *model, _ uint64) { m.r[reg] = v }}
}

// str makes a string instruction with its set-up: alone or with rep, up or down.
func (g *gen) str() []any {
	n, times := g.size(), 1
	rep := g.IntN(3) > 0
	if rep {
		times = g.IntN(6)
	}
	down := g.IntN(3) == 0
	room := areaSize - n*max(times, 1)
	place := func() uint64 {
		off := g.IntN(room + 1)
		if down {
			off += n * (max(times, 1) - 1)
		}
		return g.area + uint64(off)
	}
	list := []any{mov(rsi, place()), mov(rdi, place())}
	by := uint64(n)
	if down {
		by = -by
		list = append(list, plain(func(*model) {}, 0xfd))
	}
	if rep {
		list = append(list, mov(rcx, uint64(times)))
	}
	var code []byte
	if n == 2 {
		code = append(code, 0x66)
	}
	kind := g.IntN(5)
	repne := kind == 4 && g.IntN(2) == 0
	if rep {
		code = append(code, 0xf3)
		if repne {
			code[len(code)-1] = 0xf2
		}
	}
	if n == 8 {
		code = append(code, 0x48)
	}
	op := []byte{0xa5, 0xab, 0xad, 0xa7, 0xaf}[kind]
	if n == 1 {
		op--
	}
	do := func(m *model, _ uint64) {
		m.carry = true
		switch kind {
		case 0:
			m.store(m.r[rdi], n, m.load(m.r[rsi], n))
		case 1:
			m.store(m.r[rdi], n, m.get(rax, n))
		case 2:
			m.set(rax, n, m.load(m.r[rsi], n))
		case 3: // repe cmps
			m.carry = m.load(m.r[rdi], n) == m.load(m.r[rsi], n)
		case 4:
			m.carry = m.load(m.r[rdi], n) == m.get(rax, n) != repne
		}
		if kind == 0 || kind == 2 || kind == 3 {
			m.r[rsi] += by
		}
		if kind != 2 {
			m.r[rdi] += by
		}
	}
	list = append(list, insn{code: append(code, op), do: do, rep: rep})
	if down {
		list = append(list, plain(func(*model) {}, 0xfc))
	}
	return list
}

// program is some instructions, some of them in loops.
func (g *gen) program() []any {
	list := []any{
		plain(func(m *model) { m.r[r10] = index }, 0x41, 0xba, index, 0, 0, 0),
		plain(func(m *model) { m.r[rax] = 0x11223344 }, 0xb8, 0x44, 0x33, 0x22, 0x11),
	}
	for range 1 + g.IntN(6) {
		if g.IntN(6) > 0 {
			list = append(list, g.insns()...)
			continue
		}
		times := 1 + g.Uint64N(3)
		var body []any
		for range 1 + g.IntN(2) {
			body = append(body, g.insns()...)
		}
		list = append(list,
			insn{code: append([]byte{0x41, 0xbb}, imm(4, uint32(times))...), do: func(m *model, _ uint64) { m.r[r11] = times }},
			loop{times, body})
	}
	return list
}

// watches makes random watches on the area, the stack and the program.
func (g *gen) watches(stack, at uint64, n int) []machine.Watch {
	list := make([]machine.Watch, 1+g.IntN(6))
	for i := range list {
		w := machine.Watch{Len: uint32(g.size()), Kinds: 1 + g.Uint32N(3)}
		switch g.IntN(5) {
		case 0:
			w.Addr = x86.Addr(stack + uint64(g.IntN(stackSize-8)))
		case 1:
			w.Addr, w.Len, w.Kinds = x86.Addr(at+uint64(g.IntN(n))), 1, machine.WatchExec
		default:
			w.Addr = x86.Addr(g.area + uint64(g.IntN(areaSize-8)))
		}
		list[i] = w
	}
	return list
}
