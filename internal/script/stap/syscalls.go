package stap

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"

	"kprobelab/internal/script"
	"kprobelab/internal/systemcall"
	"kprobelab/x86"
)

// resultFormats has the formats of results that are not printed in decimal, by the system call: 2 is hexadecimal, 3 octal.
var resultFormats = map[string]int{"mmap": 2, "mremap": 2, "umask": 3}

// calledBy maps aliases to the kernel's functions, if a function has another name or there are several.
var calledBy = map[string][]string{
	"mmap2": {"mmap"}, "stat": {"newstat"}, "lstat": {"newlstat"}, "fstat": {"newfstat"}, "fstatat": {"newfstatat"}, "uname": {"newuname"},
	"pread": {"pread64"}, "pwrite": {"pwrite64"}, "sendfile": {"sendfile64"}, "pipe": {"pipe", "pipe2"}, "getdents": {"getdents", "getdents64"}, "eventfd": {"eventfd", "eventfd2"},
	"epoll_create": {"epoll_create", "epoll_create1"}, "signalfd": {"signalfd", "signalfd4"}, "inotify_init": {"inotify_init", "inotify_init1"},
}

// aliasOf maps the kernel's functions to their aliases, if the names differ.
var aliasOf = map[string]string{}

func init() {
	for alias, list := range calledBy {
		for _, fn := range list {
			aliasOf[fn] = alias
		}
	}
}

// namesOf has the expression to which an alias sets name, by the kernel's function, if it is not the alias's own name.
var namesOf = map[string]string{
	"pipe2": `"pipe2"`, "eventfd2": `"eventfd2"`, "inotify_init1": `"inotify_init1"`,
	"epoll_create1": `flags ? "epoll_create1" : "epoll_create"`, "signalfd4": `flags ? "signalfd4" : "signalfd"`,
}

// syscallPoint resolves syscall.NAME and nd_syscall.NAME. ok is false for other points.
func (a *analysis) syscallPoint(p *probe, pt *point, c chain, depth int) (n int, ok bool) {
	first := pt.parts[0]
	if first.name != "syscall" && first.name != "nd_syscall" {
		return 0, false
	}
	if len(pt.parts) < 2 {
		a.mismatch(pt, first)
	}
	ret := len(pt.parts) == 3 && pt.parts[2].name == "return"
	if len(pt.parts) > 2 && !ret {
		a.mismatch(pt, pt.parts[2])
	}
	if a.k == nil || a.k.Functions == nil {
		a.fail(first.tok, "this probe point needs a kernel: name one with -r IMAGE")
	}
	pattern := pt.parts[1].name
	var names []string
	for name := range syscallArgs {
		if calledBy[name] != nil && !slices.Contains(calledBy[name], name) {
			continue
		}
		if ok, _ := path.Match(pattern, cmp.Or(aliasOf[name], name)); ok {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	if len(names) == 0 {
		a.fail(pt.parts[1].tok, "no system call %s is in the table of docs/stap.md; probe its function with kernel.function", pattern)
	}
	for _, name := range names {
		al := a.syscallAlias(first.name, name, ret)
		if al == nil {
			continue
		}
		one := c
		one.syscall = cmp.Or(aliasOf[name], name)
		if one.alias == "" {
			one.alias = (&point{parts: al.names[0].parts}).String()
			if ret {
				one.alias += ".return"
			}
		}
		next := &point{parts: al.names[0].parts, optional: true, cond: pt.cond}
		a.possible(func() { n += a.alias(p, al, al.names[0], next, nil, one, depth+1) })
	}
	if n == 0 && !c.optional {
		a.none(pt, first)
	}
	return n, true
}

// syscallAlias writes the alias of a system call, nil where the kernel has no function for it.
func (a *analysis) syscallAlias(kind, name string, ret bool) *probe {
	key := fmt.Sprint(kind, ".", name, ".", ret)
	if al, ok := a.made[key]; ok {
		return al
	}
	fn, there := systemcall.Function(name, func(function string) bool { return len(a.k.Functions(function)) > 0 })
	if a.made == nil {
		a.made = map[string]*probe{}
	}
	if !there {
		a.made[key] = nil
		return nil
	}
	a.made[key] = libraryText(syscallText(kind, name, fn, ret)).aliases[0]
	return a.made[key]
}

// SyscallText returns the text of the alias of a system call, "" if the library has none.
func SyscallText(name string) string {
	if _, ok := syscallArgs[name]; !ok {
		return ""
	}
	return syscallText("syscall", name, systemcall.Wrapped+name, false)
}

// Syscalls returns the sorted names of the kernel's functions that have aliases.
func Syscalls() []string { return slices.Sorted(maps.Keys(syscallArgs)) }

// syscallText writes the alias of a system call whose function is fn.
func syscallText(kind, name, fn string, ret bool) string {
	var b strings.Builder
	suffix := ".call"
	if ret {
		suffix = ".return"
	}
	alias := cmp.Or(aliasOf[name], name)
	called := cmp.Or(namesOf[name], strconv.Quote(alias))
	fmt.Fprintf(&b, "probe %s.%s = kprobe.function(\"%s\")%s {\n", kind, alias, fn, suffix)
	if ret {
		if strings.Contains(called, "?") {
			called = strconv.Quote(alias)
		}
		if text, ok := returnBodies[name]; ok {
			b.WriteString(text)
			called = cmp.Or(namesOf[name], called)
		}
		format := max(resultFormats[name], 1)
		fmt.Fprintf(&b, " name = %s\n retval = returnval()\n retstr = return_str(%d, retval)\n", called, format)
	} else {
		b.WriteString(cmp.Or(bodies[name], syscallBody(syscallArgs[name])))
		fmt.Fprintf(&b, " name = %s\n", called)
	}
	b.WriteString("}\n")
	return b.String()
}

// syscallArg is a system call's parameter. The functions of kernels since 4.17 get a pointer to
// pt_regs, which has them.
func syscallArg(s System, t *script.Thread, a *script.Args) int64 {
	n := a.Int[0] - 1
	if !strings.HasPrefix(s.Probe().Symbol, systemcall.Arch) {
		return int64(s.Register(script.Params[n]))
	}
	var b [8]byte
	off, _ := x86.RegOffset(x86.CallParams[n])
	if !s.Read(s.Register(script.Params[0])+uint64(off), b[:], false) {
		t.Fail(a.Near, "the registers of the system call cannot be read")
	}
	return int64(littleEndian(b[:]))
}

func littleEndian(b []byte) (v uint64) {
	for _, one := range slices.Backward(b) {
		v = v<<8 | uint64(one)
	}
	return v
}

// accessModes has the names of the bits of access(2)'s mode.
var accessModes = []flag{{4, "R_OK"}, {2, "W_OK"}, {1, "X_OK"}}

func accessModeText(_ System, _ *script.Thread, a *script.Args, dst []byte) []byte {
	if a.Int[0] == 0 {
		return append(dst, "F_OK"...)
	}
	return flagsText(dst, accessModes, a.Int[0])
}
