package skeletons

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"kprobelab/bpf"
)

// kernels are the values of -kernel.
type kernels struct{ names, dumps []string }

func (k *kernels) String() string { return strings.Join(k.names, " ") }

func (k *kernels) Set(text string) error {
	name, dump, ok := strings.Cut(text, "=")
	if !ok {
		return errors.New("want NAME=DUMP")
	}
	k.names, k.dumps = append(k.names, name), append(k.dumps, dump)
	return nil
}

// questions holds the kernels, the loader and the folder of kept answers of a table.
type questions struct {
	kernels
	loader, kept string
}

func (q *questions) flags(f *flag.FlagSet) {
	f.StringVar(&q.loader, "loader", "", "the loader of BPF programs")
	f.StringVar(&q.kept, "kept", "", "the `FOLDER` of answers: one that is there is not asked again")
	f.Var(&q.kernels, "kernel", "a kernel, as `NAME=DUMP`")
}

// asked asks each kernel about each object, two of which go on at once on two processors. A table has the kernels in their order.
func (q *questions) asked(objects []string) ([]*bpf.Table, error) {
	program, err := os.ReadFile(q.loader)
	if err != nil {
		return nil, err
	}
	tables, failed := make([]*bpf.Table, len(objects)), make([]error, len(objects)*len(q.names))
	var group sync.WaitGroup
	places := make(chan bool, runtime.GOMAXPROCS(0))
	for i, object := range objects {
		tables[i] = &bpf.Table{Object: object, Columns: make([]bpf.Column, len(q.names))}
		for j := range q.names {
			places <- true
			group.Go(func() {
				tables[i].Columns[j], failed[i*len(q.names)+j] = q.column(object, j, program)
				<-places
			})
		}
	}
	group.Wait()
	return tables, errors.Join(failed...)
}

// column is a kernel's answer about an object: the kept one, or a new one, which is kept.
func (q *questions) column(object string, kernel int, loader []byte) (c bpf.Column, err error) {
	file := filepath.Join(q.kept, filepath.Base(object)+"."+q.names[kernel]+".json")
	if text, err := os.ReadFile(file); q.kept != "" && err == nil && json.Unmarshal(text, &c) == nil {
		return c, nil
	}
	find := func(context.Context, string) (string, error) { return q.dumps[kernel], nil }
	t, err := bpf.AskFile(context.Background(), object, q.names[kernel:kernel+1], find, &bpf.Options{Loader: loader})
	if t == nil {
		return bpf.Column{Kernel: q.names[kernel], Err: err.Error()}, err
	}
	c = t.Columns[0]
	text, err := json.Marshal(c)
	if c.Err != "" || err != nil || q.kept == "" {
		return c, err
	}
	return c, os.WriteFile(file, text, 0o644)
}
