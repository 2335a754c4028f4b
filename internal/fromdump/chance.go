package fromdump

import "math/rand/v2"

// Chance varies what no real machine fixes, by the seed: the length and the order of the CPUs' turns, and when timers
// fall. With seed 0 nothing varies.
type Chance struct{ random *rand.PCG }

// Seeded makes the chance of a seed.
func Seeded(seed int64) Chance {
	if seed == 0 {
		return Chance{}
	}
	return Chance{rand.NewPCG(uint64(seed), 1)}
}

// UpTo returns a number below n, 0 without a seed.
func (c Chance) UpTo(n uint64) uint64 {
	if c.random == nil {
		return 0
	}
	return c.random.Uint64() % n
}

// Clone copies the chance, which then goes on alike in both.
func (c Chance) Clone() Chance {
	if c.random == nil {
		return c
	}
	of := *c.random
	return Chance{&of}
}

// Bounds of what varies, in nanoseconds of virtual time.
const (
	// TickPhase is the time between two ticks of most kernels at least; timers of a run begin anywhere in it.
	TickPhase = 4_000_000
	// Latency is added to what wakes a CPU that waits, TrapLatency to an exception.
	Latency     = 20_000
	TrapLatency = 2_000
)

// Slice is the number of instructions of a CPU's turn. It is a compromise: in an engine that translates, a
// turn's change costs as much as some thousand instructions.
const Slice = 20_000
