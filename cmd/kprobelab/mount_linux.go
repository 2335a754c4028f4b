package main

import (
	"context"
	"fmt"
	"os/signal"
	"sync"
	"syscall"

	"kprobelab"
	"kprobelab/internal/mount"
	"kprobelab/kimage"
)

// serve mounts, says so, and stays until the mount ends or a signal comes.
func (p *mounting) serve(ctx context.Context, t *term, img *kimage.Image) error {
	l, err := kprobelab.New(img, &kprobelab.Options{CPUs: p.cpus, Seed: p.seed, Budget: p.budget, Timeout: p.timeout, Optimize: true})
	if err != nil {
		return machineError(img, err)
	}
	defer l.Close()
	var mu sync.Mutex
	say := func(line string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(t.err, "kernel:", line)
	}
	l.Kprobes.OnLog(say)
	l.Machine.OnLog(say)
	live, err := mount.NewLive(l, say)
	if err != nil {
		return &failure{exitRefused, err}
	}
	defer live.Close()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	m, err := mount.New(p.dir, live.Tree(), &mount.Options{Guest: live.Guest(), Debug: p.debug})
	if err != nil {
		return &failure{exitRefused, err}
	}
	if _, err := fmt.Fprintf(t.out, "%s: tracing files of %s; unmount it to end\n", m.Dir(), img.Name()); err != nil {
		return err
	}
	return p.wait(ctx, m)
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
		return &failure{exitRefused, err}
	}
	return nil
}
