package optimized

import (
	"encoding/binary"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab"
	"kprobelab/x86"
)

// oddHosts are the functions that a random program is written over: without and with a fentry site,
// the one whose first instruction has an exception-table entry, and the function that handlers
// call.
var oddHosts = []string{
	"form_len_10", "form_len_11", "form_len_12", "fib", "ackermann", "work_item", "opt_no_extable", "gcd",
}

const (
	faulting = 6 // its fixup is fixupAt bytes into it
	helper   = 7
	fixupAt  = 12
	lost     = x86.Addr(1) // where the model cannot follow
)

// odd is a machine with a random program on it, and a model of the kernel's list of
// pending returns that runs the same program by its operations.
type odd struct {
	*kprobelab.Lab
	rt      *rapid.T
	entries []x86.Addr
	text    x86.Addr // for code that does not fit into a host
	data    x86.Addr // for the rsp and rip to return to, which each call saves
	next    x86.Addr
	ops     map[x86.Addr]func(*oddModel) x86.Addr
	free    []int // hosts that are not used yet
	used    []int
	probes  map[int][]*oddProbe // by host, in the order of registration
	events  []string
	log     string
}

func (o *odd) emit(b ...byte) {
	require.NoError(o.rt, o.Machine.PokeText(o.next, b))
	o.next = o.next.Add(int64(len(b)))
}

func (o *odd) branch(op byte, to x86.Addr) {
	o.emit(binary.LittleEndian.AppendUint32([]byte{op}, uint32(to-o.next-5))...)
}

// op sets the effect of the instructions that are emitted next.
func (o *odd) op(do func(m *oddModel) x86.Addr) { o.ops[o.next] = do }

// mix makes rbx depend on the code that runs, and on its order.
func (o *odd) mix() {
	id := byte(rapid.IntRange(1, 100).Draw(o.rt, "id"))
	after := o.next + 8
	o.op(func(m *oddModel) x86.Addr { m.rbx = m.rbx*31 + uint64(id); return after })
	o.emit(0x48, 0x6b, 0xdb, 31, 0x48, 0x83, 0xc3, id) // imul $31,%rbx,%rbx; add $id,%rbx
}

func (o *odd) ret() {
	o.op(func(m *oddModel) x86.Addr {
		to, ok := m.stack[m.sp]
		if m.sp++; !ok {
			return lost
		}
		return to
	})
	o.emit(0x48, 0x89, 0xd8, 0xc3) // mov %rbx,%rax; ret
}

// call saves rsp and the place after the call, as setjmp does, and calls.
func (o *odd) call(from, to int) {
	after, entry := o.next+17, o.entries[to]
	o.op(func(m *oddModel) x86.Addr {
		m.saved[from] = [2]int{m.sp, int(after)}
		m.sp--
		m.stack[m.sp] = after
		return entry
	})
	off := byte(16 * from)
	o.emit(0x49, 0x89, 0x65, off) // mov %rsp,off(%r13)
	o.emit(binary.LittleEndian.AppendUint32([]byte{0x49, 0xc7, 0x45, off + 8}, uint32(after))...)
	o.branch(0xe8, entry)
}

func (o *odd) longjmp(to int) {
	o.op(func(m *oddModel) x86.Addr {
		s, ok := m.saved[to]
		if !ok || s[0] < m.sp {
			return lost // a frame that is gone
		}
		m.sp = s[0]
		return x86.Addr(s[1])
	})
	off := byte(16 * to)
	o.emit(0x49, 0x8b, 0x65, off, 0x41, 0xff, 0x65, off+8) // mov off(%r13),%rsp; jmp *off+8(%r13)
}

// take returns an unused host, -1 if there is none.
func (o *odd) take() int {
	if len(o.free) == 0 {
		return -1
	}
	n := rapid.IntRange(0, len(o.free)-1).Draw(o.rt, "host")
	host := o.free[n]
	o.free = append(o.free[:n:n], o.free[n+1:]...)
	o.used = append(o.used, host)
	return host
}

