//go:build linux

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// tally counts the runs and the findings, and holds the largest memory and times.
type tally struct {
	mu       sync.Mutex
	tried    map[string]int
	spent    map[string]time.Duration
	memory   most[int64]
	longest  most[time.Duration]
	busiest  most[time.Duration]
	findings int
}

// most is the largest value so far, with its name.
type most[T int64 | time.Duration] struct {
	value T
	what  string
}

func (m *most[T]) see(v T, what string) {
	if v > m.value {
		*m = most[T]{v, what}
	}
}

func newTally() *tally { return &tally{tried: map[string]int{}, spent: map[string]time.Duration{}} }

// ran counts a run that took so long, of it so much on a processor, and so much memory.
func (t *tally) ran(kind string, took, cpu time.Duration, memory int64, command string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tried[kind]++
	t.spent[kind] += took
	t.memory.see(memory, command)
	t.longest.see(took, command)
	t.busiest.see(cpu, command)
}

func (t *tally) count(kind string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tried[kind] += n
}

func (t *tally) found(n int, kind, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.findings++
	fmt.Printf("FOUND case %d, %s: %s\n", n, kind, what)
}

func (t *tally) print(w io.Writer) {
	all := time.Duration(0)
	for _, d := range t.spent {
		all += d
	}
	for _, k := range slices.Sorted(maps.Keys(t.tried)) {
		share := ""
		if t.spent[k] > 0 {
			share = fmt.Sprintf(", %.1f%% of the time", 100*float64(t.spent[k])/float64(all))
		}
		fmt.Fprintf(w, "%8d  %s%s\n", t.tried[k], k, share)
	}
	fmt.Fprintf(w, "most memory  %d MiB: %s\n", t.memory.value>>20, t.memory.what)
	fmt.Fprintf(w, "longest run  %s: %s\n", t.longest.value.Round(time.Millisecond), t.longest.what)
	fmt.Fprintf(w, "most CPU     %s: %s\n", t.busiest.value.Round(time.Millisecond), t.busiest.what)
	fmt.Fprintf(w, "%d findings\n", t.findings)
}
