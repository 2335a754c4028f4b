//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"kprobelab"
	"kprobelab/kprobes"
	"kprobelab/machine"
	"kprobelab/x86"
)

// closeInside closes machines inside of handlers, and does there what a handler may not: it restores the machine, removes
// its own probe, calls deeper and deeper, waits for a context that has ended.
func closeInside(rng *rand.Rand) error {
	for n := range 20 {
		l, err := kprobelab.Open("", &kprobelab.Options{CPUs: 1 + rng.IntN(2), Budget: 2_000_000, Optimize: rng.IntN(2) == 0})
		if err != nil {
			return err
		}
		clean, err := l.Machine.Snapshot()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		depth := 0
		var k *kprobelab.Kprobe
		odd := func(*kprobes.Kprobe, *x86.PtRegs) int {
			depth++
			switch rng.IntN(6) {
			case 0:
				l.Close()
			case 1:
				_ = l.Machine.Restore(clean) // is refused or not; the host must not care
			case 2:
				if k != nil {
					_ = k.Close()
				}
			case 3:
				if depth < 100 {
					_, _ = l.Machine.Call("gcd", 12, 18)
				}
			case 4:
				<-ctx.Done()
			}
			return 0
		}
		k, err = l.Kprobe("gcd", odd, nil)
		if err == nil {
			for range 3 {
				if _, err = l.Machine.Call("gcd", 12, 18); err != nil {
					break
				}
			}
		}
		cancel()
		if e := wrong(err); e != nil && !errors.Is(e, machine.ErrClosed) {
			return fmt.Errorf("machine %d: %w", n, e)
		}
		l.Close()
	}
	fmt.Println("20 machines closed inside of handlers")
	return nil
}