// function writes a function and the functions that it calls. outer are the frames to which a
// longjmp in it may go.
func (o *odd) function(host int, outer []int) {
	entry, here := o.entries[host], o.text
	o.text += 256
	skip := int64(5)
	if host == faulting {
		skip = 3 // mov (%rdi),%rax stays
	}
	o.next = entry
	fixup := here + 128
	o.op(func(m *oddModel) x86.Addr {
		if to := m.enter(host); to != 0 {
			return to
		}
		if host == faulting && m.faults {
			m.seen["fixed up"]++
			return fixup
		}
		return here
	})
	var first [5]byte
	require.NoError(o.rt, o.Machine.ReadMem(entry, first[:]))
	if host != faulting && first[0] != 0x0f && first[0] != 0xe8 {
		o.emit(0xb9, byte(host), 0, 0, 0) // mov $host,%ecx
	}
	o.next = entry.Add(skip)
	o.branch(0xe9, here)
	o.next = here
	o.body(host, outer)
	if host == faulting {
		o.next = entry + fixupAt
		o.branch(0xe9, fixup)
		o.next = fixup
		o.mix()
		o.end(outer, false)
	}
}

func (o *odd) body(host int, outer []int) {
	o.mix()
	for range rapid.IntRange(0, 2).Draw(o.rt, "calls") {
		if to := o.take(); to >= 0 {
			at := o.next
			o.function(to, append(outer[:len(outer):len(outer)], host))
			o.next = at
			for range rapid.IntRange(1, 2).Draw(o.rt, "times") {
				o.call(host, to)
				o.mix()
			}
		}
	}
	o.end(outer, true)
}

// end is a return, a longjmp to one of three outer frames, or a tail call.
func (o *odd) end(outer []int, tail bool) {
	switch rapid.IntRange(0, 3).Draw(o.rt, "end") {
	case 0:
		if n := len(outer); n > 0 {
			o.longjmp(outer[rapid.IntRange(max(0, n-3), n-1).Draw(o.rt, "to")])
			return
		}
	case 1, 2:
		if to := o.take(); tail && to >= 0 {
			at := o.next
			o.function(to, outer)
			o.next = at
			entry := o.entries[to]
			o.op(func(*oddModel) x86.Addr { return entry })
			o.branch(0xe9, entry)
			return
		}
	}
	o.ret()
}

// newOdd writes a random program, and gives where it starts and where handlers may
// redirect to.
func newOdd(rt *rapid.T, l *kprobelab.Lab) (o *odd, start, alt x86.Addr) {
	o = &odd{Lab: l, rt: rt, ops: map[x86.Addr]func(*oddModel) x86.Addr{}, probes: map[int][]*oddProbe{}}
	for n, name := range oddHosts {
		o.entries = append(o.entries, l.Image.Lookup(name)[0].Addr)
		if n != helper {
			o.free = append(o.free, n)
		}
	}
	var err error
	o.text, err = l.Machine.AllocExec(4096, "odd")
	require.NoError(rt, err)
	o.data, err = l.Machine.Alloc(256)
	require.NoError(rt, err)
	start, o.text = o.text, o.text+256
	first := o.take()
	o.function(first, []int{helper})
	o.next = start
	body := start + 6
	o.op(func(*oddModel) x86.Addr { return body })
	o.emit(0x49, 0x89, 0xf5, 0x48, 0x89, 0xd3) // mov %rsi,%r13; mov %rdx,%rbx
	o.call(helper, first)
	o.ret()
	alt = o.text
	o.next = alt
	o.mix()
	o.ret()
	o.next = alt + 128
	o.emit(0x48, 0x89, 0xf8, 0xc3) // mov %rdi,%rax; ret
	o.next = o.entries[helper]
	o.emit(0xb9, 1, 0, 0, 0) // mov $1,%ecx
	o.branch(0xe9, alt+128)
	l.Kprobes.OnLog(func(line string) { o.log += line + "\n" })
	return o, start, alt
}
