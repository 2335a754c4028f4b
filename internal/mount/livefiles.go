//go:build linux

package mount

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"

	"kprobelab/errno"
	"kprobelab/internal/session"
	"kprobelab/internal/show"
	"kprobelab/kimage"
	"kprobelab/tracing"
	"kprobelab/x86"
)

// text opens a file whose content is made when it is opened.
func (f *Live) text(make func() string) func(int) (tracing.Handle, error) {
	return func(int) (tracing.Handle, error) {
		var s string
		f.tracing.Do(func() { s = make() })
		return &textHandle{text: s}, nil
	}
}

// textHandle is an open text; write accepts written bytes.
type textHandle struct {
	text  string
	write func(b []byte) error
}

// ReadAt implements tracing.Handle.
func (h *textHandle) ReadAt(_ context.Context, b []byte, off int64) (int, error) {
	if off < 0 || off >= int64(len(h.text)) {
		return 0, nil
	}
	return copy(b, h.text[off:]), nil
}

// WriteAt implements tracing.Handle.
func (h *textHandle) WriteAt(b []byte, _ int64) (int, error) {
	if h.write == nil {
		return 0, errno.EINVAL
	}
	if err := h.write(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close implements tracing.Handle.
func (h *textHandle) Close() error { return nil }

// callFile is kprobelab/call: written lines are calls, and a read returns the results of the last
// calls.
type callFile struct {
	live *Live
	mu   sync.Mutex
	last string
}

func (c *callFile) open(int) (tracing.Handle, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &textHandle{text: c.last, write: c.write}, nil
}

// write makes the calls, line by line. A line that does not call an existing function fails with
// EINVAL, a fault in the call with EFAULT; the file then contains the error.
func (c *callFile) write(b []byte) error {
	var out strings.Builder
	var err error
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err = c.run(&out, line); err != nil {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = out.String()
	return err
}

func (c *callFile) run(out *strings.Builder, line string) error {
	calls, err := session.BindTask(c.live.lab.Image, line)
	if err != nil {
		fmt.Fprintln(out, err)
		return errno.EINVAL
	}
	c.live.settle()
	for _, call := range calls {
		var r *session.Result
		err := c.live.do(Process{}, func() (err error) {
			r, err = session.New(c.live.lab).Make(call)
			return err
		})
		if c.live.kernel != nil {
			c.live.kernel.sleep()
		}
		if err != nil {
			fmt.Fprintf(out, "%s: %v\n", call, err)
			return errno.EFAULT
		}
		fmt.Fprintf(out, "%s = %s\n", call, show.Value(r.Value, call.Returns()))
		for _, buf := range r.Shown() {
			fmt.Fprintf(out, "  %s = %s\n", call.Args[buf.Arg], show.Buffer(buf.After, "    "))
		}
	}
	return nil
}

// writeSymbol writes a line of kallsyms.
func writeSymbol(b *strings.Builder, s *kimage.Symbol) {
	fmt.Fprintf(b, "%016x %c %s", uint64(s.Addr), s.Type, s.Name)
	if s.Module != "" {
		fmt.Fprintf(b, "\t[%s]", s.Module)
	}
	b.WriteByte('\n')
}

// cString reads a text of the guest's up to its NUL, of 4096 bytes at most,
// and without the newline at its end.
func (f *Live) cString(at x86.Addr) string {
	const most = 4096
	var all []byte
	for len(all) < most {
		var b [1]byte
		if f.lab.Machine.ReadMem(at.Add(int64(len(all))), b[:]) != nil || b[0] == 0 {
			break
		}
		all = append(all, b[0])
	}
	return string(bytes.TrimRight(all, "\n"))
}
