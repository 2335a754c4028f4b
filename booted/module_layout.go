package booted

import (
	"encoding/binary"

	"kprobelab/internal/bounded"
	"kprobelab/kimage/btf"
	"kprobelab/x86"
)

// moduleLayout holds the offsets of members that the watch over a module reads. known is false if the kernel does not
// describe its types.
type moduleLayout struct {
	known bool
	// struct kprobe and struct kretprobe.
	symbol, offset, addr, missed, pre, post x86.Addr
	probe, returned, entered, exhausted     x86.Addr
	// struct kprobe_insn_cache and struct kprobe_insn_page.
	pages, list, used, garbage x86.Addr
	// struct module: its name, and its pieces of memory, each with an address and a length.
	name   x86.Addr
	memory []memoryPlace
	// instance leads from a kretprobe_instance to its kretprobe: each step adds an offset and follows the pointer there.
	instance []x86.Addr
}

type memoryPlace struct{ base, size x86.Addr }

// offsets reads members of a structure, each by its name; false if one is missing.
func offsets(types *btf.Types, structure string, to map[string]*x86.Addr) bool {
	t, ok := types.Struct(structure)
	for name, at := range to {
		m, has := t.Member(name)
		ok = ok && has
		*at = x86.Addr(m.Offset / 8)
	}
	return ok
}

// layoutOf reads the offsets of a kernel's types.
func layoutOf(types *btf.Types) (l moduleLayout) {
	l.known = offsets(types, "kprobe", map[string]*x86.Addr{"symbol_name": &l.symbol, "offset": &l.offset, "addr": &l.addr, "nmissed": &l.missed, "pre_handler": &l.pre, "post_handler": &l.post}) &&
		offsets(types, "kretprobe", map[string]*x86.Addr{"kp": &l.probe, "handler": &l.returned, "entry_handler": &l.entered, "nmissed": &l.exhausted}) &&
		offsets(types, "kprobe_insn_cache", map[string]*x86.Addr{"pages": &l.pages}) &&
		offsets(types, "kprobe_insn_page", map[string]*x86.Addr{"list": &l.list, "nused": &l.used, "ngarbage": &l.garbage}) &&
		offsets(types, "module", map[string]*x86.Addr{"name": &l.name}) && l.modules(types)
	l.instances(types)
	return l
}

// moduleLayout is the layout of the kernel's own types, read once.
func (k *Kernel) moduleLayout() *moduleLayout {
	if k.layout == nil {
		l := layoutOf(k.image.Types())
		k.layout = &l
	}
	return k.layout
}

// modules reads where struct module has its memory: an array since 6.4, two structures before.
func (l *moduleLayout) modules(types *btf.Types) bool {
	var m memoryPlace
	module, _ := types.Struct("module")
	if offsets(types, "module_memory", map[string]*x86.Addr{"base": &m.base, "size": &m.size}) {
		mem, ok := module.Member("mem")
		size, _ := types.Struct("module_memory")
		for at := 0; ok && at+size.Size() <= mem.Type.Size(); at += size.Size() {
			place := x86.Addr(mem.Offset/8 + at)
			l.memory = append(l.memory, memoryPlace{place + m.base, place + m.size})
		}
		return len(l.memory) > 0
	}
	if !offsets(types, "module_layout", map[string]*x86.Addr{"base": &m.base, "size": &m.size}) {
		return false
	}
	for _, name := range []string{"core_layout", "init_layout"} {
		member, ok := module.Member(name)
		if !ok {
			return false
		}
		place := x86.Addr(member.Offset / 8)
		l.memory = append(l.memory, memoryPlace{place + m.base, place + m.size})
	}
	return true
}

// instances reads how an instance names its kretprobe: by itself to 5.14, by a holder to 5.18, by its rethook since.
func (l *moduleLayout) instances(types *btf.Types) {
	var first, second, third x86.Addr
	switch {
	case offsets(types, "kretprobe_instance", map[string]*x86.Addr{"rp": &first}):
		l.instance = []x86.Addr{first}
	case offsets(types, "kretprobe_instance", map[string]*x86.Addr{"rph": &first}) && offsets(types, "kretprobe_holder", map[string]*x86.Addr{"rp": &second}):
		l.instance = []x86.Addr{first, second}
	case offsets(types, "kretprobe_instance", map[string]*x86.Addr{"node": &first}) && offsets(types, "rethook_node", map[string]*x86.Addr{"rethook": &second}) &&
		offsets(types, "rethook", map[string]*x86.Addr{"data": &third}):
		l.instance = []x86.Addr{first + second, third}
	}
}

// kretprobeOf is the kretprobe of an instance, 0 if that cannot be read.
func (k *Kernel) kretprobeOf(l *moduleLayout, instance x86.Addr) x86.Addr {
	if len(l.instance) == 0 {
		return 0
	}
	for _, step := range l.instance {
		if instance = k.pointer(instance + step); instance == 0 {
			return 0
		}
	}
	return instance
}

// ranges are the pieces of memory of a struct module.
func (k *Kernel) ranges(l *moduleLayout, module x86.Addr) (list []x86.Range) {
	for _, p := range l.memory {
		base, size := k.pointer(module+p.base), k.word(module+p.size)
		if base != 0 && size != 0 {
			list = append(list, x86.Range{Start: base, End: base + x86.Addr(size)})
		}
	}
	return list
}

// word reads four bytes of the kernel's memory, 0 where there are none.
func (k *Kernel) word(at x86.Addr) uint32 {
	var b [4]byte
	if k.machine.ReadMem(at, b[:]) != nil {
		return 0
	}
	return binary.LittleEndian.Uint32(b[:])
}

// kernelString reads a string of the kernel's memory, as far as it is there.
func (k *Kernel) kernelString(at x86.Addr, most int) string {
	b := make([]byte, 0, most)
	for i := range most {
		var c [1]byte
		if k.machine.ReadMem(at+x86.Addr(i), c[:]) != nil || c[0] == 0 {
			break
		}
		b = append(b, c[0])
	}
	return string(b)
}

// slots counts the instruction slots of a cache that are in use (kernel/kprobes.c, struct kprobe_insn_cache).
func (k *Kernel) slots(l *moduleLayout, cache string) (n int) {
	at := k.image.Lookup(cache)
	if !l.known || len(at) != 1 {
		return 0
	}
	head := at[0].Addr + l.pages
	page := k.pointer(head)
	for i := 0; page != head && page != 0 && i < bounded.GuestProbes; i++ {
		n += int(int32(k.word(page-l.list+l.used)) - int32(k.word(page-l.list+l.garbage)))
		page = k.pointer(page)
	}
	return n
}

// optimizerIdle reports whether the kernel's optimizer has no probe to optimize, to put back or to free.
func (k *Kernel) optimizerIdle() bool {
	for _, list := range []string{"optimizing_list", "unoptimizing_list", "freeing_list"} {
		if at := k.image.Lookup(list); len(at) == 1 && k.pointer(at[0].Addr) != at[0].Addr {
			return false
		}
	}
	return true
}
