//go:build cgo && linux && amd64

package main

import (
	"bufio"
	"errors"

	"kprobelab/bench"
)

func (r *benchRun) execute(t *term) error {
	rep, err := bench.Run(&r.o)
	t.progressDone()
	if err != nil {
		return &failure{exitRefused, err}
	}
	w := bufio.NewWriter(t.out)
	return errors.Join(r.show(w, rep), w.Flush())
}
