package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"sync"
	"syscall"

	"kprobelab"
	"kprobelab/internal/mount"
	"kprobelab/kimage"
	"kprobelab/run"
	"kprobelab/watch"
	"kprobelab/x86"
)

func (p *mounting) checkPlace() error {
	if err := mount.CheckPlace(p.dir); err != nil {
		return fail(exitImage, err)
	}
	return nil
}

// serve mounts, says so, and stays until the mount ends or a signal comes.
func (p *mounting) serve(ctx context.Context, t *term, img *kimage.Image) error {
	l, err := kprobelab.New(img, &kprobelab.Options{CPUs: p.cpus, Seed: p.seed, Budget: p.budget, Timeout: p.timeout, Optimize: true})
	if err != nil {
		return run.MachineError(img, err)
	}
	defer l.Close()
	var mu sync.Mutex
	print := func(to io.Writer, line string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(to, line)
	}
	say := func(line string) { print(t.Err, "kernel: "+line) }
	l.Kprobes.OnLog(say)
	l.Machine.OnLog(say)
	live, err := mount.NewLive(l, say)
	if err != nil {
		return fail(exitRefused, err)
	}
	defer live.Close()
	if err := p.watch(l, func(line string) { print(t.Out, line) }); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	m, err := mount.New(p.dir, live.Tree(), &mount.Options{Guest: live.Guest(), Debug: p.debug})
	if err != nil {
		return fail(exitRefused, err)
	}
	if _, err := fmt.Fprintf(t.Out, "%s: tracing files of %s; unmount it to end\n", m.Dir(), img.Name()); err != nil {
		return errors.Join(err, m.Unmount()) // this process's end would leave a mount without a server
	}
	return p.wait(ctx, m)
}

// watch sets the watchpoints; each hit is a line.
func (p *mounting) watch(l *kprobelab.Lab, say func(line string)) error {
	if p.registers {
		l.Watches.Registers = l.Registers()
	}
	names := run.NamesOf(l)
	for _, place := range p.watches {
		_, err := l.Watch(place.String(), func(w *watch.Watchpoint, h *watch.Hit, regs *x86.PtRegs) { say(names.AccessLine(w, h, regs)) })
		if err != nil {
			return fail(exitRefused, fmt.Errorf("--watch %s: %w", place, err))
		}
	}
	return nil
}

// wait returns when the mount has ended.
func (p *mounting) wait(ctx context.Context, m *mount.Mount) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	// Files that are still open keep the file system's server going; they are
	// cut off when this process is gone.
	if err := m.Unmount(); err != nil {
		return fail(exitRefused, err)
	}
	return nil
}
