// Package systemcall names the kernel's function of a system call, by release.
//
// It must not know images: its callers say which functions there are.
package systemcall

import "strings"

// A Naming is how kernels name the function of a system call: Prefix, then the call's name.
type Naming struct {
	Prefix string
	// Since and Until are the first release that has it and the first one that has not; "" for all before, or after.
	Since, Until string
}

// Namings are the namings for 64-bit programs, the newest first. In releases with two, both names are one function.
var Namings = []Naming{
	{Wrapped, "4.17", ""},   // arch/x86/include/asm/syscall_wrapper.h
	{"sys_", "", "4.17"},    // include/linux/syscalls.h
	{alias, "3.10", "4.17"}, // include/linux/syscalls.h, __SYSCALL_DEFINEx
}

const (
	alias = "SyS_"
	// Arch begins the names of functions that take struct pt_regs for 64-bit programs (4.17 and later).
	Arch = "__x64_"
	// Wrapped is the prefix of functions that take struct pt_regs.
	Wrapped = Arch + "sys_"
	// Inner is the prefix of functions within a wrapper that take the call's arguments as longs.
	Inner = "__se_sys_"
)

// renamed are the calls whose functions have another name (arch/x86/entry/syscalls/syscall_64.tbl).
var renamed = map[string]string{
	"stat": "newstat", "fstat": "newfstat", "lstat": "newlstat", "uname": "newuname",
	"umount2": "umount", "sendfile": "sendfile64",
}

// Entry is the name in the kernel's functions of the system call that user space calls by name.
func Entry(name string) string {
	if to, ok := renamed[name]; ok {
		return to
	}
	return name
}

// Function is the name of the function of a call, in a kernel that has the functions of has.
func Function(entry string, has func(function string) bool) (name string, ok bool) {
	for _, n := range Namings {
		if has(n.Prefix + entry) {
			return n.Prefix + entry, true
		}
	}
	return "", false
}

// Name is the name of the function of a call in the kernel's naming, whether or not it has the call. The newest
// naming is for a kernel without any.
func Name(entry string, has func(function string) bool) string {
	for _, n := range Namings {
		if has(n.Prefix + everywhere) {
			return n.Prefix + entry
		}
	}
	return Namings[0].Prefix + entry
}

// Alias reports whether a function has the second name that releases gave a call's function, its 32-bit form's too.
func Alias(function string) bool {
	return strings.HasPrefix(strings.TrimPrefix(function, "compat_"), alias)
}

// Now is the name, in the newest naming, of a function that an older naming names, and the release that
// changed it. ok is false for other names.
func Now(function string) (name, since string, ok bool) {
	for _, n := range Namings[1:] {
		if entry, ok := strings.CutPrefix(function, n.Prefix); ok {
			return Namings[0].Prefix + entry, Namings[0].Since, true
		}
	}
	return "", "", false
}

// everywhere is a call that every kernel has.
const everywhere = "getppid"

// Call is the call that a function is of, in a kernel that has the functions of has. Names such as sys_fillrect
// are no call where the kernel names its calls otherwise.
func Call(function string, has func(function string) bool) (entry string, ok bool) {
	for _, n := range Namings {
		if entry, ok := strings.CutPrefix(function, n.Prefix); ok && has(n.Prefix+everywhere) {
			return entry, true
		}
	}
	return "", false
}
