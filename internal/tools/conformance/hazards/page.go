package hazards

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// Report is what came of a kernel.
type Report struct {
	// Listed points have a hazard, Candidates of them can be asked for by kprobe_events,
	// and Reached of these are come to by a workload.
	Listed, Candidates, Reached int
	CPU                         string
	Seed                        uint64
	Results                     []Result
}

// Count is how many of the results have a verdict.
func (r *Report) Count(v Verdict) (n int) {
	for i := range r.Results {
		if r.Results[i].Verdict() == v {
			n++
		}
	}
	return n
}

// Markdown is the table for people.
func (r *Report) Markdown(release string) string {
	var b strings.Builder
	count := map[bool]map[Outcome]int{true: {}, false: {}}
	landed, hazards := 0, 0
	for i := range r.Results {
		x := &r.Results[i]
		count[x.Hazard != ""][x.Outcome]++
		if x.Hazard != "" {
			hazards++
			if x.Landed {
				landed++
			}
		}
	}
	fmt.Fprintf(&b, "### %s, %s\n\n", release, r.CPU)
	fmt.Fprintf(&b, "%d points are listed, kprobe_events takes a probe at %d of those that do harm, workloads come to %d. Seed %d, %s.\n\n",
		r.Listed, r.Candidates, r.Reached, r.Seed, time.Now().UTC().Format(time.DateOnly))
	fmt.Fprintf(&b, "Hazards: %d tried, %d came to the wrong address that was predicted; %s. Neighbours: %d tried; %s.\n",
		hazards, landed, counts(count[true]), len(r.Results)-hazards, counts(count[false]))
	fmt.Fprintf(&b, "As predicted: %d; not shown: %d; not as predicted: %d.\n\n", r.Count(AsPredicted), r.Count(NotShown), r.Count(NotAsPredicted))
	b.WriteString("| point | driven by | predicted | happened | neighbour | happened |\n|---|---|---|---|---|---|\n")
	near := ""
	for i := range r.Results {
		x := &r.Results[i]
		happened := strings.ReplaceAll(x.happened(), "|", "\\|")
		if v := x.Verdict(); v != AsPredicted {
			happened = fmt.Sprintf("**%s**: %s", v, happened)
		}
		if x.Hazard == "" { // its hazard is next
			near = fmt.Sprintf("`%s` | %s", x.Name, happened)
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", x.Name, x.Workload, x.predicted(), happened, near)
	}
	return b.String()
}

func counts(n map[Outcome]int) string {
	var list []string
	for _, o := range outcomes {
		if n[o] > 0 {
			list = append(list, fmt.Sprintf("%d %s", n[o], o))
		}
	}
	return strings.Join(list, ", ")
}

// last is the mark before which the table of another kernel goes.
const last = "<!-- booted: end -->\n"

// WritePage puts a kernel's table into the page, in the place of its last one.
func WritePage(page, release, text string) error {
	b, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	begin, end := fmt.Sprintf("<!-- booted %s: begin; make conformance-hazards writes what follows -->\n", release), fmt.Sprintf("<!-- booted %s: end -->\n", release)
	head, rest, ok := strings.Cut(string(b), begin)
	if !ok {
		head, tail, ok := strings.Cut(string(b), last)
		if !ok {
			return fmt.Errorf("%s: the mark %q is missing", page, strings.TrimSpace(last))
		}
		return os.WriteFile(page, []byte(head+begin+"\n"+text+"\n"+end+"\n"+last+tail), 0o644)
	}
	_, tail, ok := strings.Cut(rest, end)
	if !ok {
		return fmt.Errorf("%s: the mark %q is missing", page, strings.TrimSpace(end))
	}
	return os.WriteFile(page, []byte(head+begin+"\n"+text+"\n"+end+tail), 0o644)
}
