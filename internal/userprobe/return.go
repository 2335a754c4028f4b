package userprobe

import (
	"encoding/binary"
	"fmt"

	"kprobelab/internal/process"
	"kprobelab/x86"
)

// maxDepth is the most returns of a task that can be probed at once (MAX_URETPROBE_DEPTH).
const maxDepth = 64

// instance is a call whose return is probed (struct return_instance).
type instance struct {
	u        *uprobe
	function x86.Addr
	stack    uint64 // the stack pointer at the entry
	back     uint64 // the return address
	// chained: the return address was the trampoline's already, by a tail call.
	chained bool
}

// Times at which the stack pointer shows whether an instance's frame is alive.
const (
	atCall = iota
	atChainCall
	atReturn
)

// alive reports whether the frame of a call is on the stack still
// (arch_uretprobe_is_alive).
func (i *instance) alive(when int, regs *x86.PtRegs) bool {
	if when == atCall {
		return regs.SP < i.stack
	}
	return regs.SP <= i.stack
}

func (t *task) last() *instance {
	if n := len(t.chain); n > 0 {
		return t.chain[n-1]
	}
	return nil
}

// hijack puts the trampoline in place of the return address (prepare_uretprobe).
func (k *Probes) hijack(u *uprobe, regs *x86.PtRegs) {
	t := k.task()
	missed := func() {
		for _, c := range u.consumers {
			if c.Returned != nil && c.wants(k.p.Space) {
				c.Missed++
			}
		}
		k.tell(EventMissed, u, x86.Addr(regs.IP), regs)
	}
	area := k.xol()
	if area == 0 {
		missed()
		return
	}
	if len(t.chain) >= maxDepth {
		missed()
		k.OnLog(fmt.Sprintf("uprobe: omit uretprobe due to nestedness limit pid/tgid=%d/%d", k.p.TID(), k.p.PID()))
		return
	}
	var b [8]byte
	if k.p.Read(x86.Addr(regs.SP), b[:]) != nil {
		missed()
		return
	}
	back := binary.LittleEndian.Uint64(b[:])
	chained := back == uint64(area)
	if !chained && k.p.Write(x86.Addr(regs.SP), binary.LittleEndian.AppendUint64(nil, uint64(area))) != nil {
		missed()
		return
	}
	when := atCall
	if chained {
		when = atChainCall
	}
	for i := t.last(); i != nil && !i.alive(when, regs); i = t.last() {
		t.chain = t.chain[:len(t.chain)-1]
		k.Stats.Unwound++
		k.tell(EventUnwound, i.u, i.function, regs)
	}
	if chained {
		i := t.last()
		if i == nil {
			k.OnLog(fmt.Sprintf("uprobe: %s:%d failed to handle tail call", k.p.Comm(), k.p.TID()))
			missed()
			return
		}
		back = i.back
	}
	t.chain = append(t.chain, &instance{u, x86.Addr(regs.IP), regs.SP, back, chained})
	k.tell(EventInstance, u, x86.Addr(regs.IP), regs)
}

// returned is the trampoline: it calls the handlers of the function that has returned, and
// goes on where it would have (uprobe_handle_trampoline). It fails where no call is known.
func (k *Probes) returned(regs *x86.PtRegs) bool {
	t := k.task()
	if len(t.chain) == 0 {
		return false
	}
	k.tell(EventReturn, t.last().u, t.last().function, regs)
	for {
		// Calls of a chain return together. Either the next chain is alive, or longjmp has left
		// this one.
		n := len(t.chain) - 1
		for n > 0 && t.chain[n].chained {
			n--
		}
		valid := n == 0 || t.chain[n-1].alive(atReturn, regs)
		ended := t.chain[n:]
		regs.IP = ended[len(ended)-1].back
		for j := len(ended) - 1; j >= 0; j-- {
			if !valid {
				k.Stats.Unwound++
				k.tell(EventUnwound, ended[j].u, ended[j].function, regs)
				continue
			}
			k.Stats.Returns++
			for _, c := range ended[j].u.consumers {
				if c.Returned != nil && c.wants(k.p.Space) {
					c.Returns++
					k.tellHandler(EventReturnHandler, ended[j].u, c, ended[j].function, regs)
					c.Returned(ended[j].function, regs)
				}
			}
		}
		t.chain = t.chain[:n]
		if valid {
			k.tell(EventReturned, ended[0].u, ended[0].function, regs)
			return true
		}
	}
}

// returnCall is the trampoline of 6.11 and later: push %rax; push %rcx; push %r11;
// mov $335,%rax; syscall; pop %r11; pop %rcx; ret.
var returnCall = []byte{0x50, 0x51, 0x41, 0x53, 0x48, 0xc7, 0xc0, 0x4f, 1, 0, 0, 0x0f, 0x05, 0x41, 0x5b, 0x59, 0xc3}

const (
	callUretprobe = 335
	// returnCallAt is the offset of its syscall instruction.
	returnCallAt = 11
)

// Syscall implements process.Tracer: uprobe and uretprobe are made by their trampolines alone.
func (k *Probes) Syscall(regs *x86.PtRegs) bool {
	if how := k.optimization(); how != nil && regs.AX == callUprobe {
		k.called(how, regs)
		return true
	}
	if regs.AX != callUretprobe || !k.c.Uprobes.ReturnCall {
		return false
	}
	area := k.of(k.p.Space).area
	if area == 0 || x86.Addr(regs.IP) != area+returnCallAt {
		k.p.Force(process.SIGILL)
		return true
	}
	var b [24]byte
	if k.p.Read(x86.Addr(regs.SP), b[:]) != nil {
		k.p.Force(process.SIGILL)
		return true
	}
	next := regs.IP + 2
	word := func(n int) uint64 { return binary.LittleEndian.Uint64(b[8*n:]) }
	regs.R11, regs.CX, regs.AX = word(0), word(1), word(2)
	regs.SP += 24
	regs.IP = uint64(area)
	if !k.returned(regs) {
		k.p.Force(process.SIGILL)
		return true
	}
	regs.SP -= 24
	out := binary.LittleEndian.AppendUint64(nil, regs.R11)
	out = binary.LittleEndian.AppendUint64(out, regs.CX)
	out = binary.LittleEndian.AppendUint64(out, regs.IP) // ret takes it
	if k.p.Write(x86.Addr(regs.SP), out) != nil {
		k.p.Force(process.SIGILL)
		return true
	}
	regs.IP, regs.CX, regs.R11 = next, next, regs.Flags
	return true
}
