package booted

import (
	"fmt"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// arena is memory of the task that makes system calls, for their buffers.
type arena struct {
	at   x86.Addr
	size int
}

// SystemCall makes a system call, by its name, as the task that the dump of a booted
// kernel stopped in, through the kernel's own entry. The result is what a program
// gets: a negative errno where it failed. An argument is an integer, a string or a
// []byte: copied into the task's memory, a string with a NUL after it, a []byte back
// after the call. The error is the machine's, or the error of a hit that failed.
func (k *Kernel) SystemCall(name string, args ...any) (int64, error) {
	nr, ok := k.image.SystemCall(name)
	if !ok {
		return 0, fmt.Errorf("there is no system call %s in %s: %w", name, k.image.Name(), errno.ENOSYS)
	}
	words, err := k.UserWords(name, args...)
	if err != nil {
		return 0, err
	}
	ret, err := k.machine.SystemCall(nr, words...)
	if hit := k.kprobes.ClearErr(); err == nil {
		err = hit
	}
	if err != nil {
		return ret, err
	}
	for i, a := range args {
		if b, is := a.([]byte); is {
			if err := k.machine.ReadUser(x86.Addr(words[i]), b); err != nil {
				return ret, fmt.Errorf("%s: argument %d after the call: %w", name, i+1, err)
			}
		}
	}
	return ret, nil
}

// UserWords puts the arguments of a system call of that name into the task's memory, as SystemCall
// has them, and returns the words to pass. The next system call's take their place.
func (k *Kernel) UserWords(name string, args ...any) ([]uint64, error) {
	if err := k.hasUser(); err != nil {
		return nil, err
	}
	need := 0
	for _, a := range args {
		need += userSize(a)
	}
	if err := k.MapUser(need); err != nil {
		return nil, err
	}
	words := make([]uint64, len(args))
	at := k.user.at
	for i, a := range args {
		b, is := userBytes(a)
		if !is {
			w, err := word(a)
			if err != nil {
				return nil, fmt.Errorf("%s: argument %d: %w", name, i+1, err)
			}
			words[i] = w
			continue
		}
		if err := k.machine.WriteUser(at, b); err != nil {
			return nil, err
		}
		words[i] = uint64(at)
		at += x86.Addr(userSize(a))
	}
	return words, nil
}

// MapUser gives the task memory for the buffers of system calls, so that a later one
// needs no mmap: probes that are planted in between do not see it.
func (k *Kernel) MapUser(size int) error {
	if size <= k.user.size {
		return nil
	}
	if err := k.hasUser(); err != nil {
		return err
	}
	if size > bounded.SyscallBuffers {
		return fmt.Errorf("%d bytes for a system call's buffers, %d are possible: %w", size, bounded.SyscallBuffers, errno.ENOMEM)
	}
	const (
		readWrite = 0x1 | 0x2           // PROT_READ, PROT_WRITE
		populated = 0x2 | 0x20 | 0x8000 // MAP_PRIVATE, MAP_ANONYMOUS, MAP_POPULATE
	)
	nr, ok := k.image.SystemCall("mmap")
	if !ok {
		return fmt.Errorf("%s has no table of system calls: %w", k.image.Name(), errno.ENOSYS)
	}
	size = (size + 1<<16) &^ (1<<16 - 1)
	at, err := k.machine.SystemCall(nr, 0, uint64(size), readWrite, populated, ^uint64(0), 0)
	if err == nil && at < 0 {
		err = fmt.Errorf("%d bytes of user memory: %w", size, errno.Errno(-at))
	}
	if err == nil {
		k.user = arena{x86.Addr(at), size}
	}
	return err
}

// userBytes returns the content of a buffer before the call: the bytes of a []byte, or a string and a zero byte. It
// returns false for an argument that is no buffer.
func userBytes(a any) ([]byte, bool) {
	switch a := a.(type) {
	case string:
		return append([]byte(a), 0), true
	case []byte:
		return a, true
	}
	return nil, false
}

// userSize returns the number of bytes that an argument takes in user memory, 0 for a number. Buffers begin at multiples of 16.
func userSize(a any) int {
	b, is := userBytes(a)
	if !is {
		return 0
	}
	return (len(b) + 31) &^ 15 // a buffer of no bytes has a place, too
}

// word is an argument that is no buffer.
func word(a any) (uint64, error) {
	switch v := a.(type) {
	case int:
		return uint64(v), nil
	case int64:
		return uint64(v), nil
	case uint64:
		return v, nil
	case uint:
		return uint64(v), nil
	case int32:
		return uint64(v), nil
	case uint32:
		return uint64(v), nil
	case x86.Addr:
		return uint64(v), nil
	}
	return 0, fmt.Errorf("%T is no integer, string or []byte: %w", a, errno.EINVAL)
}
