package main

import "io"

// latch is a writer that remembers the first error: help and tables are printed
// by packages that do not look at it.
type latch struct {
	w   io.Writer
	err error
}

func (l *latch) Write(b []byte) (int, error) {
	n, err := l.w.Write(b)
	if err != nil && l.err == nil {
		l.err = err
	}
	return n, err
}
