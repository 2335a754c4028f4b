package kimage

import (
	"encoding/binary"

	"kprobelab/x86"
)

// systemCallPrefixes are what the function of a system call is named, before its name, the
// newest first: with the architecture's wrapper since 4.17
// (arch/x86/include/asm/syscall_wrapper.h).
var systemCallPrefixes = []string{"__x64_sys_", "sys_", "SyS_"}

// SystemCallFunction is what this kernel names the function of a system call, such as
// __x64_sys_read. Which prefix it has, getppid tells, which every kernel has.
func (img *Image) SystemCallFunction(name string) string {
	if to, is := renamed[name]; is {
		name = to
	}
	for _, prefix := range systemCallPrefixes {
		if len(img.Lookup(prefix+"getppid")) > 0 {
			return prefix + name
		}
	}
	return systemCallPrefixes[0] + name
}

// renamed are the system calls whose functions have another name
// (arch/x86/entry/syscalls/syscall_64.tbl).
var renamed = map[string]string{
	"stat": "newstat", "fstat": "newfstat", "lstat": "newlstat", "uname": "newuname",
	"umount2": "umount", "sendfile": "sendfile64",
}

// maxSystemCalls bounds the kernel's table.
const maxSystemCalls = 4096

// SystemCall is the number of the system call of that name for 64-bit programs, by
// the kernel's own table, sys_call_table.
func (img *Image) SystemCall(name string) (nr uint64, ok bool) {
	found := img.Lookup(img.SystemCallFunction(name))
	table, ok := img.symbolAddr("sys_call_table")
	if len(found) == 0 || !ok {
		return 0, false
	}
	for nr := range uint64(maxSystemCalls) {
		var b [8]byte
		if img.CodeAt(table+x86.Addr(8*nr), b[:]) != len(b) {
			break
		}
		to := x86.Addr(binary.LittleEndian.Uint64(b[:]))
		if to == found[0].Addr {
			return nr, true
		}
		if !img.InText(to) {
			break // the table's end
		}
	}
	return 0, false
}
