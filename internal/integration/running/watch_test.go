package running

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/dumps"
	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/machine"
	"kprobelab/watch"
	"kprobelab/x86"
)

// Two pages of a file in memory, at two addresses of a program; it accesses only the middle
// of them, around the border of the pages.
const (
	firstMap  = 0x10000000
	secondMap = 0x20000000
	twoPages  = 2 * machine.PageSize
	middle    = machine.PageSize - 48
	wide      = 96
	textAt    = 0x400000
)

// access is a memory access of one instruction of the program, or of the kernel for it.
type access struct {
	ip       uint64 // afterwards; 0: the kernel's
	at       uint64
	n        int
	kinds    uint32
	becomes  []byte // of w
	physical bool   // it goes to the pages by the kernel's own address; at is the offset
}

// accesses is a program of random accesses, with their list.
type accesses struct {
	*rand.Rand
	code  bytes.Buffer
	model [twoPages]byte
	list  [][]access // of each instruction, those at once
	marks []uint64   // nops after the kernel's accesses
	xmm   []byte
}

func (p *accesses) emit(b ...byte) { p.code.Write(b) }

func (p *accesses) ip() uint64 { return textAt + elfHeader + uint64(p.code.Len()) }

// load puts a number into a register, by the opcode of movabs.
func (p *accesses) load(opcode byte, v uint64) {
	p.emit(0x48, opcode)
	p.code.Write(binary.LittleEndian.AppendUint64(nil, v))
}

const (
	toAX, toDX, toSP, toSI, toDI = 0xb8, 0xba, 0xbc, 0xbe, 0xbf
)

func (p *accesses) call(nr uint64, args ...uint64) {
	for i, v := range args {
		switch i {
		case 3:
			p.emit(0x49, 0xba) // r10
			p.code.Write(binary.LittleEndian.AppendUint64(nil, v))
		case 4:
			p.emit(0x4d, 0x89, 0xe0) // mov r8, r12
		case 5:
			p.emit(0x45, 0x31, 0xc9) // xor r9d, r9d
		default:
			p.load([]byte{toDI, toSI, toDX}[i], v)
		}
	}
	p.load(toAX, nr)
	p.emit(0x0f, 0x05)
}

// callFile is a call with the file as its first argument.
func (p *accesses) callFile(nr, buf, n, off uint64) {
	p.load(toSI, buf)
	p.load(toDX, n)
	p.emit(0x49, 0xba)
	p.code.Write(binary.LittleEndian.AppendUint64(nil, off))
	p.load(toAX, nr)
	p.emit(0x4c, 0x89, 0xe7) // mov rdi, r12
	p.emit(0x0f, 0x05)
	p.marks = append(p.marks, p.ip())
	p.emit(0x90)
}

// System calls.
const (
	sysMmap, sysPread, sysPwrite, sysExit, sysFtruncate, sysMemfd = 9, 17, 18, 60, 77, 319
)

// offset returns the offset of n bytes in the middle.
func (p *accesses) offset(n int) uint64 { return uint64(middle + p.IntN(wide-n)) }

func (p *accesses) mapping() uint64 { return []uint64{firstMap, secondMap}[p.IntN(2)] }

func (p *accesses) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(p.Uint32())
	}
	return b
}

func (p *accesses) at(off uint64, n int) []byte { return p.model[off : off+uint64(n)] }

// did records the accesses of the instruction that ends here.
func (p *accesses) did(list ...access) {
	for i := range list {
		if list[i].kinds&machine.WatchWrite != 0 {
			copy(p.model[list[i].at%twoPages:], list[i].becomes)
		}
		if list[i].ip == 0 && !list[i].physical && list[i].at < 1<<47 && list[i].n != 0 {
			list[i].ip = p.ip()
		}
	}
	p.list = append(p.list, list)
}

const (
	rd = machine.WatchRead
	wr = machine.WatchWrite
)

