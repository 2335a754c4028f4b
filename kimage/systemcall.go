package kimage

import (
	"encoding/binary"

	"kprobelab/internal/bounded"
	"kprobelab/internal/systemcall"
	"kprobelab/x86"
)

// SystemCallFunction returns this kernel's name for the function of a system call,
// such as __x64_sys_read.
func (img *Image) SystemCallFunction(name string) string {
	return systemcall.Name(systemcall.Entry(name), img.has)
}

// CallOf returns the 64-bit system call that a function implements, by the kernel's own name.
func (img *Image) CallOf(function string) (entry string, ok bool) {
	return systemcall.Call(function, img.has)
}

func (img *Image) has(name string) bool { return len(img.Lookup(name)) > 0 }

// SystemCall is the number of the system call of that name for 64-bit programs, by
// the kernel's own table, sys_call_table.
func (img *Image) SystemCall(name string) (nr uint64, ok bool) {
	found := img.Lookup(img.SystemCallFunction(name))
	table, ok := img.symbolAddr("sys_call_table")
	if len(found) == 0 || !ok {
		return 0, false
	}
	for nr := range uint64(bounded.SystemCalls) {
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
