package own

import (
	"encoding/binary"
	"errors"
	"fmt"

	"kprobelab/machine"
	"kprobelab/x86"
)

// Stand-ins replace functions that need a booted kernel: an allocator, pages for copies
// of instructions, and the poking of text. They are machine code that is written over
// the beginning of the image's functions.

const (
	// arenaSize is the number of bytes that the stand-in for kmalloc gives until Undo.
	arenaSize = 4 << 20
	// arenaStep is the size of each allocation in bytes: more than the objects of kprobes take.
	arenaStep = 1024
	// pageSize is the size of a page for copies of instructions.
	pageSize = 4096
)

// allocators are the functions that kmalloc comes down to, in one release or another.
var allocators = []string{
	"__kmalloc", "__kmalloc_noprof", "__kmalloc_cache_noprof", "kmalloc_trace", "kmalloc_trace_noprof",
	"kmem_cache_alloc_trace", "kmem_cache_alloc", "kmem_cache_alloc_noprof",
}

// releasers free what the stand-ins gave, and pokers write text: neither has to
// happen. A poker returns its first argument. protectors change the rights of pages, and
// return 0; to 4.20 a page for copies is made read-only by one.
var (
	releasers  = []string{"kfree", "free_insn_page"}
	pokers     = []string{"text_poke"}
	protectors = []string{"set_memory_ro", "set_memory_rw", "set_memory_x", "set_memory_nx"}
)

// aided is the same image with the stand-ins in place, on a machine of its own: in the
// first machine all text is the kernel's.
type aided struct {
	*Kernel
	replaced []x86.Range
	// calls counts the calls since the memory was put back.
	calls int
	// listed says why there is no blacklist; asked: it was tried.
	listed error
	asked  bool
	// probe is room for a struct kprobe.
	probe *machine.Buf
}

// searchBudget is the budget of a question here. For a function with a suffix,
// within_kprobe_blacklist searches all names of the kernel (to 6.1).
const searchBudget = 200_000_000

// aid makes the aided Kernel the first time.
func (k *Kernel) aid() (*aided, error) {
	if k.aided != nil {
		return k.aided, nil
	}
	twin, err := openFor(k.img, searchBudget, k.timeout)
	if err != nil {
		return nil, err
	}
	a := &aided{Kernel: twin}
	if a.probe, err = a.m.NewBuf(probeSize); err == nil {
		err = a.stand()
	}
	if err != nil {
		twin.Close()
		return nil, err
	}
	k.aided = a
	return a, nil
}

// stand puts the stand-ins in place.
func (k *aided) stand() error {
	arena, err := k.m.Alloc(arenaSize)
	if err != nil {
		return err
	}
	page, err := k.m.AllocExec(pageSize, "kprobe_insn_page")
	if err != nil {
		return err
	}
	// To 4.20 the copy is made in the page itself.
	if err := k.m.SetPages(x86.Range{Start: page, End: page + pageSize}, machine.AttrR|machine.AttrW|machine.AttrX); err != nil {
		return err
	}
	next, err := k.m.Alloc(8)
	if err != nil {
		return err
	}
	if err := k.m.WriteMem(next, binary.LittleEndian.AppendUint64(nil, uint64(arena))); err != nil {
		return err
	}
	code, err := k.m.AllocExec(pageSize, "stand_ins")
	if err != nil {
		return err
	}
	give, givePage, nothing, zero := code, code+64, code+128, code+192
	for at, b := range map[x86.Addr][]byte{
		// mov $next,%rax; mov (%rax),%rcx; lea step(%rcx),%rdx; mov %rdx,(%rax); mov %rcx,%rax; ret
		give:     append(append(load(0xb8, next), 0x48, 0x8b, 0x08, 0x48, 0x8d, 0x91), append(binary.LittleEndian.AppendUint32(nil, arenaStep), 0x48, 0x89, 0x10, 0x48, 0x89, 0xc8, 0xc3)...),
		givePage: append(load(0xb8, page), 0xc3),
		nothing:  {0x48, 0x89, 0xf8, 0xc3}, // mov %rdi,%rax; ret
		zero:     {0x31, 0xc0, 0xc3},       // xor %eax,%eax; ret
	} {
		if err := k.m.WriteText(at, b); err != nil {
			return err
		}
	}
	n := k.replace(allocators, give)
	k.replace(releasers, nothing)
	k.replace(pokers, nothing)
	k.replace(protectors, zero)
	k.replace([]string{"alloc_insn_page"}, givePage)
	if n == 0 {
		return fmt.Errorf("kmalloc: %w", ErrNotThere)
	}
	k.setState(0) // see whileBooting; nothing else that is asked here depends on it
	return k.keep()
}