// one adds a random instruction.
func (p *accesses) one() {
	size := p.IntN(4)
	n := 1 << size
	off, base := p.offset(n), p.mapping()
	sized := func(opcode byte) []byte { // of a byte, and of more
		return [][]byte{{opcode, 0x07}, {0x66, opcode + 1, 0x07}, {opcode + 1, 0x07}, {0x48, opcode + 1, 0x07}}[size]
	}
	b := p.bytes(8)
	v := binary.LittleEndian.Uint64(b)
	sum := func() []byte {
		var old [8]byte
		copy(old[:], p.at(off, n))
		return binary.LittleEndian.AppendUint64(nil, binary.LittleEndian.Uint64(old[:])+v)[:n]
	}
	switch p.IntN(9) {
	case 0:
		p.load(toDI, base+off)
		p.load(toAX, v)
		p.emit(sized(0x88)...)
		p.did(access{at: base + off, n: n, kinds: wr, becomes: b[:n]})
	case 1:
		p.load(toDI, base+off)
		p.emit(sized(0x8a)...)
		p.did(access{at: base + off, n: n, kinds: rd})
	case 2:
		p.load(toDI, base+off)
		p.load(toAX, v)
		p.emit(sized(0x00)...)
		p.did(access{at: base + off, n: n, kinds: rd | wr, becomes: sum()})
	case 3:
		size, n = 3, 8
		off = p.offset(n)
		p.load(toDI, base+off)
		p.load(toAX, v)
		p.emit(0xf0, 0x48, 0x0f, 0xc1, 0x07) // lock xadd
		p.did(access{at: base + off, n: n, kinds: rd | wr, becomes: sum()})
	case 4: // movups, and back
		off = p.offset(16)
		p.load(toDI, base+off)
		p.emit(0x0f, 0x10, 0x07)
		p.xmm = slices.Clone(p.at(off, 16))
		p.did(access{at: base + off, n: 16, kinds: rd})
		off = p.offset(16)
		base = p.mapping()
		p.load(toDI, base+off)
		p.emit(0x0f, 0x11, 0x07)
		p.did(access{at: base + off, n: 16, kinds: wr, becomes: p.xmm})
	case 5: // push and pop
		off = p.offset(8)
		p.load(toSP, base+off+8)
		p.load(toAX, v)
		p.emit(0x50)
		p.did(access{at: base + off, n: 8, kinds: wr, becomes: b})
		p.emit(0x58)
		p.did(access{at: base + off, n: 8, kinds: rd})
	case 6: // rep movsb, from one mapping to the other
		n = 1 + p.IntN(12)
		from, to := p.offset(n), p.offset(n)
		src := p.mapping()
		p.load(toSI, src+from)
		p.load(toDI, base+to)
		p.emit(0xb9, byte(n), 0, 0, 0)
		begins := p.ip()
		p.emit(0xf3, 0xa4)
		for i := range uint64(n) {
			ip := begins
			if i == uint64(n)-1 {
				ip = p.ip()
			}
			p.did(access{ip: ip, at: src + from + i, n: 1, kinds: rd}, access{ip: ip, at: base + to + i, n: 1, kinds: wr, becomes: slices.Clone(p.at(from+i, 1))})
		}
	case 7: // the kernel writes the pages by its own address
		n = 1 + p.IntN(24)
		off = p.offset(n)
		const text = elfHeader // of the program, as data
		p.callFile(sysPwrite, textAt+text, uint64(n), off)
		p.did(access{at: off, n: n, kinds: wr, becomes: p.code.Bytes()[:n], physical: true})
	case 8: // and reads them so, and writes them by the user's
		n = 1 + p.IntN(24)
		from, to := uint64(middle+p.IntN(wide/2-n)), uint64(middle+wide/2+p.IntN(wide/2-n))
		p.callFile(sysPread, base+to, uint64(n), from)
		p.did(access{at: from, n: n, kinds: rd, physical: true}, access{ip: ^uint64(0), at: base + to, n: n, kinds: wr, becomes: slices.Clone(p.at(from, n))})
	}
}

// The program's file begins with its header and one program header.
const elfHeader = 64 + 56

func (p *accesses) file() []byte {
	size := uint64(elfHeader + p.code.Len())
	le := binary.LittleEndian
	f := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	f = le.AppendUint16(f, 2)    // ET_EXEC
	f = le.AppendUint16(f, 0x3e) // x86-64
	f = le.AppendUint32(f, 1)
	f = le.AppendUint64(f, textAt+elfHeader)
	f = le.AppendUint64(f, 64)
	f = le.AppendUint64(f, 0)
	f = le.AppendUint32(f, 0)
	for _, v := range []uint16{64, 56, 1, 64, 0, 0} {
		f = le.AppendUint16(f, v)
	}
	f = le.AppendUint32(f, 1) // PT_LOAD
	f = le.AppendUint32(f, 5) // readable and executable
	for _, v := range []uint64{0, textAt, textAt, size, size, machine.PageSize} {
		f = le.AppendUint64(f, v)
	}
	return append(f, p.code.Bytes()...)
}

