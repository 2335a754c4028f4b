package kimage

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// Programs are the kernel's own lists of the BPF programs that it takes at each place, as
// far as the image's data tells.
type Programs struct {
	// Sets are sets of functions by their numbers in BTF, by the names of their symbols
	// (ProgramSets). One that is not there is not known, or the kernel does not have it.
	Sets map[string][]int `json:"sets,omitempty"`
	// Modifiable are the functions whose result programs may change although errors are not
	// injected there (register_btf_fmodret_id_set), by their numbers in BTF; true for those where
	// a program may sleep.
	Modifiable map[int]bool `json:"modifiable,omitempty"`
	// Iterators are the kernel's iterators; nil if they are unknown.
	Iterators []Iterator `json:"iterators,omitempty"`
	// InjectableKnown: which functions errors may be injected into is known (Image.Injectable).
	InjectableKnown bool `json:"injectable_known,omitempty"`
}

// Iterator is a kind of kernel objects for each of which a program can run (iter/NAME).
type Iterator struct {
	Name string `json:"name"`
	// Asleep: its program may sleep (BPF_ITER_RESCHED).
	Asleep bool `json:"asleep,omitempty"`
	// Wants is the errno of a link that names no map or cgroup, 0 if it need not name one.
	Wants errno.Errno `json:"wants,omitempty"`
}

// The kernel's sets of functions, by the names of their symbols.
const (
	SetDenied       = "btf_id_deny"
	SetNoReturn     = "noreturn_deny"
	SetHooks        = "bpf_lsm_hooks"
	SetHooksAsleep  = "sleepable_lsm_hooks"
	SetHooksOff     = "bpf_lsm_disabled_hooks"
	SetNeverAsleep  = "btf_non_sleepable_error_inject"
	programIterator = "bpf_iter_reg_target"
	programModify   = "register_btf_fmodret_id_set"
)

// ProgramSets are the sets that Programs has.
var ProgramSets = []string{SetDenied, SetNoReturn, SetHooks, SetHooksAsleep, SetHooksOff, SetNeverAsleep}

// programsCache is made at the first use.
type programsCache struct {
	once sync.Once
	list Programs
	// injectable are the functions of ALLOW_ERROR_INJECTION, by ascending address.
	injectable []x86.Range
}

// Programs returns the image's lists.
func (img *Image) Programs() *Programs { return &img.programs().list }

// Injectable reports whether errors may be injected into the function at an address
// (ALLOW_ERROR_INJECTION). Where Programs says that it is not known, it is false.
func (img *Image) Injectable(at x86.Addr) bool {
	list := img.programs().injectable
	i, _ := slices.BinarySearchFunc(list, at, func(r x86.Range, at x86.Addr) int { return cmp.Compare(r.End, at+1) })
	return i < len(list) && list[i].Contains(at)
}

func (img *Image) programs() *programsCache {
	c := &img.tables.programs
	c.once.Do(func() {
		c.list.Sets = map[string][]int{}
		for _, name := range ProgramSets {
			if ids := img.BTFSet(name); ids != nil {
				c.list.Sets[name] = ids
			}
		}
		c.list.Modifiable = img.modifiable()
		c.list.Iterators = img.iterators()
		c.injectable, c.list.InjectableKnown = img.injectable()
		slices.SortFunc(c.injectable, func(a, b x86.Range) int { return cmp.Compare(a.End, b.End) })
	})
	return c
}

// injectionPrefix begins the symbols of the records of ALLOW_ERROR_INJECTION.
const injectionPrefix = "_eil_addr_"

// injectable reads the list or, if it is freed, its records' symbols. A kernel without
// FUNCTION_ERROR_INJECTION has none.
func (img *Image) injectable() (list []x86.Range, known bool) {
	add := func(at x86.Addr) {
		if s, ok := img.SymbolAt(at); ok && img.InText(at) {
			list = append(list, x86.Range{Start: at, End: s.Addr.Add(int64(s.Size))})
		}
	}
	const entry = 16 // struct error_injection_entry: the address, and the kind of error
	_, data := tableOwner{img: img}.table(injectionList)
	for ; len(data) >= entry; data = data[entry:] {
		add(opened.Abs64(data))
	}
	if len(list) > 0 {
		return list, true
	}
	if _, ok := img.symbolAddr("within_error_injection_list"); !ok {
		_, whole := img.symbolAddr("kallsyms_lookup_name")
		return nil, whole
	}
	for _, s := range img.Symbols() {
		if name, ok := strings.CutPrefix(s.Name, injectionPrefix); ok {
			if at, ok := img.symbolAddr(name); ok {
				add(at)
			}
		}
	}
	return list, len(list) > 0
}

