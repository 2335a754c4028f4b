package bench

import (
	"errors"
	"fmt"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
)

// Options are the choices of a run; the zero value of each is its default.
type Options struct {
	// Target, where set, is measured in place of the guest kernel's functions.
	Target *Target
	// Paths are the names of the paths to measure; all by default.
	Paths []string
	// Rounds is the number of measurements of each path, each one unprobed and probed: 101 by
	// default, at most MaxRounds.
	Rounds int
	// Hits is the number of hits of each round: 1,000 by default, at most MaxHits.
	Hits int
	// Others are numbers of probes to plant elsewhere, at most MaxOthers. Each
	// path is measured with each number, in the same rounds; by default with
	// none.
	Others []int
	// Hardware is the processor of the modelled figures; the documentation's x86-64 by default.
	Hardware Hardware
	// Progress, where set, is called with the progress of the run.
	Progress func(stage string, done, total int64)
}

// The most that a run does.
const (
	MaxRounds = bounded.BenchRounds
	MaxHits   = bounded.BenchHits
	MaxOthers = bounded.BenchOthers
)

// What a path's handler is.
const (
	// HandlerGo: a function in Go that counts.
	HandlerGo = "go"
	// HandlerNone: the path runs none.
	HandlerNone = "none"
)

// ErrNoPath is the class of a path's name that does not exist.
var ErrNoPath = errors.New("no such path")

func (o *Options) fill() ([]Path, error) {
	if o.Rounds == 0 {
		o.Rounds = 101
	}
	if o.Hits == 0 {
		o.Hits = 1_000
	}
	if len(o.Others) == 0 {
		o.Others = []int{0}
	}
	if o.Hardware.Name == "" {
		o.Hardware = published[0]
	}
	if o.Rounds < 0 || o.Rounds > MaxRounds {
		return nil, fmt.Errorf("%d rounds: it can be 1 to %d: %w", o.Rounds, MaxRounds, errno.EINVAL)
	}
	if o.Hits < 0 || o.Hits > MaxHits {
		return nil, fmt.Errorf("%d hits: it can be 1 to %d: %w", o.Hits, MaxHits, errno.EINVAL)
	}
	for _, n := range o.Others {
		if n < 0 || n > MaxOthers {
			return nil, fmt.Errorf("%d other probes: it can be 0 to %d: %w", n, MaxOthers, errno.EINVAL)
		}
	}
	return Choose(o.Paths)
}

// Choose finds paths by name, in the order of the table; no names means all. The error is
// ErrNoPath.
func Choose(names []string) ([]Path, error) {
	if len(names) == 0 {
		return Paths(), nil
	}
	want := map[string]bool{}
	for _, n := range names {
		want[n] = true
	}
	var chosen []Path
	var all []string
	for _, p := range paths {
		all = append(all, p.Name)
		if want[p.Name] {
			chosen = append(chosen, p)
			delete(want, p.Name)
		}
	}
	for _, n := range names {
		if want[n] {
			return nil, fmt.Errorf("%w: %q: there are %s", ErrNoPath, n, strings.Join(all, ", "))
		}
	}
	return chosen, nil
}