// load is a mov of an address to rax (0xb8), as the bytes of the instruction.
func load(op byte, a x86.Addr) []byte {
	return binary.LittleEndian.AppendUint64([]byte{0x48, op}, uint64(a))
}

// replace makes each function of the names a jump, and says how many there were.
func (k *aided) replace(names []string, to x86.Addr) (n int) {
	for _, name := range names {
		at := k.function(name)
		if at != 0 && k.m.WriteText(at, append(load(0xb8, to), 0xff, 0xe0)) == nil {
			k.replaced = append(k.replaced, x86.Range{Start: at, End: at + 12})
			n++
		}
	}
	return n
}

// keep makes the memory as it is now what Undo goes back to.
func (k *Kernel) keep() (err error) {
	k.m.Discard(k.clean)
	k.clean, err = k.m.Snapshot()
	return err
}

// Blacklisted asks within_kprobe_blacklist. The list is made by the kernel's own
// init_kprobes the first time, as far as that goes without a boot.
func (k *Kernel) Blacklisted(addr x86.Addr) (bool, error) {
	a, err := k.aid()
	if err != nil {
		return false, err
	}
	if !a.asked {
		a.asked, a.listed = true, a.makeBlacklist()
	}
	if a.listed != nil {
		return false, a.listed
	}
	return a.truth("within_kprobe_blacklist", uint64(addr))
}

// makeBlacklist runs init_kprobes. It fails after the list is made, because earlier
// results of boot are missing; so only the list counts.
func (k *aided) makeBlacklist() error {
	if !k.Has("within_kprobe_blacklist") || !k.Has("init_kprobes") {
		return fmt.Errorf("the blacklist: %w", ErrNotThere)
	}
	_, ended := k.m.CallAddr(k.function("init_kprobes"))
	if err := k.keep(); err != nil {
		return err
	}
	for _, e := range k.img.Blacklist() {
		if e.Module != "" || !k.img.InText(e.Start) {
			continue
		}
		if on, err := k.truth("within_kprobe_blacklist", uint64(e.Start)); err != nil || !on {
			return fmt.Errorf("init_kprobes made no blacklist (%s is not on it): %w", k.m.Symbolize(e.Start), errors.Join(ErrNoAnswer, ended, err))
		}
	}
	return nil
}

// Where struct kprobe has its address and its name, in every release.
const (
	kprobeAddr   = 40
	kprobeSymbol = 48
)

// Prepare asks arch_prepare_kprobe whether the instruction at an address can be
// probed: can_probe, and then the copy. It returns 0 or a negative errno.
func (k *Kernel) Prepare(addr x86.Addr) (errno int, err error) {
	return k.prepareBy("arch_prepare_kprobe", addr)
}

// PrepareOptimized calls arch_prepare_optimized_kprobe: does the probe there get a
// jump? It tests can_optimize, and then copies the code that the jump replaces. It
// returns 0 or a negative errno.
func (k *Kernel) PrepareOptimized(addr x86.Addr) (errno int, err error) {
	return k.prepareBy("arch_prepare_optimized_kprobe", addr)
}

func (k *Kernel) prepareBy(function string, addr x86.Addr) (int, error) {
	if !k.Has(function) {
		return 0, fmt.Errorf("%s: %w", function, ErrNotThere)
	}
	a, err := k.aid()
	if err != nil {
		return 0, err
	}
	return a.prepare(function, addr)
}

// patience is the number of calls for which the arena has room.
const patience = arenaSize / arenaStep / 8

func (k *aided) prepare(function string, addr x86.Addr) (int, error) {
	if s, ok := k.img.SymbolAt(addr); ok {
		for _, r := range k.replaced {
			if r.Start >= s.Addr && uint64(r.Start-s.Addr) < s.Size {
				return 0, fmt.Errorf("%s about %s: %w", function, s.Name, ErrReplaced)
			}
		}
	}
	if k.calls++; k.calls%patience == 0 {
		if err := k.Undo(); err != nil {
			return 0, err
		}
	}
	b := make([]byte, probeSize)
	binary.LittleEndian.PutUint64(b[kprobeAddr:], uint64(addr))
	if _, err := k.probe.Write(b); err != nil {
		return 0, err
	}
	v, err := k.Call(function, uint64(k.probe.Addr), 0)
	if r := int32(v); err == nil && (r > 0 || r < -4095) {
		err = fmt.Errorf("%s returned %#x, neither 0 nor an errno: %w", function, v, ErrNonsense)
	}
	return int(int32(v)), err
}
