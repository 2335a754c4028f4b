//go:build linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"kprobelab"
	"kprobelab/kprobes"
	"kprobelab/machine"
	"kprobelab/x86"
)

// children are the attacks of inProcess.
var children = map[string]func(*rand.Rand) error{
	"shared": shareMachine, "dropped": dropMachines, "stubs": callStubs, "closing": closeInside, "page": askPage,
}

func child(name string, seed uint64) error {
	run, ok := children[name]
	if !ok {
		return fmt.Errorf("no child %q", name)
	}
	return run(newRand(seed))
}

// busyLab is a machine with probes of every kind on gcd and snprintf, whose handlers
// call guest code.
func busyLab(rng *rand.Rand) (*kprobelab.Lab, error) {
	l, err := kprobelab.Open("", &kprobelab.Options{CPUs: 1 + rng.IntN(3), Budget: 2_000_000, Optimize: rng.IntN(2) == 0, EveryInstruction: rng.IntN(4) == 0})
	if err != nil {
		return nil, err
	}
	inner := func(*kprobes.Kprobe, *x86.PtRegs) int {
		if rng.IntN(4) == 0 {
			_, _ = l.Machine.Call("strlen", "abc")
		}
		return 0
	}
	post := func(*kprobes.Kprobe, *x86.PtRegs, uint64) {}
	if rng.IntN(2) == 0 {
		post = nil
	}
	for _, place := range []string{"gcd", "gcd+0x5", "snprintf"} {
		if _, err := l.Kprobe(place, inner, post); err != nil && place == "gcd" {
			return nil, err
		}
	}
	if _, err := l.Kretprobe("gcd", nil, func(*kprobes.Instance, *x86.PtRegs) int { return 0 }); err != nil {
		return nil, err
	}
	return l, l.Settle()
}

// wrong says what must not come of a call, whatever the guest does: a handler of
// ours that panicked, an engine that failed.
func wrong(err error) error {
	if err != nil && (strings.Contains(err.Error(), "panicked") || strings.Contains(err.Error(), "engine failed")) {
		return err
	}
	return nil
}

// shareMachine lets goroutines use one machine, first in turns, then all at once:
// then each call runs alone, or is refused.
func shareMachine(rng *rand.Rand) error {
	l, err := busyLab(rng)
	if err != nil {
		return err
	}
	gcd := uint64(l.Image.Lookup("gcd")[0].Addr)
	var mu sync.Mutex
	var wg sync.WaitGroup
	var bad atomic.Pointer[error]
	var turns, alone, refused atomic.Int64
	each := func(n int, lock bool) {
		for i := range n {
			if lock {
				mu.Lock()
			}
			v, err := l.Machine.CallAddr(x86.Addr(gcd), uint64(12*(i+1)), uint64(18*(i+1)))
			if lock {
				mu.Unlock()
				turns.Add(1)
			}
			switch {
			case err == nil && v == uint64(6*(i+1)):
				alone.Add(1)
			case !lock && err != nil && strings.Contains(err.Error(), "another goroutine"):
				refused.Add(1)
			default:
				err = fmt.Errorf("gcd is %d: %w", v, err)
				bad.Store(&err)
			}
		}
	}
	for _, lock := range []bool{true, false} {
		for range 2 + rng.IntN(8) {
			wg.Go(func() { each(40, lock) })
		}
		wg.Wait()
	}
	if p := bad.Load(); p != nil {
		return *p
	}
	l.Close()
	fmt.Printf("%d calls of goroutines in turns\n%d calls of goroutines at once that were refused\n", turns.Load(), refused.Load())
	return nil
}

// dropMachines forgets machines without Close, uses closed ones, closes some twice, and tries to close
// some from a handler, which Close refuses. The ones that are left work.
func dropMachines(rng *rand.Rand) error {
	dropped, closed := 0, 0
	for range 4 + rng.IntN(8) {
		l, err := busyLab(rng)
		if err != nil {
			return err
		}
		switch rng.IntN(4) {
		case 0:
			var inside error
			if _, err := l.Kprobe("strlen", func(*kprobes.Kprobe, *x86.PtRegs) int { inside = l.Close(); return 0 }, nil); err != nil {
				return err
			}
			if n, err := l.Call("strlen", "x"); n != 1 || err != nil || !errors.Is(inside, machine.ErrInUse) {
				return fmt.Errorf("a Close in a handler: %v; the call: %d, %v", inside, n, err)
			}
			dropped++
		case 1:
			l.Close()
			l.Close()
			_, called := l.Call("gcd", 12, 18)
			_, planted := l.Kprobe("strlen", nil, nil)
			for _, err := range []error{called, planted, l.Settle(), l.Machine.PokeText(0, nil), l.Machine.Run()} {
				if err == nil || !strings.Contains(err.Error(), "closed") {
					return fmt.Errorf("after Close: %v", err)
				}
			}
			closed++
		default:
			dropped++
		}
		runtime.GC()
	}
	l, err := busyLab(rng)
	if err != nil {
		return err
	}
	defer l.Close()
	if v, err := l.Call("gcd", 12, 18); err != nil || v != 6 {
		return fmt.Errorf("after them gcd is %d, %v", v, err)
	}
	fmt.Printf("%d machines dropped without Close\n%d machines used after Close\n", dropped, closed)
	return nil
}

// callStubs calls the machine's own code (stubs, slots, trampolines, detour
// buffers), at its start and in its middle, with garbage in every register that an
// argument goes to; the guest's stack is good or bad.
func callStubs(rng *rand.Rand) error {
	l, err := busyLab(rng)
	if err != nil {
		return err
	}
	defer l.Close()
	starts, middles := 0, 0
	for range 200 {
		at := x86.Addr(0xffffffffc0000000) + x86.Addr(rng.IntN(12))<<12 + x86.Addr(rng.IntN(512))
		if rng.IntN(2) == 0 {
			at &^= 15
		}
		if at&15 == 0 {
			starts++
		} else {
			middles++
		}
		args := make([]uint64, rng.IntN(9))
		for i := range args {
			args[i] = address(rng)
		}
		if _, err := l.Machine.CallAddr(at, args...); wrong(err) != nil {
			return fmt.Errorf("call of %s with %#x: %w", at, args, err)
		}
		_ = l.Kprobes.ClearErr()
		if rng.IntN(16) == 0 {
			if _, err := l.Call("gcd", 12, 18); wrong(err) != nil {
				return fmt.Errorf("gcd after a call of %s: %w", at, err)
			}
		}
	}
	fmt.Printf("%d calls of stubs with garbage\n%d calls into the middle of stubs\n", starts, middles)
	return nil
}
