package run

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
)

// JSON writes events as one object a line, a Record each.
type JSON struct {
	w   *bufio.Writer
	enc *json.Encoder
	err error
}

// NewJSON makes one that writes to w. The caller ends with Flush.
func NewJSON(w io.Writer) *JSON {
	b := bufio.NewWriter(w)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false) // "<kernel_clone>" is to be read
	return &JSON{w: b, enc: enc}
}

// Put implements Sink.
func (o *JSON) Put(e Event) error {
	for _, r := range records(e) {
		o.Write(r)
	}
	if _, ok := e.(Wrote); ok {
		return o.Flush()
	}
	return nil
}

// Write writes a record.
func (o *JSON) Write(r Record) {
	if err := o.enc.Encode(r); err != nil && o.err == nil {
		o.err = err
	}
}

// Buffered returns the number of bytes in the buffer, which are not written yet.
func (o *JSON) Buffered() int { return o.w.Buffered() }

// Flush writes what is buffered, and returns the first error of writing.
func (o *JSON) Flush() error { return errors.Join(o.err, o.w.Flush()) }
