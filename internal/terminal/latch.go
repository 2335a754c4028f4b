package terminal

import "io"

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
