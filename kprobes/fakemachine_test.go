package kprobes_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// fakeMachine is a machine small enough to be read: some memory, a handful of
// instructions (fakecpu_test.go), and traps delivered in between. It is also
// the kernel under test: a View of its symbols.
type fakeMachine struct {
	regions []*region
	symbols []kimage.Symbol
	sites   []kimage.Site // ftrace
	black   []x86.Range
	fixups  map[x86.Addr]x86.Addr

	cpus, cpu, task int
	traps           x86.Traps
	callouts        map[x86.Addr]func(x86.Addr, *x86.PtRegs)
	exec            x86.Addr
	execLeft        int
	pokes           int
	pokeErr         error
	textEnd         x86.Addr
	// fetch returns the code bytes that a CPU executes at an address; if nil, those in memory.
	fetch func(cpu int, at x86.Addr, code []byte) []byte
	// built is the original text, and module the range of the module "mod".
	built  string
	module x86.Range
}

// region is mapped memory.
type region struct {
	start x86.Addr
	b     []byte
	text  bool
}

var (
	_ kprobes.Machine = (*fakeMachine)(nil)
	_ kimage.View     = (*fakeMachine)(nil)
)

const (
	textBase  x86.Addr = 0xffffffff81000000
	execBase  x86.Addr = 0xffffffffc0000000
	stackBase x86.Addr = 0xffffc90000000000
	textSize           = 0x1000
	stackSize          = 0x4000
	maxTasks           = 16
	// magic is the return address of a call from the host.
	magic x86.Addr = 0xffffffffdeadbee0
)

func newFake(cpus int) *fakeMachine {
	f := &fakeMachine{
		cpus: cpus, callouts: map[x86.Addr]func(x86.Addr, *x86.PtRegs){},
		fixups: map[x86.Addr]x86.Addr{}, exec: execBase, execLeft: 64 << 20, textEnd: textBase,
	}
	f.regions = []*region{
		{start: textBase, b: make([]byte, textSize), text: true},
		{start: stackBase, b: make([]byte, maxTasks*stackSize)},
	}
	for i := range f.regions[0].b {
		f.regions[0].b[i] = 0xcc
	}
	return f
}

// add puts a function at the next multiple of 16.
func (f *fakeMachine) add(name string, code ...string) x86.Addr {
	at := f.textEnd
	b := strings.Join(code, "")
	copy(f.regions[0].b[at.Sub(textBase):], b)
	size := uint64(len(b)+15) &^ 15
	f.symbols = append(f.symbols, kimage.Symbol{Name: name, Addr: at, Size: size, Type: 'T'})
	f.textEnd = at.Add(int64(size))
	return at
}

func (f *fakeMachine) NumCPU() int { return f.cpus }
func (f *fakeMachine) CPU() int    { return f.cpu }
func (f *fakeMachine) Task() int   { return f.task }
func (f *fakeMachine) Now() uint64 { return 0 }

func (f *fakeMachine) at(addr x86.Addr, n int) *region {
	for _, r := range f.regions {
		if off := addr.Sub(r.start); off >= 0 && off+int64(n) <= int64(len(r.b)) {
			return r
		}
	}
	return nil
}

// mem is the memory at addr, nil where it is not mapped.
func (f *fakeMachine) mem(addr x86.Addr, n int) []byte {
	r := f.at(addr, n)
	if r == nil {
		return nil
	}
	off := addr.Sub(r.start)
	return r.b[off : off+int64(n)]
}

func (f *fakeMachine) ReadMem(addr x86.Addr, b []byte) error {
	m := f.mem(addr, len(b))
	if m == nil {
		return errno.EFAULT
	}
	copy(b, m)
	return nil
}

func (f *fakeMachine) WriteMem(addr x86.Addr, b []byte) error {
	r := f.at(addr, len(b))
	if r == nil || r.text {
		return errno.EFAULT
	}
	copy(f.mem(addr, len(b)), b)
	return nil
}

var errPoke = errors.New("text cannot be written")

func (f *fakeMachine) PokeText(addr x86.Addr, b []byte) error {
	r := f.at(addr, len(b))
	if f.pokeErr != nil || r == nil || !r.text {
		return errPoke
	}
	f.pokes++
	copy(f.mem(addr, len(b)), b)
	return nil
}

