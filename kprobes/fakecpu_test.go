package kprobes_test

import (
	"encoding/binary"
	"fmt"

	"kprobelab/x86"
)

// thread is a task on a CPU, with its registers.
type thread struct {
	f         *fakeMachine
	regs      x86.PtRegs
	cpu, task int
	done      bool
	err       error
	// executed counts instructions.
	executed int
}

// start prepares a call of a function with one argument.
func (f *fakeMachine) start(cpu, task int, fn x86.Addr, arg uint64) *thread {
	sp := stackBase.Add(int64((task+1)*stackSize - 64))
	return f.startAt(cpu, task, fn, arg, sp)
}

func (f *fakeMachine) startAt(cpu, task int, fn x86.Addr, arg uint64, sp x86.Addr) *thread {
	t := &thread{f: f, cpu: cpu, task: task}
	t.regs = x86.PtRegs{
		DI: arg, IP: uint64(fn), SP: uint64(sp), CS: x86.KernelCS, SS: x86.KernelDS,
		Flags: x86.FlagIF | x86.FlagFixed | x86.FlagZF | x86.FlagPF, OrigAX: ^uint64(0),
	}
	t.push(uint64(magic))
	return t
}

// call runs a function to its end on the current CPU and task, and returns ax.
func (f *fakeMachine) call(fn x86.Addr, arg uint64) (uint64, error) {
	t := f.start(f.cpu, f.task, fn, arg)
	t.run()
	return t.regs.AX, t.err
}

// nested calls a function from a handler that interrupted regs.
func (f *fakeMachine) nested(regs *x86.PtRegs, fn x86.Addr, arg uint64) uint64 {
	t := f.startAt(f.cpu, f.task, fn, arg, x86.Addr(regs.SP-512))
	t.run()
	if t.err != nil {
		panic(t.err)
	}
	return t.regs.AX
}

func (t *thread) run() {
	for range 100000 {
		if t.step(); t.done {
			return
		}
	}
	t.end(fmt.Errorf("runs away at %#x", t.regs.IP))
}

func (t *thread) end(err error) { t.done, t.err = true, err }

// step executes one instruction, and the trap it raises.
func (t *thread) step() {
	f := t.f
	cpu, task := f.cpu, f.task
	f.cpu, f.task = t.cpu, t.task
	defer func() { f.cpu, f.task = cpu, task }()
	if x86.Addr(t.regs.IP) == magic {
		t.end(nil)
		return
	}
	at := t.regs.IP
	tf := t.regs.Flags&x86.FlagTF != 0
	if flt := t.execute(); flt != nil {
		t.regs.IP = at
		t.faulted(flt)
		return
	}
	t.executed++
	if tf && !t.done && !f.traps.Debug(&t.regs) {
		t.end(fmt.Errorf("debug trap at %#x", t.regs.IP))
	}
}

// faulted is a page fault: kprobes first, then the exception table.
func (t *thread) faulted(flt error) {
	if t.f.traps.Fault(&t.regs, 14) {
		return
	}
	if to, ok := t.f.fixups[x86.Addr(t.regs.IP)]; ok {
		t.regs.IP = uint64(to)
		return
	}
	t.end(flt)
}

func (t *thread) push(v uint64) {
	t.regs.SP -= 8
	t.f.setWord(x86.Addr(t.regs.SP), v)
}

func (t *thread) pop() uint64 {
	v := t.f.word(x86.Addr(t.regs.SP))
	t.regs.SP += 8
	return v
}

func (t *thread) execute() (flt error) {
	defer func() {
		if v := recover(); v != nil {
			e, ok := v.(fault)
			if !ok {
				panic(v)
			}
			flt = e
		}
	}()
	if fn := t.f.callouts[x86.Addr(t.regs.IP)]; fn != nil {
		frame := x86.Addr(t.regs.DI)
		fn(frame, t.frame(frame))
		t.regs.IP = t.pop()
		return nil
	}
	c := t.f.mem(x86.Addr(t.regs.IP), 1)
	if c == nil {
		return fault{x86.Addr(t.regs.IP)}
	}
	code := t.f.mem(x86.Addr(t.regs.IP), 10)
	if t.f.fetch != nil {
		code = t.f.fetch(t.cpu, x86.Addr(t.regs.IP), code)
	}
	t.insn(code)
	return nil
}

