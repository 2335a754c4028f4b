package machine

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"kprobelab/errno"
	"kprobelab/internal/contract"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// A stub is 16 bytes of guest code that reach the host by a hypercall. Stub 1 is the return address
// of a function that the host called:
//
//	+0  out %al,$PortReturn; jmp .    the end of an outermost run
//	+4  int3 x 4
//	+8  hlt                                the end of a run inside a hook
//
// An outermost run returns to +0, and the hypercall asks the engine to stop.
// That request would also end the run that a hook interrupted. So a run inside a
// hook returns to +8, and the engine gets that address as its end. The
// hlt never runs. Ending that way costs microseconds, because the engine
// translates the end anew for each run. It also drops the byte before the end
// from its cache, so the end does not follow the other code directly.
const (
	stubSize   = 16
	returnStub = 1
	innerEnd   = 8
	stubsAPage = PageSize / stubSize
)

var (
	returnCode  = []byte{0xe6, contract.PortReturn, 0xeb, 0xfe, 0xcc, 0xcc, 0xcc, 0xcc, 0xf4} // out %al,$port; jmp .; int3 …; hlt
	calloutCode = []byte{0xe6, contract.PortCallout, 0xc3, 0xcc}                              // out %al,$port; ret
)

// stubs are the pages of stubs, and the Go function of each by its place.
type stubs struct {
	pages []x86.Addr
	used  int
	fns   []func(x86.Addr, *x86.PtRegs)
}

func (s *stubs) at(a x86.Addr) func(x86.Addr, *x86.PtRegs) {
	for i, p := range s.pages {
		if n := a.Sub(p); n >= 0 && n < PageSize && n%stubSize == 0 {
			if k := i*stubsAPage + int(n/stubSize); k < len(s.fns) {
				return s.fns[k]
			}
		}
	}
	return nil
}

func (m *Machine) makeStubs() error {
	if err := m.stubPage(); err != nil {
		return err
	}
	at := m.stubs.pages[0].Add(returnStub * stubSize)
	m.sh.OuterEnd, m.sh.InnerEnd = at, at+innerEnd
	m.stubs.used = returnStub + 1
	m.stubs.fns = make([]func(x86.Addr, *x86.PtRegs), m.stubs.used)
	m.addSymbol("return_to_host", at, stubSize)
	return m.PokeText(at, returnCode)
}

func (m *Machine) stubPage() error {
	at, err := m.allocExec(PageSize)
	if err != nil {
		return err
	}
	m.stubs.pages = append(m.stubs.pages, at)
	return nil
}

// Callout makes a stub in guest memory and names it by a symbol. When guest code calls the stub, fn
// runs, and the call returns.
//
// The caller has a frame on the guest's stack and its address in rdi. fn gets that address, and the
// frame itself: fn's changes of the frame change guest memory at once. The CPU's registers stay
// unchanged.
func (m *Machine) Callout(symbol string, fn func(frame x86.Addr, regs *x86.PtRegs)) (x86.Addr, error) {
	s := &m.stubs
	if s.used == len(s.pages)*stubsAPage {
		if err := m.stubPage(); err != nil {
			return 0, err
		}
	}
	at := s.pages[s.used/stubsAPage].Add(int64(s.used%stubsAPage) * stubSize)
	if err := m.PokeText(at, calloutCode); err != nil {
		return 0, err
	}
	s.used++
	s.fns = append(s.fns, fn)
	m.addSymbol(symbol, at, stubSize)
	return at, nil
}

// AllocExec maps size bytes of executable memory, full of int3, in module
// space after the modules, and names them as the kernel's kallsyms does
// ("kprobe_insn_page"). Half a page and more begins at a page. Smaller pieces
// share one, because the engine's jumps within a page are faster.
func (m *Machine) AllocExec(size int, name string) (x86.Addr, error) {
	at, err := m.allocExec(size)
	if err == nil {
		m.addSymbol(name, at, uint64(size))
	}
	return at, err
}

// execAlign is the alignment of small pieces, and the offset of the first one in a page. None
// begins at offset 0: the engine's jump cache folds the low twelve bits of an address, and the
// page's start would share an entry with code of the same piece.
const execAlign = 64

func (m *Machine) allocExec(size int) (x86.Addr, error) {
	if err := m.Closed(); err != nil {
		return 0, err
	}
	if size <= 0 || size > execSize {
		return 0, fmt.Errorf("executable memory of %d bytes: %w", size, errno.EINVAL)
	}
	if size >= PageSize/2 {
		return m.execPages(size)
	}
	if m.execPart.Len() < uint64(size) {
		at, err := m.execPages(PageSize)
		if err != nil {
			return 0, err
		}
		m.execPart = x86.Range{Start: at + execAlign, End: at + PageSize}
	}
	at := m.execPart.Start
	m.execPart.Start = (at + x86.Addr(size) + execAlign - 1) &^ (execAlign - 1)
	return at, nil
}

// execPages maps whole pages.
func (m *Machine) execPages(size int) (x86.Addr, error) {
	at, end := m.execNext, pageUp(m.execNext.Add(int64(size)))
	if end > m.exec.End {
		return 0, fmt.Errorf("executable memory of %d bytes: %w: %w", size, ErrNoMemory, errno.ENOMEM)
	}
	m.execNext = end
	attr := byte(AttrR | AttrX)
	if m.booted != nil { // no snapshot keeps it: it is the host's, not the guest's
		attr |= AttrDirty
	}
	m.engine.Allow(x86.Range{Start: at, End: end}, attr)
	m.touch(at, int(end.Sub(at)))
	m.copyIn(at, bytes.Repeat([]byte{0xcc}, int(end.Sub(at))))
	return at, nil
}

// Symbols returns the names of the machine's additions to the image: executable pages and stubs,
// sorted by address.
func (m *Machine) Symbols() []kimage.Symbol { return slices.Clone(m.symbols) }

func (m *Machine) addSymbol(name string, at x86.Addr, size uint64) {
	m.symbols = append(m.symbols, kimage.Symbol{Name: name, Addr: at, Size: size, Type: 't'})
	slices.SortStableFunc(m.symbols, func(a, b kimage.Symbol) int { return cmp.Compare(a.Addr, b.Addr) })
}

// Symbolize names an address as the kernel's %pS does, name+0xoff/0xsize, or
// gives it as a number.
func (m *Machine) Symbolize(a x86.Addr) string {
	s, ok := m.SymbolAt(a)
	if !ok {
		return a.String()
	}
	return fmt.Sprintf("%s+%#x/%#x", s.Name, a.Sub(s.Addr), s.Size)
}

// SymbolAt returns the symbol that has an address: one of the image, or of the machine's additions to it.
func (m *Machine) SymbolAt(a x86.Addr) (kimage.Symbol, bool) {
	s, ok := m.src.SymbolAt(a)
	for _, o := range m.symbols {
		if a.In(o.Addr, o.Addr.Add(int64(o.Size))) {
			s, ok = o, true
		}
	}
	return s, ok
}
