package kimage

import (
	"bytes"
	"fmt"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/printable"
	"kprobelab/kimage/btf"
	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// settled are places in structures that have been the same in every release since
// 4.0, for kernels without BTF, in bytes.
var settled = map[string]int{
	"ftrace_page.next": 0, "ftrace_page.records": 8, "ftrace_page.index": 16, "dyn_ftrace.ip": 0, "dyn_ftrace": 16,
	"kprobe_blacklist_entry.list": 0, "kprobe_blacklist_entry.start_addr": 16, "kprobe_blacklist_entry.end_addr": 24,
}

// place returns the offset of a structure's member in bytes: "module.list", or for a
// member that is a structure itself "module.core_layout.base". The offset comes from
// BTF, else from settled.
func (d *dump) place(path string) (int, bool) {
	m, ok := d.member(path)
	if !ok {
		at, ok := settled[path]
		return at, ok
	}
	return m.Offset / 8, true
}

func (d *dump) member(path string) (btf.Member, bool) {
	names := strings.Split(path, ".")
	t, ok := d.img.Types().Struct(names[0])
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

// places are several, and the error names the first that is not known.
func (d *dump) places(paths ...string) (map[string]int, error) {
	found := map[string]int{}
	for _, p := range paths {
		at, ok := d.place(p)
		if !ok {
			return nil, fmt.Errorf("no type information about %s", p)
		}
		found[p] = at
	}
	return found, nil
}

// read reads memory at a virtual address. There may be less than n bytes, and none.
func (d *dump) read(at x86.Addr, n int) []byte {
	if n < 0 || n > bounded.DumpRead {
		return nil
	}
	if off := at.Sub(d.start); off >= 0 && off <= int64(len(d.mem)) && int64(n) <= int64(len(d.mem))-off {
		return d.mem[off:][:n:n]
	}
	b := make([]byte, n)
	read := d.live
	if read == nil {
		read = d.space.Read
	}
	if err := read(at, b); err != nil {
		return nil
	}
	return b
}

// word reads an address or a number of 8 bytes, 0 if nothing is mapped there.
func (d *dump) word(at x86.Addr) x86.Addr {
	b := d.read(at, 8)
	if b == nil {
		return 0
	}
	return opened.Abs64(b)
}

// half reads a number of 4 bytes.
func (d *dump) half(at x86.Addr) uint32 {
	b := d.read(at, 4)
	if b == nil {
		return 0
	}
	return le.Uint32(b)
}

// text reads a string of a kernel, of at most n bytes, printable.
func (d *dump) text(at x86.Addr, n int) string {
	b := d.read(at, n)
	for b == nil && n > 1 { // it may stand at the end of what is mapped
		n /= 2
		b = d.read(at, n)
	}
	s, _, _ := bytes.Cut(b, []byte{0})
	return printable.Name(string(s))
}

// list visits the elements of a struct list_head, whose links are link bytes after
// the start of each. visit returns false to end it.
func (d *dump) list(head x86.Addr, link int, visit func(x86.Addr) bool) error {
	at, seen := d.word(head), map[x86.Addr]bool{}
	for at != head && len(seen) < bounded.DumpList && !seen[at] {
		if at == 0 {
			return fmt.Errorf("the list at %v is broken", head)
		}
		if !visit(at.Add(int64(-link))) {
			return nil
		}
		seen[at] = true
		at = d.word(at)
	}
	if at != head {
		return fmt.Errorf("the list at %v has no end", head)
	}
	return nil
}