// Flags of a function in a set (btf_id_set8), and how many are believed.
const (
	kfuncSleepable = 1 << 5
	idSetOffset    = 8 // btf_kfunc_id_set.set, after the module
	idPair         = 8
)

// modifiable reads the sets that boot registers.
func (img *Image) modifiable() map[int]bool {
	list := map[int]bool{}
	for _, at := range img.bootArguments(programModify) {
		b := img.bytes(at.Add(idSetOffset), 8)
		if b == nil {
			continue
		}
		set := opened.Abs64(b)
		head := img.bytes(set, idPair)
		if head == nil {
			continue
		}
		n := binary.LittleEndian.Uint32(head)
		if n > bounded.BTFSet {
			continue
		}
		for pairs := img.bytes(set.Add(idPair), int(n)*idPair); len(pairs) >= idPair; pairs = pairs[idPair:] {
			list[int(le.Uint32(pairs))] = le.Uint32(pairs[4:])&kfuncSleepable != 0
		}
	}
	return list
}

// iterResched is BPF_ITER_RESCHED.
const iterResched = 1

// iterators reads the records that boot registers.
func (img *Image) iterators() (list []Iterator) {
	reg, ok := img.Types().Struct("bpf_iter_reg")
	if !ok {
		return nil
	}
	word := func(at x86.Addr, member string, size int) (uint64, bool) {
		m, ok := reg.Member(member)
		b := img.bytes(at.Add(int64(m.Offset/8)), size)
		if !ok || b == nil {
			return 0, false
		}
		var full [8]byte
		copy(full[:], b)
		return le.Uint64(full[:]), true
	}
	for _, at := range img.bootArguments(programIterator) {
		target, ok := word(at, "target", 8)
		if !ok {
			continue
		}
		name := img.cstring(x86.Addr(target))
		if name == "" {
			continue
		}
		attach, _ := word(at, "attach_target", 8)
		features, _ := word(at, "feature", 4)
		list = append(list, Iterator{Name: name, Asleep: features&iterResched != 0, Wants: img.wants(x86.Addr(attach))})
	}
	slices.SortFunc(list, func(a, b Iterator) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(list, func(a, b Iterator) bool { return a.Name == b.Name })
}

// wants returns the errno of a link that names no map or cgroup, or 0 if it need not name one; an
// iterator over tasks then takes all tasks. attach is the function that reads the link's object.
func (img *Image) wants(attach x86.Addr) errno.Errno {
	if attach == 0 {
		return 0
	}
	s, _ := img.SymbolAt(attach)
	switch s.Name {
	case "bpf_iter_attach_task":
		return 0
	case "bpf_iter_attach_cgroup":
		return errno.EINVAL
	}
	return errno.EBADF
}

// Code of a call whose first argument is an address of data: mov $imm32, %rdi or
// lea disp32(%rip), %rdi, and soon after it call or jmp rel32.
const (
	movRDI      = "\x48\xc7\xc7"
	leaRDI      = "\x48\x8d\x3d"
	argumentLen = 7
	callLen     = 5
	nearCall    = 96
)

// bootArguments are the addresses that boot's code passes to a function as the first argument.
func (img *Image) bootArguments(function string) (list []x86.Addr) {
	to, ok := img.symbolAddr(function)
	s := img.section(".init.text")
	if !ok || s == nil {
		return nil
	}
	for i := 0; i+callLen <= len(s.Data); i++ {
		if s.Data[i] != 0xe8 && s.Data[i] != 0xe9 {
			continue
		}
		next := s.Addr.Add(int64(i + callLen))
		if next.Add(int64(int32(le.Uint32(s.Data[i+1:])))) != to {
			continue
		}
		for j := i - argumentLen; j >= max(0, i-nearCall); j-- {
			value := int64(int32(le.Uint32(s.Data[j+3:])))
			switch string(s.Data[j : j+3]) {
			case movRDI:
				list = append(list, x86.Addr(value))
			case leaRDI:
				list = append(list, s.Addr.Add(int64(j+argumentLen)+value))
			default:
				continue
			}
			break
		}
	}
	return list
}
