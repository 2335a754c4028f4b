//go:build unicorn && cgo && linux && amd64

package emu

import "math/rand/v2"

// chance varies what no real machine fixes, by the seed: the length and the order of the CPUs' turns, and when timers
// fall. With seed 0 nothing varies.
type chance struct{ random *rand.PCG }

// seeded makes the chance of a seed.
func seeded(seed int64) chance {
	if seed == 0 {
		return chance{}
	}
	return chance{rand.NewPCG(uint64(seed), 1)}
}

// upTo returns a number below n, 0 without a seed.
func (c chance) upTo(n uint64) uint64 {
	if c.random == nil {
		return 0
	}
	return c.random.Uint64() % n
}

// clone copies the chance, which then goes on alike in both.
func (c chance) clone() chance {
	if c.random == nil {
		return c
	}
	of := *c.random
	return chance{&of}
}

// Bounds of what varies, in nanoseconds of virtual time.
const (
	// tickPhase is the time between two ticks of most kernels at least; timers of a run begin anywhere in it.
	tickPhase = 4_000_000
	// latency is added to what wakes a CPU that waits, trapLatency to an exception.
	latency     = 20_000
	trapLatency = 2_000
)
