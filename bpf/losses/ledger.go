package losses

import (
	"fmt"

	"kprobelab/kprobes/pool"
)

// Ledger accounts for all calls while a tool ran.
type Ledger struct {
	Release string `json:"release,omitempty"`
	// Instructions are all that the guest executed meanwhile.
	Instructions uint64    `json:"instructions"`
	Programs     []Program `json:"programs"`
	Pools        []Pool    `json:"pools,omitempty"`
	// Notes are sentences about what could not be observed.
	Notes []string `json:"notes,omitempty"`
}

// Program is the ledger of a program at one probe.
type Program struct {
	Name string `json:"program"`
	ID   uint32 `json:"id"`
	// Kind is kprobe, kretprobe, kprobe.multi, kretprobe.multi, fentry, fexit, tracepoint or raw_tp.
	Kind string `json:"kind"`
	// Probe is the probed place.
	Probe  string  `json:"probe"`
	Stages []Stage `json:"stages"`
	// Cost has the instructions of the program's runs.
	Cost Cost `json:"cost"`
	// Missed is the kernel's own count of missed hits when the program was detached, nil if it has none.
	Missed *uint64 `json:"kernel_missed,omitempty"`
}

// Stage is a stage of the way from a call to the tool. The number of the next stage is N less the losses, but where the unit changes: from runs of the program to records.
type Stage struct {
	Name string `json:"stage"`
	// N is nil where it is not known; Why says why.
	N    *uint64 `json:"n"`
	Why  string  `json:"why,omitempty"`
	Lost []Loss  `json:"lost,omitempty"`
}

// Names of stages.
const (
	Calls     = "calls"
	Reached   = "reached the probe"
	Ran       = "program ran"
	Gave      = "gave a record"
	Wanted    = "records wanted"
	Submitted = "records submitted"
	Read      = "read by the tool"
)

// Loss is a difference between two stages.
type Loss struct {
	Cause string `json:"cause"`
	N     uint64 `json:"n"`
	// In are the tasks, the first ones first. Tasks after the first bounded.LossTasks are in the last one, without a name.
	In []Place `json:"in,omitempty"`
}

// Place is a task in which losses of a kind were, with the kernel's stack at the first one.
type Place = pool.Place

// Pool is the account of a kretprobe's return instances.
type Pool = pool.Usage

// Causes of losses.
const (
	Disabled    = "disabled probe"
	NotArmed    = "not armed: the text has no breakpoint and no call"
	FtraceAgain = "ftrace recursion"
	Running     = "kprobe_running: in the handler of another probe"
	Nested      = "nested hit: in the handler of a probe, or in a step"
	PoolEmpty   = "empty pool of return instances"
	NoInstance  = "no return instance, for a reason that the kernel does not count"
	TaskEnded   = "task ended"
	Inside      = "still inside"
	Active      = "prog->active: a program runs on this CPU"
	Detached    = "the program was not attached at that moment"
	RingFull    = "full ring buffer"
	PerfFull    = "full perf buffer"
	PerfOther   = "refused by the perf buffer"
	MapFull     = "full map"
	MapRefused  = "refused by a map"
	InMap       = "put its result into a map"
	Discarded   = "discarded by the program"
	Nothing     = "ran and gave nothing"
	Unread      = "not read before the buffer's end"
	Unsubmitted = "reserved and not submitted"
)

// Stage returns a stage by its name, nil if the program has none.
func (p *Program) Stage(name string) *Stage {
	for i := range p.Stages {
		if p.Stages[i].Name == name {
			return &p.Stages[i]
		}
	}
	return nil
}

// Of returns the number of losses of a cause at a stage.
func (s *Stage) Of(cause string) (n uint64) {
	for _, l := range s.Lost {
		if l.Cause == cause {
			n += l.N
		}
	}
	return n
}

// Check is an error if a stage and its losses do not make the next one.
func (p *Program) Check() error {
	for i := 1; i < len(p.Stages); i++ {
		from, to := &p.Stages[i-1], &p.Stages[i]
		if from.N == nil || to.N == nil || to.Name == Wanted {
			continue
		}
		lost := uint64(0)
		for _, l := range from.Lost {
			lost += l.N
		}
		if *from.N != *to.N+lost {
			return fmt.Errorf("%s at %s: %d %s are not %d lost and %d %s", p.Name, p.Probe, *from.N, from.Name, lost, *to.N, to.Name)
		}
	}
	return nil
}