func (f *fakeMachine) AllocExec(size int, name string) (x86.Addr, error) {
	if size > f.execLeft {
		return 0, errno.ENOMEM
	}
	at := f.exec
	n := (size + 4095) &^ 4095
	f.exec = at.Add(int64(n))
	f.execLeft -= n
	f.regions = append(f.regions, &region{start: at, b: make([]byte, n), text: true})
	return at, nil
}

func (f *fakeMachine) Callout(symbol string, fn func(x86.Addr, *x86.PtRegs)) (x86.Addr, error) {
	at, err := f.AllocExec(16, symbol)
	f.callouts[at] = fn
	return at, err
}

func (f *fakeMachine) GSBase(cpu int) x86.Addr { return stackBase.Add(int64(cpu * 64)) }

func (f *fakeMachine) SetTraps(t x86.Traps) { f.traps = t }

// View

// CodeAt reads the original text, which a module has when it is loaded.
func (f *fakeMachine) CodeAt(addr x86.Addr, b []byte) int {
	off := addr.Sub(textBase)
	if off < 0 || off >= int64(len(f.built)) {
		return 0
	}
	return copy(b, f.built[off:])
}

func (f *fakeMachine) Modules() []string {
	if f.module.Len() == 0 {
		return nil
	}
	return []string{"mod"}
}

func (f *fakeMachine) ModuleText(string) (kimage.ModuleText, bool) {
	return kimage.ModuleText{Text: f.module}, true
}

func (f *fakeMachine) SymbolAt(addr x86.Addr) (kimage.Symbol, bool) {
	for _, s := range f.symbols {
		if addr.In(s.Addr, s.Addr.Add(int64(s.Size))) {
			return s, true
		}
	}
	return kimage.Symbol{}, false
}

func (f *fakeMachine) Lookup(name string) (found []kimage.Symbol) {
	module, plain, inModule := strings.Cut(name, ":")
	if !inModule {
		plain = name
	}
	for _, s := range f.symbols {
		if s.Name == plain && (!inModule || s.Module == module) {
			found = append(found, s)
		}
	}
	return found
}

func (f *fakeMachine) InText(addr x86.Addr) bool {
	_, ok := f.SymbolAt(addr)
	return ok && f.at(addr, 1) != nil && f.at(addr, 1).text
}
func (f *fakeMachine) InEntryText(x86.Addr) bool      { return false }
func (f *fakeMachine) InInit(x86.Addr) (string, bool) { return "", false }
func (f *fakeMachine) IndirectThunks() x86.Range      { return x86.Range{} }
func (f *fakeMachine) BugEntry(x86.Addr) bool         { return false }
func (f *fakeMachine) CFITrap(x86.Addr) bool          { return false }

func (f *fakeMachine) Blacklisted(addr x86.Addr) (x86.Range, bool) {
	for _, r := range f.black {
		if r.Contains(addr) {
			return r, true
		}
	}
	return x86.Range{}, false
}

func (f *fakeMachine) ExceptionEntry(addr x86.Addr) (x86.Addr, bool) {
	to, ok := f.fixups[addr]
	return to, ok
}

func (f *fakeMachine) SiteAt(kind kimage.SiteKind, addr x86.Addr) (kimage.Site, bool) {
	return f.SiteIn(kind, x86.Range{Start: addr, End: addr + 1})
}

func (f *fakeMachine) Reader() decoder.Reader      { return decoder.X86asm{} }
func (f *fakeMachine) Processor() kimage.Processor { return decoder.Processor{} }

func (f *fakeMachine) SiteIn(kind kimage.SiteKind, r x86.Range) (kimage.Site, bool) {
	for _, s := range f.sites {
		if kind == kimage.SiteFtrace && r.Overlaps(x86.Range{Start: s.Addr, End: s.Addr.Add(int64(s.Len))}) {
			return s, true
		}
	}
	return kimage.Site{}, false
}

// text is a copy of the kernel's text, to be compared later.
func (f *fakeMachine) text() string { return string(f.regions[0].b) }

func (f *fakeMachine) word(addr x86.Addr) uint64 {
	b := f.mem(addr, 8)
	if b == nil {
		panic(fault{addr})
	}
	return binary.LittleEndian.Uint64(b)
}

func (f *fakeMachine) setWord(addr x86.Addr, v uint64) {
	b := f.mem(addr, 8)
	if b == nil {
		panic(fault{addr})
	}
	binary.LittleEndian.PutUint64(b, v)
}

// fault is an access to unmapped memory, as a Go panic.
type fault struct{ addr x86.Addr }

func (e fault) Error() string { return fmt.Sprintf("fault at %v", e.addr) }