func (t *thread) insn(c []byte) {
	r := &t.regs
	rel8 := func(n int) uint64 { return uint64(int64(int8(c[n]))) }
	rel32 := func(n int) uint64 { return uint64(int64(int32(binary.LittleEndian.Uint32(c[n:])))) }
	reg := func(n int) *uint64 { return r.Reg(n) }
	next := func(n uint64) { r.IP += n }
	switch {
	case c[0] == 0x90:
		next(1)
	case c[0] == 0xcc:
		next(1)
		if !t.f.traps.Int3(r) {
			t.end(fmt.Errorf("no probe has the int3 at %#x", r.IP-1))
		}
	case c[0]&0xf8 == 0x50:
		next(1)
		t.push(*reg(int(c[0] & 7)))
	case c[0]&0xf8 == 0x58:
		v := t.pop()
		*reg(int(c[0] & 7)) = v
		next(1)
	case c[0] == 0x41 && c[1]&0xf8 == 0x50:
		t.push(*reg(int(c[1]&7) + 8))
		next(2)
	case c[0] == 0x41 && c[1]&0xf8 == 0x58:
		*reg(int(c[1]&7) + 8) = t.pop()
		next(2)
	case c[0] == 0x68:
		t.push(rel32(1))
		next(5)
	case c[0] == 0x6a:
		t.push(rel8(1))
		next(2)
	case c[0] == 0x9c:
		t.push(r.Flags)
		next(1)
	case c[0] == 0x9d:
		r.Flags = t.pop()
		next(1)
	case c[0] == 0xfa:
		r.Flags &^= x86.FlagIF
		next(1)
	case c[0] == 0xfb:
		r.Flags |= x86.FlagIF
		next(1)
	case c[0] == 0xe8:
		t.push(r.IP + 5)
		next(5 + rel32(1))
	case c[0] == 0xe9:
		next(5 + rel32(1))
	case c[0] == 0xeb:
		next(2 + rel8(1))
	case c[0] == 0x74:
		next(2)
		if r.Flags&x86.FlagZF != 0 {
			next(rel8(1))
		}
	case c[0] == 0xc3:
		r.IP = t.pop()
	case c[0] == 0xff && c[1] == 0xd0:
		t.push(r.IP + 2)
		r.IP = r.AX
	default:
		t.wide(c, rel8, rel32)
	}
}

// wide executes the instructions of more than two bytes of opcode.
func (t *thread) wide(c []byte, rel8, rel32 func(int) uint64) {
	r := &t.regs
	switch string(c[:3]) {
	case "\x0f\x1f\x44", "\x66\x0f\x1f": // nop of 5 bytes, sealed endbr
		r.IP += map[byte]uint64{0x0f: 5, 0x66: 4}[c[0]]
	case "\xf3\x0f\x1e": // endbr64
		r.IP += 4
	case "\x0f\x0d\x0c": // prefetchw (%rsp)
		r.IP += 4
	case "\xff\x74\x24": // push disp8(%rsp)
		t.push(t.f.word(x86.Addr(r.SP + rel8(3))))
		r.IP += 4
	case "\x8f\x44\x24": // pop disp8(%rsp): the address is that after the pop
		v := t.pop()
		t.f.setWord(x86.Addr(r.SP+rel8(3)), v)
		r.IP += 4
	case "\x48\x83\x04": // add $imm8,(%rsp)
		t.f.setWord(x86.Addr(r.SP), t.f.word(x86.Addr(r.SP))+rel8(4))
		r.IP += 5
	case "\x48\x89\xf8": // mov %rdi,%rax
		r.AX = r.DI
		r.IP += 3
	case "\x48\x89\xe7": // mov %rsp,%rdi
		r.DI = r.SP
		r.IP += 3
	case "\x48\x31\xc0": // xor %rax,%rax
		r.AX = 0
		r.IP += 3
	case "\x48\x85\xff": // test %rdi,%rdi
		r.Flags &^= x86.FlagZF
		if r.DI == 0 {
			r.Flags |= x86.FlagZF
		}
		r.IP += 3
	case "\x48\x83\xc0": // add $imm8,%rax
		r.AX += rel8(3)
		r.IP += 4
	case "\x48\x83\xc4": // add $imm8,%rsp
		r.SP += rel8(3)
		r.IP += 4
	case "\x48\x83\xec": // sub $imm8,%rsp
		r.SP -= rel8(3)
		r.IP += 4
	case "\x48\x83\xef": // sub $imm8,%rdi
		r.DI -= rel8(3)
		r.IP += 4
	case "\x48\x8b\x05": // mov off(%rip),%rax
		r.AX = t.f.word(x86.Addr(r.IP + 7 + rel32(3)))
		r.IP += 7
	case "\x48\x8b\x07": // mov (%rdi),%rax
		r.AX = t.f.word(x86.Addr(r.DI))
		r.IP += 3
	default:
		if !t.detourInsn(c, rel32) {
			t.end(fmt.Errorf("no such instruction at %#x: % x", r.IP, c))
		}
	}
}

// frame is a register frame in guest memory, to be changed in place.
func (t *thread) frame(at x86.Addr) *x86.PtRegs {
	return ptRegsAt(t.f.mem(at, x86.PtRegsSize))
}
