package shard

import (
	"fmt"
	"io"
)

// Jobs is the Command of a make target that runs a program for each item, such as make conformance-check.
const Jobs = "make"

// Job is the result of a program that was run for an item: its standard output and its exit code.
type Job struct {
	Item   string `json:"item"`
	Output Text   `json:"output"`
	Code   int    `json:"code"`
}

// NotHad is the exit code of a program that could not have its item: a kernel, QEMU, a tool.
const NotHad = 77

// WorseCode returns the exit code of two programs together: a difference counts more than an item that could not be had.
func WorseCode(a, b int) int {
	if a == 0 || a == NotHad && b != 0 {
		return b
	}
	return a
}

// MergeJobs writes the outputs of all programs, one after the other, and returns their exit code together.
func MergeJobs(w io.Writer, r *Results) (code int, err error) {
	err = Each(r, func(j Job) error {
		if j.Code < 0 || j.Code > 255 {
			return fmt.Errorf("%w: there is no exit code %d", ErrShards, j.Code)
		}
		code = WorseCode(code, j.Code)
		_, err := w.Write(j.Output)
		return err
	})
	return code, err
}
