package bpftrace

import (
	"encoding/binary"
	"strconv"

	"kprobelab/internal/bounded"
	"kprobelab/internal/ctype"
	"kprobelab/internal/script"
	"kprobelab/internal/script/host"
)

// pathType checks path(STRUCT PATH[, SIZE]).
func (c *checker) pathType(n *node) *Type {
	size := c.maxStr
	if !c.count(n, 1, 2) {
		return stringOf(size)
	}
	if k := n.kids[0].typ.Kind; c.final && k != Record && k != Pointer {
		c.error(n.at, "path() only supports pointer or record argument (%s provided)", k)
	}
	if len(n.kids) == 2 && c.arg(n, 1, Integer, true) {
		v, _ := c.number(n.kids[1])
		switch {
		case v < 0:
			c.error(n.at, "Builtin path requires a non-negative size")
		case v < int64(size):
			size = int(v)
		}
	}
	for _, pt := range c.probe.points {
		if pt.provider != "fentry" && pt.provider != "fexit" && pt.provider != "iter" {
			c.error(n.at, "The path function can only be used with 'fentry', 'fexit', 'iter' probes")
		}
		for _, p := range pt.probes {
			if c.final && c.k != nil && c.k.PathIn != nil && !c.k.PathIn(p.Symbol) {
				c.error(n.at, "helper bpf_d_path not allowed in probe")
				break
			}
		}
	}
	return stringOf(size)
}

// paths holds the offsets in bytes of the members that d_path reads in a kernel's structures.
type paths struct {
	fs, root                           uint64 // of a task, and of that
	dentry, mnt                        uint64 // of a path
	parent, name, text, size, hash, op uint64 // of a dentry; text and size are of its name
	inode, ino                         uint64
	dname                              uint64 // of a dentry's operations
	top                                uint64 // of what is mounted
	inMount, above, mountpoint         uint64 // of a mount
}

// newPaths finds the offsets in the kernel's types. missing names the first member that the types lack, "" for none.
func (g *generator) newPaths() (p *paths, missing string) {
	p = &paths{}
	for _, one := range []struct {
		of, member string
		to         *uint64
	}{
		{"task_struct", "fs", &p.fs}, {"fs_struct", "root", &p.root}, {"path", "dentry", &p.dentry}, {"path", "mnt", &p.mnt},
		{"dentry", "d_parent", &p.parent}, {"dentry", "d_name", &p.name}, {"dentry", "d_hash", &p.hash}, {"dentry", "d_op", &p.op}, {"dentry", "d_inode", &p.inode},
		{"qstr", "name", &p.text}, {"qstr", "len", &p.size}, {"inode", "i_ino", &p.ino}, {"dentry_operations", "d_dname", &p.dname},
		{"vfsmount", "mnt_root", &p.top}, {"mount", "mnt", &p.inMount}, {"mount", "mnt_parent", &p.above}, {"mount", "mnt_mountpoint", &p.mountpoint},
	} {
		t, err := g.c.k.Source.Tagged(ctype.Struct, one.of)
		if err != nil {
			return nil, "struct " + one.of
		}
		m, ok := t.Member(one.member)
		if !ok {
			return nil, one.of + "." + one.member
		}
		*one.to = uint64(m.Offset)
	}
	// The pointer to what comes before in a chain is the second of a hlist_bl_node's two.
	p.hash += 8
	return p, ""
}

// maxPath is the longest path of the kernel's (PATH_MAX).
const maxPath = 4096

// path makes the call that returns the path of the struct path at an address, as d_path does; "" if the path is
// longer than the string.
func (g *generator) path(n *node) script.Expr {
	if g.c.k == nil || g.c.k.Source == nil {
		g.fail(n.at, "path() needs the image's types")
	}
	p, missing := g.newPaths()
	if missing != "" {
		g.fail(n.at, "path(): the image's types have no %s", missing)
	}
	v := g.value(n.kids[0])
	at := v.x
	if !v.mem {
		at = g.num(n.kids[0])
	}
	size := n.typ.Size
	var room [maxPath]byte
	return call(textual("path", ints[:1], func(t *script.Thread, a *script.Args, dst []byte) []byte {
		text := p.of(system(t), uint64(a.Int[0]), &room)
		if len(text) >= size {
			return dst
		}
		return append(dst, text...)
	}), at)
}

