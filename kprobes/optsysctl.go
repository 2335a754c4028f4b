package kprobes

import (
	"fmt"
	"strings"

	"kprobelab/errno"
)

// The sysctl debug.kprobes-optimization (docs/spec 8.4).

// Optimization is the sysctl's state: whether probes are optimized where they
// can be.
func (k *Kprobes) Optimization() bool { return k.opt.allowed }

// ReadOptimization returns the content of the sysctl's file: "1\n" or "0\n".
func (k *Kprobes) ReadOptimization() string {
	if k.opt.allowed {
		return "1\n"
	}
	return "0\n"
}

// WriteOptimization acts on a write to the sysctl's file: 0 or 1, in decimal, with white space
// around it. Any other text is EINVAL; else it returns the error of SetOptimization.
func (k *Kprobes) WriteOptimization(text string) error {
	switch v := strings.Trim(text, " \t\n"); v {
	case "0", "1":
		return k.SetOptimization(v == "1")
	}
	return fmt.Errorf("debug.kprobes-optimization: %q is neither 0 nor 1: %w", text, errno.EINVAL)
}

// SetOptimization allows or forbids jump optimization (optimize_all_kprobes,
// unoptimize_all_kprobes), and logs it if that is a change. Allowed, every
// enabled probe is queued; forbidden, every one is undone. ENOENT where this
// kernel, or this machine, has no optimizer.
func (k *Kprobes) SetOptimization(on bool) error {
	if k.opt.patcher == nil {
		return fmt.Errorf("debug.kprobes-optimization: there is no such sysctl in this kernel: %w", errno.ENOENT)
	}
	if on == k.opt.allowed {
		return nil
	}
	k.finishWorker()
	k.opt.allowed = on
	if on {
		k.optEvent(OptAllowed, nil, 0)
	} else {
		k.optEvent(OptForbidden, nil, 0)
	}
	k.table.each(func(p *Kprobe) {
		switch {
		case p.Disabled():
		case on:
			k.optimize(p)
		default:
			k.unoptimize(p, false)
		}
	})
	if !on {
		k.drain()
	}
	k.printk(k.optimizationLine(on))
	return nil
}

func (k *Kprobes) optimizationLine(on bool) string {
	switch {
	case !k.c.Log.OptimizationWords && on:
		return k.c.Log.Prefix + "Kprobes globally optimized"
	case !k.c.Log.OptimizationWords:
		return k.c.Log.Prefix + "Kprobes globally unoptimized"
	case on:
		return k.c.Log.Prefix + "kprobe jump-optimization is enabled. All kprobes are optimized if possible."
	}
	return k.c.Log.Prefix + "kprobe jump-optimization is disabled. All kprobes are based on software breakpoint."
}
