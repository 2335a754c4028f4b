package machine

import (
	"encoding/binary"
	"fmt"

	"kprobelab/errno"
	"kprobelab/x86"
)

// PageSize is the guest's page size in bytes.
const PageSize = 4096

func pageDown(a x86.Addr) x86.Addr { return a &^ (PageSize - 1) }
func pageUp(a x86.Addr) x86.Addr   { return (a + PageSize - 1) &^ (PageSize - 1) }

// lastPage is the last page of all. No memory is in it: the address after its end
// would be 0. The kernel leaves it unmapped, too; its addresses are error numbers
// (ERR_PTR).
const lastPage x86.Addr = -PageSize & (1<<64 - 1)

// reserve makes room for [start, end), both page-aligned, with no page mapped.
func (m *Machine) reserve(start, end x86.Addr) (x86.Range, error) {
	r := x86.Range{Start: start, End: end}
	if end > lastPage || end < start {
		return r, fmt.Errorf("memory from %s on reaches into the last page, where no memory can be: %w", start, errno.EINVAL)
	}
	if size := end.Sub(start); size <= 0 || size > MaxRegion {
		return r, fmt.Errorf("region of %#x bytes at %s: %w", size, start, ErrNoMemory)
	}
	for _, o := range m.regions {
		if o.Overlaps(r) {
			return r, fmt.Errorf("region %s-%s overlaps %s-%s: %w", start, end, o.Start, o.End, errno.EINVAL)
		}
	}
	if err := m.engine.Reserve(r); err != nil {
		return r, err
	}
	m.regions = append(m.regions, r)
	return r, nil
}

// splits reports whether n bytes lie on more than one page.
func splits(addr x86.Addr, n int) bool {
	return uint64(addr%PageSize)+uint64(n) > PageSize
}

// bytes is guest memory on one page, mapped with at least the attributes of need.
func (m *Machine) bytes(addr x86.Addr, n int, need byte) ([]byte, error) {
	if m.gone { // not Closed(): memory stays when a handler ended its goroutine
		return nil, ErrClosed
	}
	if n == 0 {
		return nil, nil
	}
	return m.engine.Bytes(addr, n, need)
}

// mapped reports whether every page of the range is mapped with need.
func (m *Machine) mapped(addr x86.Addr, n int, need byte) error {
	for at, left := addr, n; left > 0; {
		k := min(left, int(PageSize-at%PageSize))
		if _, err := m.bytes(at, k, need); err != nil {
			return err
		}
		at, left = at.Add(int64(k)), left-k
	}
	return nil
}

// each calls fn with the pieces of a range that is mapped, page by page.
func (m *Machine) each(addr x86.Addr, n int, fn func(b []byte)) {
	for n > 0 {
		k := min(n, int(PageSize-addr%PageSize))
		b, err := m.bytes(addr, k, 0)
		if err != nil {
			return
		}
		fn(b)
		addr, n = addr.Add(int64(k)), n-k
	}
}

func (m *Machine) copyOut(addr x86.Addr, b []byte) {
	m.each(addr, len(b), func(p []byte) { b = b[copy(b, p):] })
}

func (m *Machine) copyIn(addr x86.Addr, b []byte) {
	m.each(addr, len(b), func(p []byte) { b = b[copy(p, b):] })
}

// ReadMem reads guest memory as it is now, patched text and all. It reads all
// of b or fails with an error that wraps errno.EFAULT.
func (m *Machine) ReadMem(addr x86.Addr, b []byte) error {
	if splits(addr, len(b)) {
		if err := m.mapped(addr, len(b), AttrR); err != nil {
			return fmt.Errorf("read: %w", err)
		}
		m.copyOut(addr, b)
		return nil
	}
	h, err := m.bytes(addr, len(b), AttrR)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	copy(b, h)
	return nil
}

// WriteMem writes data memory. It writes all of b or fails with an error that
// wraps errno.EFAULT, as it does on text and read-only data.
func (m *Machine) WriteMem(addr x86.Addr, b []byte) error {
	if splits(addr, len(b)) {
		if err := m.mapped(addr, len(b), AttrW); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		m.touch(addr, len(b))
		m.copyIn(addr, b)
		return nil
	}
	h, err := m.bytes(addr, len(b), AttrW)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	m.touch(addr, len(b))
	copy(h, b)
	return nil
}

