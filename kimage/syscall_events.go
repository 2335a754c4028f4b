package kimage

import (
	"strings"

	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// SyscallEvent is a system call for which the kernel has the events syscalls:sys_enter_NAME and sys_exit_NAME.
type SyscallEvent struct {
	Name string
	// Number is the system call's.
	Number int64
	// Args are its arguments as its definition has them.
	Args []SyscallArg
}

// SyscallArg is an argument of a system call, with its type in C's words.
type SyscallArg struct{ Type, Name string }

// syscallMetadataPrefix begins the names of the metadata of system calls.
const syscallMetadataPrefix = "__syscall_meta__"

// SyscallEvents are the system calls that have events, in the order of the symbols of their metadata. A call that the
// kernel's table lacks has metadata without a number, and no events. Only a booted kernel's dump has any. They are
// read once; the list must not be changed.
func (img *Image) SyscallEvents() []SyscallEvent {
	img.syscallEvents.once.Do(func() { img.syscallEvents.list = img.readSyscallEvents() })
	return img.syscallEvents.list
}

func (img *Image) readSyscallEvents() (list []SyscallEvent) {
	metadata, found := img.Types().Struct("syscall_metadata")
	if !found {
		return nil
	}
	r := &eventReader{img: img}
	for _, s := range img.Symbols() {
		name, is := strings.CutPrefix(s.Name, syscallMetadataPrefix)
		if !is {
			continue
		}
		read := true
		field := func(name string) (v uint64) {
			m, ok := metadata.Member(name)
			var b [8]byte
			read = read && ok && m.Type.Size() <= len(b) && img.ReadKernel(s.Addr.Add(int64(m.Offset/8)), b[:m.Type.Size()]) == nil
			if v = uint64(opened.Abs64(b[:])); read && m.Bits > 0 {
				v = v >> (m.Offset % 8) & (1<<m.Bits - 1)
			}
			return v
		}
		// The number of arguments is an int, in newer kernels a bit field.
		e := SyscallEvent{Name: name, Number: int64(int32(field("syscall_nr")))}
		n, types, names := field("nb_args"), x86.Addr(field("types")), x86.Addr(field("args"))
		if !read || e.Number < 0 || n > uint64(len(x86.CallParams)) {
			continue
		}
		for i := range int64(n) {
			text := func(list x86.Addr) string { return r.text(x86.Addr(r.word(list.Add(8*i), 8))) }
			e.Args = append(e.Args, SyscallArg{text(types), text(names)})
		}
		list = append(list, e)
	}
	return list
}