// newAccesses is a program of n instructions that access memory; begins and ends are
// the addresses of a nop before and after them.
func newAccesses(r *rand.Rand, n int) (p *accesses, begins, ends uint64) {
	p = &accesses{Rand: r}
	name := textAt + uint64(elfHeader) // an empty string: the code begins with a zero
	p.emit(0x00, 0xc0)                 // add al, al
	p.call(sysMemfd, name, 0)
	p.emit(0x41, 0x89, 0xc4) // mov r12d, eax
	p.callFile(sysFtruncate, twoPages, 0, 0)
	for _, at := range []uint64{firstMap, secondMap} {
		const readWrite, sharedFixed = 3, 0x11
		p.call(sysMmap, at, twoPages, readWrite, sharedFixed, 0, 0)
		for page := range uint64(2) { // so that it is there
			p.load(toDI, at+page*machine.PageSize)
			p.emit(0xf6, 0x17, 0xf6, 0x17) // not (rdi), twice
		}
	}
	p.marks = nil
	begins = p.ip()
	p.emit(0x90)
	for range n {
		p.one()
	}
	ends = p.ip()
	p.emit(0x90)
	p.call(sysExit, 0)
	return p, begins, ends
}

// mark is in the place of a watchpoint's number where the kernel has done its part.
const mark = -1

// told is a reported hit of a watchpoint.
type told struct {
	watch    int
	ip       uint64
	kinds    uint32
	old, new uint64
}

// places are the direct-map addresses of the two pages: each byte is accessed by these, too.
type places struct{ direct [2]uint64 }

// overlap reports whether an access touches a watchpoint's bytes.
func (l *places) overlap(w *watch.Watchpoint, a access) bool {
	for i := range uint64(a.n) {
		at := a.at + i
		if a.physical {
			at = l.direct[at/machine.PageSize] + at%machine.PageSize
		}
		if at-uint64(w.Addr) < uint64(w.Len) {
			return true
		}
	}
	return false
}

// kinds returns the watched kinds among the accesses to a watchpoint.
func (l *places) kinds(w *watch.Watchpoint, at []access) (kinds uint32) {
	for _, a := range at {
		if l.overlap(w, a) {
			kinds |= a.kinds & w.Kinds
		}
	}
	return kinds
}

// value returns the value of a watchpoint's bytes.
func (l *places) value(w *watch.Watchpoint, mem []byte) uint64 {
	off := uint64(w.Addr) % twoPages
	for page, at := range l.direct {
		if uint64(w.Addr)-at < machine.PageSize {
			off = uint64(page)*machine.PageSize + uint64(w.Addr) - at
		}
	}
	var b [8]byte
	copy(b[:w.Len], mem[off:])
	return binary.LittleEndian.Uint64(b[:])
}

// TestWatchpointsOnABootedKernel: random accesses of a program to two pages that it has
// at two addresses and the kernel at a third, and the kernel's own for it, hit the
// watchpoints that they are to hit, and no others.
func TestWatchpointsOnABootedKernel(t *testing.T) {
	for _, name := range dumps.Running {
		t.Run(name, func(t *testing.T) {
			runs.File(t, name)
			k := boot(t, name)
			for range 2 {
				seed := rand.Uint64()
				t.Logf("seed %d", seed)
				k.restore()
				k.accesses(rand.New(rand.NewPCG(seed, 1)))
			}
		})
	}
}

