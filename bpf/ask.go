package bpf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"kprobelab"
	"kprobelab/bpf/losses"
	"kprobelab/internal/bounded"
)

// AskFile is Ask of an object's file, which errors about it name.
func AskFile(ctx context.Context, file string, kernels []string, find func(ctx context.Context, kernel string) (dump string, err error), o *Options) (*Table, error) {
	object, err := bounded.ReadFile(file, bounded.BPFObject)
	if err != nil {
		return nil, err
	}
	t, err := Ask(ctx, file, object, kernels, find, o)
	if errors.Is(err, ErrObject) {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return t, err
}

// Ask asks kernels about the programs of an object, as many at once as there are processors. find returns the dump of a booted
// kernel by the name that the user gave it; it is called for one kernel after another, before the first is asked. A kernel that cannot be asked has its
// reason in its column, and the first such error is returned beside the whole table. ErrObject, ErrContract and ErrLoader are of all kernels:
// there is no table then.
func Ask(ctx context.Context, file string, object []byte, kernels []string, find func(ctx context.Context, kernel string) (dump string, err error), o *Options) (*Table, error) {
	if err := isObject(object); err != nil {
		return nil, err
	}
	t := &Table{Object: file, Columns: make([]Column, len(kernels))}
	failed := make([]error, len(kernels))
	for n, kernel := range kernels {
		t.Columns[n].Kernel = kernel
		t.Columns[n].Dump, failed[n] = find(ctx, kernel)
	}
	var group sync.WaitGroup
	var telling sync.Mutex
	places, done := make(chan bool, runtime.GOMAXPROCS(0)), int64(0)
	for n := range kernels {
		if failed[n] != nil {
			continue
		}
		places <- true
		group.Go(func() {
			failed[n] = t.Columns[n].ask(ctx, object, o)
			<-places
			telling.Lock()
			defer telling.Unlock()
			if done++; o.Progress != nil {
				o.Progress(done, int64(len(kernels)))
			}
		})
	}
	group.Wait()
	for n, err := range failed {
		switch {
		case errors.Is(err, ErrObject), errors.Is(err, ErrLoader), errors.Is(err, ErrContract):
			return nil, err
		case err != nil:
			t.Columns[n].Err = err.Error()
		}
	}
	return t, errors.Join(append(failed, o.Asked.Save())...)
}

// ask asks the kernel of a dump.
func (c *Column) ask(ctx context.Context, object []byte, o *Options) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	lab := o.Lab
	lab.Budget = cmp.Or(lab.Budget, Budget)
	l, err := kprobelab.Open(c.Dump, &lab)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	c.Release = l.Image.Release()
	k, err := l.Booted()
	if err != nil {
		return err
	}
	own := *o
	if own.Types = o.KernelTypes[c.Kernel]; own.Types == nil {
		own.Types = o.KernelTypes[""]
	}
	if own.Config == nil {
		if own.Config, err = configBeside(c.Dump, k.Release()); err != nil {
			return err
		}
	}
	own.Ledger = func(l *losses.Ledger) { c.ledger(l, o.Asked) }
	got, err := Load(k, object, &own)
	if got != nil {
		c.Programs, c.Fields, c.Run = got.Programs, got.Fields, got.Run
	}
	return err
}

// ledger keeps what is asked of a run's ledger.
func (c *Column) ledger(l *losses.Ledger, asked *losses.Asked) {
	if asked.Losses {
		c.Losses = l
	}
	if err := l.CheckCost(asked.MaxCost); err != nil {
		c.Costs = err.Error()
	}
}

// configBeside reads the configuration that lies beside a dump, nil where there is none. A dump may say any release.
func configBeside(dump, release string) ([]byte, error) {
	if strings.ContainsAny(release, "/\\\x00") {
		return nil, nil
	}
	text, err := bounded.ReadFile(filepath.Join(filepath.Dir(dump), "config-"+release), bounded.Configuration)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}
