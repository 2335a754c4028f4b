package interp

import (
	"errors"

	"kprobelab/decoder"
	"kprobelab/internal/bounded"
	"kprobelab/internal/contract"
	"kprobelab/machine"
	"kprobelab/x86"
)

// op is an instruction, ready to run. exec reports whether it completed; if not, the cpu has the
// event.
type op struct {
	exec func(c *cpu, o *op) bool
	imm  uint64 // an immediate, or where a branch leads
	disp uint64
	ip   uint64
	next uint64 // ip of the instruction that follows

	base, index, scale uint8 // of a memory operand
	odd                uint8
	mem                bool  // the ModRM operand is in memory
	reg, rm            uint8 // registers of ModRM
	size               uint8 // of operands, in bytes
	sub                uint8 // which of several that share a function
	rep                uint8 // repz, repnz: 0xf3, 0xf2
	name               string
	vec                func(a, b xmm) xmm
}

// block is straight code up to the next branch, as a processor has fetched it. It is counted as it
// begins, as in Unicorn.
type block struct {
	pc, end uint64 // its bytes
	ops     []op
	// work is the host's work for its instructions beyond their number (contract.Shared.Work).
	work uint64
	// dead: its code was overwritten.
	dead bool
	// stepped: it has one instruction only.
	stepped bool
	// falls: execution continues with the instruction that follows it.
	falls bool
	// of a booted kernel: the view of memory in which it was found last, and its pages (second: of its end, if it
	// lies on two).
	view          uint64
	first, second *page
}

const (
	// maxBlock is the most instructions of a block, and maxBlockBytes the size at which a block
	// ends (QEMU: TCG_MAX_INSNS; a page less 32).
	maxBlock      = 512
	maxBlockBytes = pageSize - 32
)

// cache has a CPU's blocks.
type cache struct {
	// recent finds most blocks by the low bits of their address.
	recent [4096]*block
	all    map[uint64]*block
	steps  map[uint64]*block
	pages  map[uint64][]*block // by each page that a block has bytes of
	ops    int
}

func (k *cache) init() {
	k.recent = [4096]*block{}
	k.all, k.steps, k.pages, k.ops = map[uint64]*block{}, map[uint64]*block{}, map[uint64][]*block{}, 0
}

func (k *cache) add(b *block) {
	if k.ops+len(b.ops) > bounded.TranslatedCode {
		k.init()
	}
	k.ops += len(b.ops)
	if b.stepped {
		k.steps[b.pc] = b
	} else {
		k.all[b.pc] = b
	}
	for p := b.pc / pageSize; p <= (b.end-1)/pageSize; p++ {
		k.pages[p] = append(k.pages[p], b)
	}
}

// drop forgets the blocks that have a byte of [start, end).
func (k *cache) drop(start, end uint64) {
	if len(k.pages) == 0 {
		return
	}
	for p := start / pageSize; p <= (end-1)/pageSize; p++ {
		list := k.pages[p]
		kept := list[:0]
		for _, b := range list {
			if b.pc < end && start < b.end {
				k.forget(b)
			}
			if !b.dead {
				kept = append(kept, b)
			}
		}
		clear(list[len(kept):])
		k.pages[p] = kept
	}
}

func (k *cache) forget(b *block) {
	if b.dead {
		return
	}
	b.dead = true
	k.ops -= len(b.ops)
	at := k.all
	if b.stepped {
		at = k.steps
	}
	if at[b.pc] == b {
		delete(at, b.pc)
	}
	if r := &k.recent[slotOf(b.pc)]; *r == b {
		*r = nil
	}
}

func slotOf(ip uint64) uint64 { return (ip ^ ip>>12) & 4095 }

// block finds or makes the block at ip. It fails where its first byte cannot be
// fetched.
func (c *cpu) block(ip uint64, stepped bool) (*block, bool) {
	k := &c.blocks
	if stepped {
		if b := k.steps[ip]; b != nil {
			return b, true
		}
	} else if b := k.all[ip]; b != nil {
		k.recent[slotOf(ip)] = b
		return b, true
	}
	b, ok := c.fetch(ip, stepped)
	if !ok {
		return nil, false
	}
	k.add(b)
	if !stepped {
		k.recent[slotOf(ip)] = b
	}
	c.e.addWork(contract.WorkBlock + contract.WorkByte*(b.end-b.pc))
	return b, true
}

// fetch decodes from ip to the next instruction that ends a block.
func (c *cpu) fetch(ip uint64, stepped bool) (*block, bool) {
	b := &block{pc: ip, stepped: stepped}
	at := ip
	for {
		var code [decoder.MaxInsnSize]byte
		n := c.code(at, code[:])
		if n == 0 && at == ip {
			return nil, c.miss(ip, machine.AccessFetch)
		}
		b.ops = append(b.ops, op{ip: at})
		o := &b.ops[len(b.ops)-1]
		last, size := true, n
		if n > 0 {
			last, size = c.translate(o, code[:n], &b.work)
		}
		if size == 0 { // the instruction goes on where nothing can be fetched
			o.exec, o.imm = opFetch, at+uint64(n)
			b.end = at + uint64(n)
			return b, true
		}
		at += uint64(size)
		b.end = at
		if last || stepped || len(b.ops) == maxBlock || at-ip >= maxBlockBytes {
			b.falls = !last
			return b, true
		}
	}
}

// opFetch is the fault of an instruction that is not all there.
func opFetch(c *cpu, o *op) bool { return c.miss(o.imm, machine.AccessFetch) }

// code reads the bytes that can be fetched at an address.
func (c *cpu) code(at uint64, b []byte) (n int) {
	for n < len(b) {
		p := c.e.page(x86.Addr(at), attrX)
		if p == nil || c.hidden(at) {
			return n
		}
		k := copy(b[n:], p[at%pageSize:])
		n, at = n+k, at+uint64(k)
	}
	return n
}

// translate makes an op of the instruction that code begins with. It returns its
// length, 0 where code ends too early, and whether a block ends with it.
func (c *cpu) translate(o *op, code []byte, work *uint64) (last bool, size int) {
	i, err := c.has.Reads.Decode(code)
	switch {
	case errors.Is(err, decoder.ErrTruncated):
		return true, 0
	case errors.Is(err, decoder.ErrTooLong):
		o.exec = opTooLong
		return true, len(code)
	case err != nil:
		o.exec, o.next = opInvalid, o.ip+1
		return true, 1
	}
	d := dec{c: c, op: o, i: &i, last: i.Class != decoder.ClassNone}
	d.prepare()
	d.op.exec = d.row()
	if d.op.exec == nil {
		o.exec, o.name, d.last = opMissing, i.Mnemonic(), true
	}
	if c.e.opt.UserMode || c.e.b != nil {
		if v := vectorInUserMode(&i); v != 0 {
			o.exec = unlessUser(o.exec, v)
		}
	}
	*work += d.work
	return d.last, i.Length
}

// opTooLong is more than 15 bytes of prefixes.
func opTooLong(c *cpu, o *op) bool { return c.fault(machine.VectorGP) }

// opInvalid is an instruction that no processor executes, or not this model.
func opInvalid(c *cpu, o *op) bool { return c.fault(machine.VectorInvalid) }

// opMissing is an instruction that this engine does not execute.
func opMissing(c *cpu, o *op) bool {
	c.missing = o.name
	return c.fault(machine.VectorInvalid)
}
