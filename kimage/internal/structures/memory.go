// Package structures reads a kernel's structures out of its memory: lists and words by the names of their
// members, the tasks, the timers that are set, the registers of its processors.
//
// It must not know how a dump is stored, of kernels that have not booted, or what is done with the answers.
package structures

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/printable"
	"kprobelab/kimage/btf"
	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// Kernel is a booted kernel, whose memory is read.
type Kernel struct {
	// Image has the kernel's symbols and code.
	Image opened.Image
	// Types returns the types that the kernel's BTF describes.
	Types func() *btf.Types
	// Memory reads the kernel's memory.
	Memory func(at x86.Addr, b []byte) error
	// Data is memory from Start on that was read before; it is taken in place of Memory's.
	Start x86.Addr
	Data  []byte
}

// settled are places in structures that have been the same in every release since
// 4.0, for kernels without BTF, in bytes.
var settled = map[string]int{
	"ftrace_page.next": 0, "ftrace_page.records": 8, "ftrace_page.index": 16, "dyn_ftrace.ip": 0, "dyn_ftrace": 16,
	"kprobe_blacklist_entry.list": 0, "kprobe_blacklist_entry.start_addr": 16, "kprobe_blacklist_entry.end_addr": 24,
}

// Place returns the offset of a structure's member in bytes: "module.list", or for a
// member that is a structure itself "module.core_layout.base". The offset comes from
// BTF, else from settled.
func (k *Kernel) Place(path string) (int, bool) {
	m, ok := k.Member(path)
	if !ok {
		at, ok := settled[path]
		return at, ok
	}
	return m.Offset / 8, true
}

// Member returns a structure's member by BTF, found as Place finds it.
func (k *Kernel) Member(path string) (btf.Member, bool) {
	names := strings.Split(path, ".")
	t, ok := k.Types().Struct(names[0])
	m := btf.Member{Type: t}
	for _, name := range names[1:] {
		if !ok {
			break
		}
		var in btf.Member
		in, ok = m.Type.Member(name)
		in.Offset += m.Offset
		m = in
	}
	return m, ok
}

// Places returns the offsets of several members; the error names the first that is not known.
func (k *Kernel) Places(paths ...string) (map[string]int, error) {
	found := map[string]int{}
	for _, p := range paths {
		at, ok := k.Place(p)
		if !ok {
			return nil, fmt.Errorf("no type information about %s", p)
		}
		found[p] = at
	}
	return found, nil
}

// Size returns the size of a structure in bytes: by BTF, else a settled one; 0 if it is not known.
func (k *Kernel) Size(name string) int {
	if t, ok := k.Types().Struct(name); ok {
		return t.Size()
	}
	return settled[name]
}

// Symbols returns the addresses of several symbols; the error names the first that there is none of.
func (k *Kernel) Symbols(names ...string) (map[string]x86.Addr, error) {
	found := map[string]x86.Addr{}
	for _, name := range names {
		at, ok := k.Image.SymbolAddr(name)
		if !ok {
			return nil, fmt.Errorf("there is no %s", name)
		}
		found[name] = at
	}
	return found, nil
}

// Read reads memory at a virtual address. There may be less than n bytes, and none.
func (k *Kernel) Read(at x86.Addr, n int) []byte {
	if n < 0 || n > bounded.DumpRead {
		return nil
	}
	if off := at.Sub(k.Start); off >= 0 && off <= int64(len(k.Data)) && int64(n) <= int64(len(k.Data))-off {
		return k.Data[off:][:n:n]
	}
	b := make([]byte, n)
	if err := k.Memory(at, b); err != nil {
		return nil
	}
	return b
}

// Word reads an address or a number of 8 bytes, 0 if nothing is mapped there.
func (k *Kernel) Word(at x86.Addr) x86.Addr {
	b := k.Read(at, 8)
	if b == nil {
		return 0
	}
	return opened.Abs64(b)
}

// Half reads a number of 4 bytes.
func (k *Kernel) Half(at x86.Addr) uint32 {
	b := k.Read(at, 4)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

// Text reads a string of a kernel, of at most n bytes, printable.
func (k *Kernel) Text(at x86.Addr, n int) string {
	b := k.Read(at, n)
	for b == nil && n > 1 { // it may stand at the end of what is mapped
		n /= 2
		b = k.Read(at, n)
	}
	s, _, _ := bytes.Cut(b, []byte{0})
	return printable.Name(string(s))
}

// List visits the elements of a struct list_head, whose links are link bytes after
// the start of each. visit returns false to end it.
func (k *Kernel) List(head x86.Addr, link int, visit func(x86.Addr) bool) error {
	at, seen := k.Word(head), map[x86.Addr]bool{}
	for at != head && len(seen) < bounded.DumpList && !seen[at] {
		if at == 0 {
			return fmt.Errorf("the list at %v is broken", head)
		}
		if !visit(at.Add(int64(-link))) {
			return nil
		}
		seen[at] = true
		at = k.Word(at)
	}
	if at != head {
		return fmt.Errorf("the list at %v has no end", head)
	}
	return nil
}