func (k *kernel) accesses(r *rand.Rand) {
	t := k.t
	p, begins, ends := newAccesses(r, 200)
	k.put("/accesses", p.file())
	var (
		pl   places
		list []*watch.Watchpoint
		hits []told
	)
	add := func(at uint64) {
		n := len(list)
		w := &watch.Watchpoint{Addr: x86.Addr(at), Len: 1 << r.IntN(4), Kinds: []uint32{rd, wr, rd | wr}[r.IntN(3)], CPU: watch.Any, Task: watch.Any,
			Handler: func(_ *watch.Watchpoint, h *watch.Hit, regs *x86.PtRegs) {
				hits = append(hits, told{n, regs.IP, h.Kinds, h.Old, h.New})
			}}
		list = append(list, w)
		require.NoError(t, k.Watches.Add(w))
	}
	var marks []*watch.Watchpoint
	started := &watch.Watchpoint{Addr: x86.Addr(begins), Len: 8, Kinds: machine.WatchExec, CPU: watch.Any, Task: watch.Any}
	started.Handler = func(*watch.Watchpoint, *watch.Hit, *x86.PtRegs) {
		for page := range pl.direct {
			at, err := k.Machine.DirectMapped(x86.Addr(firstMap + page*machine.PageSize))
			require.NoError(t, err)
			pl.direct[page] = uint64(at)
		}
		for range 24 {
			add(p.mapping() + p.offset(8))
			add(pl.direct[0] + machine.PageSize - 8 - uint64(r.IntN(40)))
			add(pl.direct[1] + uint64(r.IntN(40)))
		}
		for _, at := range p.marks {
			w := &watch.Watchpoint{Addr: x86.Addr(at), Len: 8, Kinds: machine.WatchExec, CPU: watch.Any, Task: watch.Any}
			w.Handler = func(*watch.Watchpoint, *watch.Hit, *x86.PtRegs) { hits = append(hits, told{watch: mark}) }
			marks = append(marks, w)
			require.NoError(t, k.Watches.Add(w))
		}
	}
	var after [twoPages]byte
	ended := &watch.Watchpoint{Addr: x86.Addr(ends), Len: 8, Kinds: machine.WatchExec, CPU: watch.Any, Task: watch.Any}
	ended.Handler = func(*watch.Watchpoint, *watch.Hit, *x86.PtRegs) {
		require.NoError(t, k.Machine.ReadMem(firstMap, after[:]))
		for _, w := range append(marks, list...) {
			require.NoError(t, k.Watches.Remove(w))
		}
	}
	require.NoError(t, k.Watches.Add(started))
	require.NoError(t, k.Watches.Add(ended))
	require.Zero(t, k.program("/accesses").code)
	require.NoError(t, k.Watches.Remove(started))
	require.NoError(t, k.Watches.Remove(ended))
	require.EqualValues(t, 1, started.Hits)
	require.Equal(t, p.model[:], after[:])
	pl.compare(t, p, list, hits)
}

// compare compares the reported hits with the expected ones.
func (l *places) compare(t testing.TB, p *accesses, list []*watch.Watchpoint, hits []told) {
	var mem [twoPages]byte
	for n, at := range p.list {
		before := mem
		for _, a := range at {
			if a.kinds&wr != 0 {
				copy(mem[a.at%twoPages:], a.becomes)
			}
		}
		if at[0].physical {
			hits = l.kernels(t, at, list, hits, before[:], mem[:])
			continue
		}
		var want []told
		for i, w := range list {
			if kinds := l.kinds(w, at); kinds != 0 {
				want = append(want, told{i, at[0].ip, kinds, l.value(w, before[:]), l.value(w, mem[:])})
			}
		}
		got := hits[:min(len(want), len(hits))]
		slices.SortFunc(got, func(a, b told) int { return a.watch - b.watch })
		require.Equal(t, want, append([]told(nil), got...), "instruction %d", n)
		hits = hits[len(got):]
	}
	require.Empty(t, hits)
}

// kernels compares the hits of a copy by the kernel, in as many instructions as it likes.
func (l *places) kernels(t testing.TB, at []access, list []*watch.Watchpoint, hits []told, before, after []byte) []told {
	n := 0
	for n < len(hits) && hits[n].watch != mark {
		n++
	}
	require.Less(t, n, len(hits))
	mine := hits[:n]
	for i, w := range list {
		want, got := l.kinds(w, at), uint32(0)
		v := l.value(w, before)
		for _, h := range mine {
			if h.watch != i {
				continue
			}
			got |= h.kinds
			if h.kinds&wr != 0 {
				require.Equal(t, v, h.old, "%v", h)
				v = h.new
			}
		}
		require.Equal(t, want, got, "watchpoint %d at %s of %d bytes; what the kernel did: %+v; hits: %x", i, w.Addr, w.Len, at, mine)
		if want&wr != 0 {
			require.Equal(t, l.value(w, after), v)
		}
	}
	return hits[n+1:]
}

// TestWritesOfTheKernelsOwn: the kernel's own writes to a task's stack, which it has at two
// addresses, to the task and to a processor's own memory, among them the frames of exceptions and
// interrupts. Each write that changes a word is reported, with the value that the write before has
// left there.
func TestWritesOfTheKernelsOwn(t *testing.T) {
	for _, name := range dumps.Running {
		t.Run(name, func(t *testing.T) {
			runs.File(t, name)
			k := boot(t, name)
			k.ownWrites(rand.New(rand.NewPCG(1, 1)))
		})
	}
}

