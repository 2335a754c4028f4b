package terminal

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// LimitError says which limit has ended a command.
type LimitError struct{ text string }

// Error implements error.
func (e *LimitError) Error() string { return e.text }

// EndBy lets a limit end the command by its context, with a LimitError as the cause: the command has work of its own to end first.
func (t *Term) EndBy(cancel context.CancelCauseFunc) { t.cancel = cancel }

// Limit ends the command when timeout has passed (0: no limit), or when most bytes are written to standard output or to
// standard error.
func (t *Term) Limit(timeout time.Duration, most uint64) {
	over := sync.OnceFunc(func() { t.end("the output has reached --max-output %d, and the command had not ended", most) })
	t.written.most, t.writtenErr.most = most, most
	t.written.over, t.writtenErr.over = over, over
	if timeout > 0 {
		t.after(timeout, func() { t.end("--timeout %s has passed, and the command had not ended", timeout) })
	}
}

// Unlimited lets the last sentence be printed.
func (t *Term) Unlimited() { t.writtenErr.most = 0 }

// endsWithin is the time in which a command ends its work after its limit.
const endsWithin = 10 * time.Second

// end ends the command: by its context, if it ends with it, or else the process, wherever it is: a call in the engine would
// not notice anything else.
func (t *Term) end(format string, limit any) {
	err := &LimitError{fmt.Sprintf(format, limit)}
	exit := func() {
		t.Unlimited()
		t.Exit(t.Report(err))
	}
	if t.cancel == nil {
		exit()
		return
	}
	t.cancel(err)
	t.after(endsWithin, exit)
}

// after calls do after a time, unless the command has ended by then.
func (t *Term) after(d time.Duration, do func()) {
	time.AfterFunc(d, func() {
		if !t.ended.Load() {
			do()
		}
	})
}

// latch is a writer that remembers the first error: help and tables are printed
// by packages that do not look at it. It counts what is written, and calls over once more than
// most bytes come, unless most is 0.
type latch struct {
	w    io.Writer
	err  error
	n    uint64
	most uint64
	over func()
}

func (l *latch) Write(b []byte) (int, error) {
	if left := l.most - min(l.n, l.most); l.most > 0 && uint64(len(b)) > left {
		l.put(b[:left])
		l.over()
		return int(left), io.ErrShortWrite
	}
	return l.put(b)
}

func (l *latch) put(b []byte) (int, error) {
	n, err := l.w.Write(b)
	l.n += uint64(n)
	if err != nil && l.err == nil {
		l.err = err
	}
	return n, err
}