// backward is a text that grows at its beginning. full: a part did not fit.
type backward struct {
	b    *[maxPath]byte
	from int
	full bool
}

func (w *backward) add(s string) {
	if w.full = w.full || len(s) > w.from; !w.full {
		w.from -= len(s)
		copy(w.b[w.from:], s)
	}
}

func (w *backward) addNumber(n uint64) {
	var digits [20]byte
	text := strconv.AppendUint(digits[:0], n, 10)
	if w.full = w.full || len(text) > w.from; !w.full {
		w.from -= len(text)
		copy(w.b[w.from:], text)
	}
}

// addName adds a dentry's name, as it is in memory.
func (w *backward) addName(s host.System, p *paths, dentry uint64) {
	n := int(load(s, dentry+p.name+p.size, 4))
	if w.full = w.full || n > w.from; w.full {
		return
	}
	if !script.KernelSpace.Read(s, load(s, dentry+p.name+p.text, 8), w.b[w.from-n:w.from]) {
		w.full = true
		return
	}
	w.from -= n
}

func (w *backward) text() []byte {
	if w.full {
		return nil
	}
	return w.b[w.from:]
}

// load reads a number in the kernel's memory; it returns 0 if the memory cannot be read.
func load(s host.System, at uint64, size int) uint64 {
	var b [8]byte
	if !script.KernelSpace.Read(s, at, b[:size]) {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

// of is the path at an address, in room (d_path).
func (p *paths) of(s host.System, at uint64, room *[maxPath]byte) []byte {
	w := &backward{b: room, from: maxPath}
	dentry, mnt := load(s, at+p.dentry, 8), load(s, at+p.mnt, 8)
	if dentry == 0 || mnt == 0 {
		return nil
	}
	isRoot := load(s, dentry+p.parent, 8) == dentry
	if !isRoot || load(s, mnt+p.top, 8) != dentry {
		if name := p.special(s, dentry); name != "" {
			p.dynamic(s, w, name, dentry)
			return w.text()
		}
	}
	if !isRoot && load(s, dentry+p.hash, 8) == 0 {
		w.add(" (deleted)")
	}
	root := load(s, uint64(s.Task(host.TaskStruct))+p.fs, 8) + p.root
	rootDentry, rootMnt := load(s, root+p.dentry, 8), load(s, root+p.mnt, 8)
	end := w.from
	for range bounded.PathSteps {
		if dentry == rootDentry && mnt == rootMnt || w.full {
			break
		}
		if dentry == load(s, mnt+p.top, 8) {
			mount := mnt - p.inMount
			above := load(s, mount+p.above, 8)
			if above == mount || above == 0 {
				break
			}
			dentry, mnt = load(s, mount+p.mountpoint, 8), above+p.inMount
			continue
		}
		up := load(s, dentry+p.parent, 8)
		if up == dentry || up == 0 {
			break
		}
		w.addName(s, p, dentry)
		w.add("/")
		dentry = up
	}
	if w.from == end {
		w.add("/")
	}
	return w.text()
}

// special is the function that makes a dentry's name where it has one of its own, "" for none.
func (p *paths) special(s host.System, dentry uint64) string {
	if op := load(s, dentry+p.op, 8); op != 0 {
		name, _, _, _, _ := s.Symbol(load(s, op+p.dname, 8))
		return name
	}
	return ""
}

// dynamic is a name that such a function makes.
func (p *paths) dynamic(s host.System, w *backward, function string, dentry uint64) {
	number := func(what string) {
		w.add("]")
		w.addNumber(load(s, load(s, dentry+p.inode, 8)+p.ino, 8))
		w.add(what)
	}
	switch function {
	case "pipefs_dname":
		number("pipe:[")
	case "sockfs_dname":
		number("socket:[")
	case "anon_inodefs_dname":
		w.addName(s, p, dentry)
		w.add("anon_inode:")
	default: // simple_dname
		w.add(" (deleted)")
		w.addName(s, p, dentry)
		w.add("/")
	}
}