func (k *kernel) ownWrites(r *rand.Rand) {
	t := k.t
	p, begins, ends := newAccesses(r, 100)
	k.put("/accesses", p.file())
	var (
		now  = map[x86.Addr]uint64{} // of each word, by its address in the direct map
		list []*watch.Watchpoint
		hits = map[string]int{}
	)
	word := func(at x86.Addr) uint64 {
		var b [8]byte
		require.NoError(t, k.Machine.ReadMem(at, b[:]))
		return binary.LittleEndian.Uint64(b[:])
	}
	add := func(what string, at, direct x86.Addr) {
		w := &watch.Watchpoint{Addr: at, Len: 8, Kinds: wr, CPU: watch.Any, Task: watch.Any}
		w.Handler = func(_ *watch.Watchpoint, h *watch.Hit, regs *x86.PtRegs) {
			require.Equal(t, now[direct], h.Old, "%s at %s, at %s", what, at, k.Machine.Symbolize(x86.Addr(regs.IP)))
			now[direct] = h.New
			hits[what]++
		}
		list = append(list, w)
		require.NoError(t, k.Watches.Add(w))
	}
	all := func(what string, at x86.Addr, size uint64) {
		for ; size > 0; at, size = at+8, size-8 {
			direct, err := k.Machine.DirectMapped(at)
			require.NoError(t, err, "%s at %s", what, at)
			now[direct] = word(direct)
			add(what, at, direct)
			if direct != at {
				add(what+", mapped directly", direct, direct)
			}
		}
	}
	task, ok := k.Image.Types().Struct("task_struct")
	require.True(t, ok)
	stack, ok := task.Member("stack")
	require.True(t, ok)
	current := k.Image.Lookup("current_task")
	if len(current) == 0 {
		current = k.Image.Lookup("pcpu_hot")
	}
	tss := k.Image.Lookup("cpu_tss_rw")
	require.NotEmpty(t, current)
	require.NotEmpty(t, tss)
	onExecution := func(at uint64, handler func()) *watch.Watchpoint {
		w := &watch.Watchpoint{Addr: x86.Addr(at), Len: 8, Kinds: machine.WatchExec, CPU: watch.Any, Task: watch.Any}
		w.Handler = func(*watch.Watchpoint, *watch.Hit, *x86.PtRegs) { handler() }
		require.NoError(t, k.Watches.Add(w))
		return w
	}
	// In the kernel, whose page tables have all of it.
	open := k.Image.Lookup("__x64_sys_pwrite64")
	require.NotEmpty(t, open)
	var entered, left *watch.Watchpoint
	started := onExecution(begins, func() {
		entered = onExecution(uint64(open[0].Addr), func() {
			if len(list) > 0 {
				return
			}
			cpu := k.Machine.GSBase(k.Machine.CPU())
			self := x86.Addr(word(cpu + current[0].Addr))
			all("the stack", x86.Addr(word(self.Add(int64(stack.Offset/8)))), machine.ThreadSize)
			all("the task", self, 256)
			all("the processor's", cpu+tss[0].Addr, 96)
		})
	})
	finished := onExecution(ends, func() {
		left = onExecution(uint64(k.Image.Lookup("__x64_sys_exit")[0].Addr), func() {
			for at, v := range now {
				require.Equal(t, v, word(at), "%s", at)
			}
			for _, w := range list {
				require.NoError(t, k.Watches.Remove(w))
			}
			list = nil
		})
	})
	require.Zero(t, k.program("/accesses").code)
	for _, w := range []*watch.Watchpoint{started, entered, finished, left} {
		require.NotNil(t, w)
		require.NoError(t, k.Watches.Remove(w))
	}
	for _, what := range []string{"the stack", "the task", "the processor's"} {
		require.NotZero(t, hits[what], what)
	}
	require.Zero(t, hits["the stack, mapped directly"]) // the kernel does not write it by that address
}

// TestAFaultingAccessHitsOnce: the first write to a page faults, has made no access, and is made
// again: one hit, after it. What the kernel does to get the page is by other addresses.
func TestAFaultingAccessHitsOnce(t *testing.T) {
	runs.File(t, "6.1")
	k := boot(t, "6.1")
	p := &accesses{}
	const readWrite, privateAnonymousFixed = 3, 0x32
	p.call(sysMmap, firstMap, twoPages, readWrite, privateAnonymousFixed)
	p.load(toDI, firstMap+8)
	p.load(toAX, 7)
	p.emit(0x48, 0x89, 0x07) // mov %rax,(%rdi)
	after := p.ip()
	p.load(toDI, 0)
	p.call(sysExit, 0)
	k.put("/faults", p.file())
	var hits []told
	w, err := k.Watch("0x10000008:8:rw", func(_ *watch.Watchpoint, h *watch.Hit, regs *x86.PtRegs) {
		hits = append(hits, told{0, regs.IP, h.Kinds, h.Old, h.New})
	})
	require.NoError(t, err)
	require.Zero(t, k.program("/faults").code)
	require.NoError(t, w.Close())
	require.Equal(t, []told{{0, after, wr, 0, 7}}, hits)
}
