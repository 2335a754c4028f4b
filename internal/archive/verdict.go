package archive

import (
	"cmp"
	"slices"
	"sync"

	"kprobelab/errno"
	"kprobelab/internal/report"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
)

// verdict is one of the answers that register_kprobe gives in a kernel.
type verdict struct {
	// Runs says how an accepted probe runs. The other fields are for a refused one.
	Runs  string    `json:"runs,omitempty"`
	Errno int       `json:"errno,omitempty"`
	Kind  rule.Kind `json:"kind,omitempty"`
	Rule  string    `json:"rule,omitempty"`
	Why   string    `json:"why,omitempty"`
}

func verdictOf(runs string, err error) verdict {
	r, refused := err.(*probepoint.Refusal) // never wrapped: Verdict says so
	if !refused {
		return verdict{Runs: runs}
	}
	return verdict{Errno: int(r.Errno), Kind: r.Rule.Kind(), Rule: r.Rule.String(), Why: r.Why}
}

// notBoundary and notText are the numbers of two verdicts that every file has.
const (
	notBoundary = 0
	notText     = 1
)

// verdicts numbers them. It is safe for concurrent use.
type verdicts struct {
	mu     sync.RWMutex
	number map[verdictKey]byte
	list   []verdict
	// tooMany: more than a byte can number.
	tooMany bool
}

func newVerdicts() *verdicts {
	v := &verdicts{number: map[verdictKey]byte{}}
	for _, id := range []rule.ID{rule.NotBoundary, rule.NotText} {
		v.of("", probepoint.Refuse(id, 0, ""))
	}
	return v
}

// of is the number of an answer.
func (v *verdicts) of(runs string, err error) byte {
	key := verdictKey{runs: runs}
	if r, refused := err.(*probepoint.Refusal); refused {
		key.id, key.errno = r.Rule, r.Errno
	}
	v.mu.RLock()
	n, ok := v.number[key]
	v.mu.RUnlock()
	if ok {
		return n
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if n, ok := v.number[key]; ok {
		return n
	}
	if len(v.list) > 255 {
		v.tooMany = true
		return 0
	}
	n = byte(len(v.list))
	v.number[key], v.list = n, append(v.list, verdictOf(runs, err))
	return n
}

// verdictKey tells verdicts apart: a rule with its errno has one wording.
type verdictKey struct {
	runs  string
	id    rule.ID
	errno errno.Errno
}

// byUse numbers the verdicts anew, by the number of their addresses, and returns the
// new number of each. The first two, which every file has, keep their numbers.
func (v *verdicts) byUse(uses *[256]int) (renumber [256]byte) {
	order := make([]int, len(v.list))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order[2:], func(a, b int) int {
		x, y := &v.list[a], &v.list[b]
		return cmp.Or(uses[b]-uses[a], cmp.Compare(x.Rule, y.Rule), cmp.Compare(x.Runs, y.Runs), cmp.Compare(x.Why, y.Why), x.Errno-y.Errno)
	})
	list := make([]verdict, len(order))
	for to, from := range order {
		list[to], renumber[from] = v.list[from], byte(to)
	}
	v.list = list
	return renumber
}

// answer is a verdict as report.Kernel gives it.
type answer struct {
	runs string
	err  *probepoint.Refusal
}

var rules = func() map[rule.Kind]map[string]rule.ID {
	all := map[rule.Kind]map[string]rule.ID{}
	for _, kind := range []rule.Kind{rule.Registration, rule.OutOfLine, rule.Optimization, rule.Asking} {
		all[kind] = map[string]rule.ID{}
		for _, id := range rule.Of(kind) {
			all[kind][id.String()] = id
		}
	}
	return all
}()

// answers reads the verdicts of a file.
func answers(list []verdict) ([]answer, error) {
	out := make([]answer, len(list))
	for i, v := range list {
		if v.Errno == 0 {
			if !slices.Contains([]string{report.RunsFtrace, report.RunsOptimized, report.RunsInt3}, v.Runs) {
				return nil, damaged("verdict %d is none", i)
			}
			out[i].runs = v.Runs
			continue
		}
		id, ok := rules[v.Kind][v.Rule]
		if !ok {
			return nil, damaged("verdict %d has a rule %q that is not known", i, v.Rule)
		}
		out[i].err = &probepoint.Refusal{Errno: errno.Errno(v.Errno), Rule: id, Why: v.Why}
	}
	if len(out) < 2 {
		return nil, damaged("it has no verdicts")
	}
	return out, nil
}
