package session

import (
	"bytes"

	"kprobelab/internal/callsyntax"
	"kprobelab/x86"
)

// Result is a call's return value and its buffers.
type Result struct {
	Call *Call
	// Value is rax.
	Value uint64
	// Buffers are the call's guest buffers as the call left them.
	Buffers []Buffer
}

// Buffer is an argument that is a guest buffer.
type Buffer struct {
	// Arg is the argument's position, from 0.
	Arg int
	// Before and After are its content before and after the call.
	Before, After []byte

	// addr is the buffer's address in guest memory during the call; 0 if it is in user memory.
	addr x86.Addr
}

// Changed reports whether the call wrote to the buffer.
func (b Buffer) Changed() bool { return !bytes.Equal(b.Before, b.After) }

// Into returns the buffer argument into which the returned value points, and the offset
// in bytes; false if it points into none.
func (r *Result) Into() (arg int, off uint64, ok bool) {
	for _, b := range r.Buffers {
		if b.addr == 0 {
			continue // it is in user memory
		}
		if off := r.Value - uint64(b.addr); off < uint64(len(b.Before)) {
			return b.Arg, off, true
		}
	}
	return 0, 0, false
}

// Shown returns the buffers that are worth showing: every buf[N], and others if the
// call wrote to them.
func (r *Result) Shown() []Buffer {
	var list []Buffer
	for _, b := range r.Buffers {
		_, out := r.Call.Args[b.Arg].(callsyntax.Buf)
		if out || b.Changed() {
			list = append(list, b)
		}
	}
	return list
}

// content returns a buffer argument's content before the call; false for an argument
// that is no buffer.
func content(a callsyntax.Arg) ([]byte, bool) {
	switch a := a.(type) {
	case callsyntax.String:
		return append([]byte(a.Text), 0), true
	case callsyntax.Buf:
		return make([]byte, a.N), true
	case callsyntax.Bytes:
		return bytes.Clone(a.Data), true
	}
	return nil, false
}
