package session

import (
	"bytes"

	"kprobelab/internal/callsyntax"
	"kprobelab/x86"
)

// Result is what a call returned.
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

	// addr is where it is in guest memory during the call.
	addr x86.Addr
}

// Changed reports whether the call wrote to the buffer.
func (b Buffer) Changed() bool { return !bytes.Equal(b.Before, b.After) }

// Into says which buffer argument the returned value points into, and how far
// in bytes; false where it points into none.
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

// Shown are the buffers that are worth showing: every buf[N], and the others
// where the call wrote to them.
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

// content is what a buffer argument holds before the call; false for an
// argument that is no buffer.
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
