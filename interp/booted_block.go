package interp

import (
	"kprobelab/decoder"
	"kprobelab/internal/bounded"
	"kprobelab/internal/contract"
	"kprobelab/x86"
)

// The blocks of a booted kernel are kept by the page of memory that has their code, whatever
// page tables lead there. They hold for all CPUs.

// blockKey names a block: its first page, its address, and whether it has one instruction only.
type blockKey struct {
	p       *page
	pc      uint64
	stepped bool
}

// translated has the blocks of a booted kernel.
type translated struct {
	// recent finds most blocks by the low bits of their address.
	recent [4096]*block
	blocks map[blockKey]*block
	// code has the blocks of each page that has any. Writes to such a page are looked at.
	code map[*page][]*block
	ops  int
}

func (t *translated) reset() {
	*t = translated{blocks: map[blockKey]*block{}, code: map[*page][]*block{}}
}

// bootedBlock finds or makes the block at ip. On failure the event is set.
func (c *cpu) bootedBlock(ip uint64, stepped bool) (*block, bool) {
	t := &c.e.b.translated
	p := c.fetchable(ip)
	if p == nil {
		return nil, false
	}
	k := t.blocks[blockKey{p, ip, stepped}]
	if k != nil && k.second != nil && c.fetchable(k.end-1) != k.second {
		t.forget(k)
		k = nil
	}
	if k == nil {
		var ok bool
		if k, ok = c.translateBlock(ip, p, stepped); !ok {
			return nil, false
		}
	}
	k.view = c.view
	if !stepped {
		t.recent[slotOf(ip)] = k
	}
	return k, true
}

// translateBlock decodes the block whose first byte is on page p.
func (c *cpu) translateBlock(ip uint64, p *page, stepped bool) (*block, bool) {
	t := &c.e.b.translated
	k := &block{pc: ip, stepped: stepped, first: p}
	if !c.decodeBlock(k) {
		return nil, false
	}
	if t.ops+len(k.ops) > bounded.TranslatedCode {
		t.reset()
	}
	t.ops += len(k.ops)
	t.blocks[blockKey{p, ip, stepped}] = k
	c.e.b.addCode(p, k)
	if last := c.fetchable(k.end - 1); last != nil && k.end-1 > ip|(pageSize-1) {
		k.second = last
		c.e.b.addCode(last, k)
	}
	c.e.addWork(contract.WorkBlock + contract.WorkByte*(k.end-k.pc))
	return k, true
}

// addCode adds a block to a page, which from now on is written with care.
func (b *booted) addCode(p *page, k *block) {
	if b.code[p] == nil {
		for i := range b.spaces {
			b.spaces[i].writes.flush()
		}
	}
	b.code[p] = append(b.code[p], k)
}

// decodeBlock decodes from its address to the next instruction that ends a block. It fails where nothing can be fetched.
func (c *cpu) decodeBlock(k *block) bool {
	at := k.pc
	for {
		var code [decoder.MaxInsnSize]byte
		n := c.bytesOfPage(at, code[:])
		if n == 0 && at == k.pc {
			return false
		}
		k.ops = append(k.ops, op{ip: at})
		o := &k.ops[len(k.ops)-1]
		last, size := true, 0
		if n > 0 {
			last, size = c.translate(o, code[:n], &k.work)
		}
		if size == 0 && n > 0 && n < len(code) { // it goes on on the next page
			*o = op{ip: at}
			n += c.bytesOfPage(at+uint64(n), code[n:])
			last, size = c.translate(o, code[:n], &k.work)
		}
		if size == 0 {
			o.exec, o.imm = opFetchBooted, at+uint64(n)
			k.end = max(at+uint64(n), k.pc+1)
			return true
		}
		c.hookOp(o)
		at += uint64(size)
		k.end = at
		if last || k.stepped || len(k.ops) == maxBlock || at-k.pc >= maxBlockBytes {
			k.falls = !last
			return true
		}
	}
}

// opFetchBooted is the fault of an instruction that is not all there. If it is there now, it is decoded again.
func opFetchBooted(c *cpu, o *op) bool {
	if c.fetchable(o.imm) != nil {
		c.e.b.translated.forget(c.running)
		c.event = event{kind: eventRestart}
	}
	return false
}

// bytesOfPage reads the bytes that can be fetched at an address, to the end of its page.
func (c *cpu) bytesOfPage(at uint64, b []byte) int {
	p := c.fetchable(at)
	if p == nil {
		return 0
	}
	return copy(b, p[at%pageSize:])
}

// forget drops a block. Its pages go on being written with care.
func (t *translated) forget(k *block) {
	if k.dead {
		return
	}
	k.dead, k.view = true, 0
	t.ops -= len(k.ops)
	key := blockKey{k.first, k.pc, k.stepped}
	if t.blocks[key] == k {
		delete(t.blocks, key)
	}
	if r := &t.recent[slotOf(k.pc)]; *r == k {
		*r = nil
	}
}

// dropPage drops the blocks that have a byte of a page from one offset to another.
func (b *booted) dropPage(p *page, from, to uint64) {
	list := b.code[p]
	if list == nil {
		return
	}
	kept := list[:0]
	for _, k := range list {
		start, end := uint64(0), uint64(pageSize)
		if k.first == p {
			start = k.pc % pageSize
		}
		if k.first != p || k.second == nil {
			end = (k.end-1)%pageSize + 1
		}
		if start < to && from < end {
			b.translated.forget(k)
		}
		if !k.dead {
			kept = append(kept, k)
		}
	}
	clear(list[len(kept):])
	if b.code[p] = kept; len(kept) == 0 {
		delete(b.code, p)
	}
}

// drop drops the blocks of n bytes of text.
func (b *booted) drop(addr uint64, n int) {
	for at, end := addr, addr+uint64(n); at < end; at = at&^(pageSize-1) + pageSize {
		if p := b.e.page(x86.Addr(at), 0); p != nil {
			b.dropPage(p, at%pageSize, min(pageSize, at%pageSize+end-at))
		}
	}
}

// hookOp makes an instruction do what the host wants before it.
func (c *cpu) hookOp(o *op) {
	hooks := c.e.b.hooks[x86.Addr(o.ip)]
	if len(hooks) == 0 {
		return
	}
	exec := o.exec
	o.exec = func(c *cpu, o *op) bool {
		for _, h := range hooks {
			if c.reason == reasonNone && !h(c, o) {
				c.event = event{kind: eventEnd}
				return false
			}
		}
		return exec(c, o)
	}
}

// hook is called before an instruction. It returns false after it has ended the run, by c.reason.
type hook func(c *cpu, o *op) bool

// addHook adds a hook. It is called from the next block on.
func (b *booted) addHook(at x86.Addr, h hook) {
	b.hooks[at] = append(b.hooks[at][:len(b.hooks[at]):len(b.hooks[at])], h)
	b.drop(uint64(at), 1)
}
