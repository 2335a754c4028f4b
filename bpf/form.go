package bpf

import (
	"cmp"
	"errors"
	"io"

	"kprobelab/internal/outfile"
	"kprobelab/shard"
)

// Form says how a table is printed.
type Form struct {
	Object  string `json:"object"`
	JSON    bool   `json:"json"`
	Verbose bool   `json:"verbose"`
}

// ErrNotAsked: not every kernel has answered; its column has the reason.
var ErrNotAsked = errors.New("not all kernels could be asked")

// Show writes the table, and JUnit to a file if junit names one. code is bpf's exit code, err its reason if the table does not say
// it; an error with code 0 is w's or the file's.
func (f *Form) Show(w io.Writer, junit string, columns []Column) (code int, err error) {
	t := &Table{Object: f.Object, Columns: columns}
	write := func(w io.Writer) error { return t.Text(w, f.Verbose) }
	if f.JSON {
		write = t.JSON
	}
	if junit != "" {
		err = outfile.Write(junit, t.JUnit())
	}
	if err = cmp.Or(err, write(w)); err != nil {
		return 0, err
	}
	for i := range columns {
		if columns[i].Err != "" {
			return 3, ErrNotAsked
		}
	}
	return t.Code(), nil
}

// MergeShards collects the columns that shards have written.
func MergeShards(r *shard.Results) (form Form, columns []Column, err error) {
	return shard.Collect[Form, Column](r)
}
