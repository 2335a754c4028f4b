package booted

import (
	"bytes"
	"maps"
	"path"
	"slices"

	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// naming are the system calls that name a file (arch/x86/entry/syscalls/syscall_64.tbl), and whether a descriptor of
// a folder comes before the name.
var naming = map[uint64]bool{
	2: false, 4: false, 6: false, 21: false, 59: false, 89: false, // open, stat, lstat, access, execve, readlink
	257: true, 262: true, 267: true, 269: true, 322: true, 332: true, 437: true, 439: true, // openat, newfstatat, readlinkat, faccessat, execveat, statx, openat2, faccessat2
}

// asked are the absolute paths that programs of a session have named.
type asked struct {
	k     *Kernel
	names map[string]bool
	dir   string
}

// begin has the machine show what is named.
func (a *asked) begin() {
	a.names = map[string]bool{}
	a.k.machine.OnSystemCalls(slices.Collect(maps.Keys(naming)), a.see)
}

func (a *asked) end() { a.k.machine.OnSystemCalls(nil, nil) }

// see notes the name of a system call. A name whose page is not in memory yet is left out.
func (a *asked) see(regs *x86.PtRegs) {
	if task := a.k.machine.RunningTask(); task == a.k.super || task == a.k.init.task || len(a.names) >= bounded.AskedNames {
		return
	}
	at := regs.DI
	if naming[regs.AX] {
		at = regs.SI
	}
	name, ok := a.k.userString(x86.Addr(at))
	const current = 0xffffff9c // AT_FDCWD
	switch {
	case !ok || name == "":
		return
	case path.IsAbs(name):
	case naming[regs.AX] && uint32(regs.DI) != current:
		return
	default:
		name = path.Join(a.dir, name)
	}
	a.names[path.Clean(name)] = true
}

// userString reads a string of the running program, as far as it is in memory.
func (k *Kernel) userString(at x86.Addr) (string, bool) {
	const page = 4096
	var all []byte
	for len(all) <= bounded.GuestPath && at < x86.UserEnd {
		b := make([]byte, page-at%page)
		if k.machine.ReadMem(at, b) != nil {
			return "", false
		}
		if i := bytes.IndexByte(b, 0); i >= 0 {
			all = append(all, b[:i]...)
			return string(all), len(all) <= bounded.GuestPath
		}
		all, at = append(all, b...), at+x86.Addr(len(b))
	}
	return "", false
}

// Has reports whether the booted kernel has a file at a path.
func (k *Kernel) Has(guest string) bool {
	_, err := k.stat(guest, 0)
	return err == nil
}
