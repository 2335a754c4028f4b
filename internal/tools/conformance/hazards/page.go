package hazards

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// Report holds the results of all tries on one kernel.
type Report struct {
	// Listed points have a hazard, Candidates of them can be asked for by kprobe_events,
	// and Reached of these are come to by a workload.
	Listed, Candidates, Reached int
	CPU                         string
	Seed                        uint64
	// Results holds the results of the drawn points, Others of the points that need a
	// module, and Reproduced of the module's own functions.
	Results, Others []Result
	Reproduced      []Reproduction
}

// Differ counts the results that are not as predicted, or not shown.
func (r *Report) Differ() int {
	differ := len(r.Results) - count(r.Results, AsPredicted) + len(r.Others) - count(r.Others, AsPredicted)
	for i := range r.Reproduced {
		if r.Reproduced[i].Verdict() != AsPredicted {
			differ++
		}
	}
	return differ
}

// count returns the number of results with the verdict v.
func count(list []Result, v Verdict) (n int) {
	for i := range list {
		if list[i].Verdict() == v {
			n++
		}
	}
	return n
}

// Markdown is the table for people.
func (r *Report) Markdown(release string) string {
	var b strings.Builder
	outcomes := map[bool]map[Outcome]int{true: {}, false: {}}
	landed, hazards := 0, 0
	for i := range r.Results {
		x := &r.Results[i]
		outcomes[x.Hazard != ""][x.Outcome]++
		if x.Hazard != "" {
			hazards++
			if x.Landed {
				landed++
			}
		}
	}
	fmt.Fprintf(&b, "### %s, %s\n\n", release, r.CPU)
	fmt.Fprintf(&b, "%d points are listed, kprobe_events takes a probe at %d harmful ones, workloads come to %d. Seed %d, %s.\n\n",
		r.Listed, r.Candidates, r.Reached, r.Seed, time.Now().UTC().Format(time.DateOnly))
	fmt.Fprintf(&b, "Hazards: %d tried, %d came to the wrong address that was predicted; %s. Neighbours: %d tried; %s.\n",
		hazards, landed, counts(outcomes[true]), len(r.Results)-hazards, counts(outcomes[false]))
	fmt.Fprintf(&b, "As predicted: %d; not shown: %d; not as predicted: %d.\n\n", count(r.Results, AsPredicted), count(r.Results, NotShown), count(r.Results, NotAsPredicted))
	if len(r.Results) > 0 {
		table(&b, r.Results)
	}
	if len(r.Others) > 0 {
		b.WriteString("\nWith probes of a module:\n\n")
		table(&b, r.Others)
	}
	if len(r.Reproduced) > 0 {
		b.WriteString("\nThe module's own functions (`internal/tools/conformance/hazards/module/cases.c`), with `-cpu max`:\n\n")
		b.WriteString("| function | predicted | happened |\n|---|---|---|\n")
		for i := range r.Reproduced {
			x := &r.Reproduced[i]
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", x.Name, x.predicted(), cell(x.Verdict(), x.happened()))
		}
	}
	return b.String()
}

// table has a row for each hazard, with its neighbour, which comes before it.
func table(b *strings.Builder, list []Result) {
	b.WriteString("| point | driven by | predicted | happened | neighbour | happened |\n|---|---|---|---|---|---|\n")
	near := "|"
	for i := range list {
		x := &list[i]
		happened := cell(x.Verdict(), x.happened())
		if x.Hazard == "" {
			near = fmt.Sprintf("`%s` | %s", x.Name, happened)
			continue
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", x.Name, x.Workload, x.predicted(), happened, near)
		near = "|"
	}
}

func cell(v Verdict, happened string) string {
	happened = strings.ReplaceAll(happened, "|", "\\|")
	if v != AsPredicted {
		happened = fmt.Sprintf("**%s**: %s", v, happened)
	}
	return happened
}

func counts(n map[Outcome]int) string {
	var list []string
	for _, o := range allOutcomes {
		if n[o] > 0 {
			list = append(list, fmt.Sprintf("%d %s", n[o], o))
		}
	}
	if list == nil {
		return "none"
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
