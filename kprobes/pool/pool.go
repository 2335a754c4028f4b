// Package pool keeps the account of the return instances of a kretprobe: how many are in use, who has them, and how many would have
// sufficed for all calls.
//
// It must not know which kernel has the pool, nor how its calls are observed.
package pool

import (
	"fmt"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
)

// Usage counts the instances of a pool that were used and missed.
type Usage struct {
	Probe     string `json:"probe"`
	MaxActive int    `json:"maxactive"`
	// Peak is the most instances in use at once. Wanted is the smallest maxactive that would have lost no call.
	Peak   int    `json:"peak"`
	Wanted int    `json:"wanted"`
	Missed uint64 `json:"missed"`
	// AtLeast: not every call without an instance was followed to its return, and Wanted may be too small.
	AtLeast bool `json:"at_least,omitempty"`
	// Holders had the instances at the peak of what was wanted.
	Holders []Place `json:"holders,omitempty"`
}

// Place is a task in which something was so many times, with the kernel's stack at the first.
type Place struct {
	PID   int      `json:"pid"`
	Comm  string   `json:"comm"`
	N     uint64   `json:"n"`
	Stack []string `json:"stack,omitempty"`
}

// Account follows the calls of a pool. T tells tasks apart.
type Account[T comparable] struct {
	Usage
	tasks        []*holder[T]
	used, wanted int
}

// holder is a task with calls that have an instance or want one; place is known once it was asked for.
type holder[T comparable] struct {
	task  T
	n     uint64
	who   func() Place
	place *Place
}

// Enter: a call begins, which has an instance, or lacks one. who tells about its task and stack, while the call has not returned.
func (a *Account[T]) Enter(task T, lacks bool, who func() Place) {
	i := slices.IndexFunc(a.tasks, func(h *holder[T]) bool { return h.task == task })
	if i < 0 {
		i = len(a.tasks)
		a.tasks = append(a.tasks, &holder[T]{task: task, who: who})
	}
	a.tasks[i].n++
	a.wanted++
	if !lacks {
		a.used++
		a.Peak = max(a.Peak, a.used)
	}
	if a.wanted > a.Wanted {
		a.Wanted = a.wanted
		a.keep()
	}
}

// Leave: such a call has returned, or its task has ended.
func (a *Account[T]) Leave(task T, lacks bool) {
	i := slices.IndexFunc(a.tasks, func(h *holder[T]) bool { return h.task == task })
	if i < 0 {
		return
	}
	if a.tasks[i].n--; a.tasks[i].n == 0 {
		a.tasks = slices.Delete(a.tasks, i, i+1)
	}
	a.wanted--
	if !lacks {
		a.used--
	}
}

// keep notes who has the instances now. Tasks after the first bounded.LossTasks are together in the last place.
func (a *Account[T]) keep() {
	a.Holders = a.Holders[:0]
	for n, h := range a.tasks {
		if n >= bounded.LossTasks {
			if n == bounded.LossTasks {
				a.Holders = append(a.Holders, Place{Comm: "others"})
			}
			a.Holders[bounded.LossTasks].N += h.n
			continue
		}
		if h.place == nil {
			p := h.who()
			h.place = &p
		}
		p := *h.place
		p.N = h.n
		a.Holders = append(a.Holders, p)
	}
	slices.SortStableFunc(a.Holders[:min(len(a.Holders), bounded.LossTasks)], func(a, b Place) int { return a.PID - b.PID })
}

// Write writes the account for people.
func (u *Usage) Write(b *strings.Builder) {
	fmt.Fprintf(b, "return instances of %s: maxactive %d, at most %d in use at once, %d calls without one\n", u.Probe, u.MaxActive, u.Peak, u.Missed)
	least := ""
	if u.AtLeast {
		least = "at least "
	}
	fmt.Fprintf(b, "  the smallest maxactive that would have lost none: %s%d\n", least, u.Wanted)
	WritePlaces(b, u.Holders)
}

// WritePlaces writes tasks and their stacks.
func WritePlaces(b *strings.Builder, list []Place) {
	const most = 3
	for i, in := range list {
		if i == most {
			fmt.Fprintf(b, "%18s%d more tasks\n", "", len(list)-most)
			return
		}
		fmt.Fprintf(b, "%18s%d in %s (%d)", "", in.N, in.Comm, in.PID)
		if len(in.Stack) > 0 {
			fmt.Fprintf(b, ": %s", strings.Join(in.Stack[:min(len(in.Stack), 6)], " < "))
		}
		b.WriteString("\n")
	}
}