// SwapWord reads a word of data memory and writes another in its place. It
// fails as WriteMem does.
func (m *Machine) SwapWord(addr x86.Addr, v uint64) (old uint64, err error) {
	if splits(addr, 8) {
		var b [8]byte
		if err := m.mapped(addr, 8, AttrR|AttrW); err != nil {
			return 0, fmt.Errorf("write: %w", err)
		}
		m.copyOut(addr, b[:])
		return binary.LittleEndian.Uint64(b[:]), m.WriteMem(addr, binary.LittleEndian.AppendUint64(nil, v))
	}
	h, err := m.bytes(addr, 8, AttrR|AttrW)
	if err != nil {
		return 0, fmt.Errorf("write: %w", err)
	}
	m.touch(addr, 8)
	old = binary.LittleEndian.Uint64(h)
	binary.LittleEndian.PutUint64(h, v)
	return old, nil
}

// touch is called before the host writes guest memory.
func (m *Machine) touch(addr x86.Addr, n int) {
	m.engine.Touch(addr, n)
}

// PokeText changes text, which is read-only to the guest, and makes every CPU drop its translations
// of that text: it is text_poke and the sync-core IPI together. It fails with errno.EFAULT if addr
// is not executable.
func (m *Machine) PokeText(addr x86.Addr, b []byte) error {
	if err := m.PokeTextNoSync(addr, b); err != nil {
		return err
	}
	m.syncAll(addr, b)
	return nil
}

// WriteText changes text as PokeText does, and a booted kernel reads the change, too. After
// PokeText a booted kernel still reads its own text.
func (m *Machine) WriteText(addr x86.Addr, b []byte) error {
	if err := m.mayPoke(addr, b); err != nil {
		return err
	}
	m.putText(addr, b)
	m.syncAll(addr, b)
	return nil
}

// syncAll makes every CPU see text that was changed.
func (m *Machine) syncAll(addr x86.Addr, b []byte) {
	for n, c := range m.cpus {
		m.drop(c, addr, len(b))
		if m.onSync != nil {
			m.onSync(n)
		}
	}
}

// PokeTextNoSync changes text, and every CPU may still execute the old text until
// SyncCore: the state between text_poke's store and its sync-core IPI.
func (m *Machine) PokeTextNoSync(addr x86.Addr, b []byte) error {
	if err := m.mayPoke(addr, b); err != nil {
		return err
	}
	if m.booted != nil {
		if err := m.booted.HideText(addr, len(b)); err != nil {
			return fmt.Errorf("poke: %w", err)
		}
	}
	m.putText(addr, b)
	return nil
}

// mayPoke returns the error of a change of text, if it is refused.
func (m *Machine) mayPoke(addr x86.Addr, b []byte) error {
	if err := m.ours(); err != nil {
		return fmt.Errorf("poke: %w", err)
	}
	if m.gone {
		return fmt.Errorf("poke: %w", ErrClosed)
	}
	if err := m.mapped(addr, len(b), AttrX); err != nil {
		return fmt.Errorf("poke: %w", err)
	}
	return nil
}

// putText changes text, which each CPU may still execute as it was.
func (m *Machine) putText(addr x86.Addr, b []byte) {
	m.touch(addr, len(b))
	m.copyIn(addr, b)
	for _, c := range m.cpus {
		c.stale = append(c.stale, x86.Range{Start: addr, End: addr.Add(int64(len(b)))})
	}
	if m.onPoke != nil {
		m.onPoke(addr, len(b))
	}
}

// OnText sets receivers for changes of text: poke is called after the running CPU has changed n
// bytes at an address, sync after a CPU has received all changes. Each may be nil.
func (m *Machine) OnText(poke func(at x86.Addr, n int), sync func(cpu int)) {
	m.onPoke, m.onSync = poke, sync
}

// SyncCore makes one CPU see all text that was poked.
func (m *Machine) SyncCore(cpu int) {
	if m.gone || m.ours() != nil {
		return
	}
	c := m.cpus[cpu]
	for len(c.stale) > 0 {
		r := c.stale[len(c.stale)-1]
		m.drop(c, r.Start, int(r.Len()))
	}
	if m.onSync != nil {
		m.onSync(cpu)
	}
}

// drop makes c see the text of a range as it is.
func (m *Machine) drop(c *cpu, addr x86.Addr, n int) {
	if n > 0 {
		c.Drop(addr, n)
	}
	end := addr.Add(int64(n))
	kept := c.stale[:0]
	for _, r := range c.stale {
		if r.Start < addr || end < r.End {
			kept = append(kept, r)
		}
	}
	c.stale = kept
}
