package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"kprobelab/errno"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
)

// ScanTotals counts rows by their answer.
type ScanTotals struct {
	// Points counts all rows.
	Points int
	// Optimized counts the accepted rows that would get a jump, Kept the other accepted
	// rows by the rule that keeps the int3, and Refused the refused rows by reason and
	// errno. Together they are Points.
	Optimized int
	Kept      map[rule.ID]int
	Refused   map[Refused]int
	// Accepted counts the accepted rows by how they run while no jump is there.
	Accepted map[probepoint.How]int
	// Hazards counts the accepted rows with a hazard.
	Hazards map[hazardKey]int
	// Own counts what the image decided, with Scan.Own.
	Own OwnTotals
	// Padding is the number of int3s in the functions that were walked; they
	// are among the rows where Listed.
	Padding int
	Listed  bool
	// Bare counts what an uncorrected x86asm gets wrong, with Scan.Bare. The
	// others count those rows only.
	Bare BareTotals
}

// Refused is a reason with its errno, which is negative.
type Refused struct {
	Reason rule.ID
	Errno  int
}

func newTotals() *ScanTotals {
	return &ScanTotals{Kept: map[rule.ID]int{}, Accepted: map[probepoint.How]int{}, Refused: map[Refused]int{}, Hazards: map[hazardKey]int{}, Own: OwnTotals{}}
}

func (t *ScanTotals) count(row *ScanRow) {
	t.Points++
	t.Own.count(row)
	if row.Errno != 0 {
		t.Refused[Refused{row.Rule, row.Errno}]++
		return
	}
	t.Accepted[row.How]++
	for i := range row.Hazards {
		t.Hazards[hazardKey{row.Hazards[i].ID, row.Hazards[i].Effect}]++
	}
	if row.Optimized {
		t.Optimized++
	} else {
		t.Kept[row.Rule]++
	}
}

func (t *ScanTotals) add(o *ScanTotals) {
	t.Points += o.Points
	t.Optimized += o.Optimized
	t.Padding += o.Padding
	t.Bare.add(&o.Bare)
	addTo(t.Kept, o.Kept)
	addTo(t.Accepted, o.Accepted)
	addTo(t.Refused, o.Refused)
	addTo(t.Hazards, o.Hazards)
	addTo(t.Own, o.Own)
}

func addTo[K comparable](to, from map[K]int) {
	for k, n := range from {
		to[k] += n
	}
}

// WriteText writes the totals as two tables, of which the numbers of each add
// up to its last row: all points by reason, and the accepted ones by how they
// run. The padding stands apart below them.
func (t *ScanTotals) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	width := len(strconv.Itoa(max(t.Points, t.Padding, 100000)))
	line := func(n int, what string) { fmt.Fprintf(b, "%*d  %s\n", width, n, what) }
	fmt.Fprintf(b, "%*s\n", width, "points")
	line(t.Optimized, "accepted, optimized: a jump to a detour buffer takes the int3's place")
	for _, id := range sorted(t.Kept, byName) {
		what := fmt.Sprintf("accepted, %s: %s", id, id.Why())
		if id == rule.None {
			what = "accepted, not optimized by the image's own functions, though no rule says so"
		}
		line(t.Kept[id], what)
	}
	for _, k := range sorted(t.Refused, compareRefused) {
		line(t.Refused[k], fmt.Sprintf("%s %s: %s", errno.Errno(-k.Errno).Name(), k.Reason, k.Reason.Why()))
	}
	line(t.Points, "in all")
	t.writeWays(b, width, line)
	t.writeHazards(b, width, line)
	if t.Padding > 0 {
		fmt.Fprintln(b)
		line(t.Padding, padding[t.Listed])
	}
	return b.Flush()
}

func (t *ScanTotals) writeWays(w io.Writer, width int, line func(int, string)) {
	fmt.Fprintf(w, "\n%*s, of those accepted, while no jump is there\n", width, "how")
	accepted := 0
	for how := probepoint.Stepped; how <= probepoint.Ftrace; how++ {
		line(t.Accepted[how], how.String()+": "+how.Means())
		accepted += t.Accepted[how]
	}
	line(accepted, "accepted")
}

// padding says whether the int3s are among the rows.
var padding = map[bool]string{false: "int3 padding, not among these", true: "int3 padding, among these"}

// sorted lists the keys, the most frequent first.
func sorted[K comparable](m map[K]int, then func(a, b K) int) []K {
	return slices.SortedFunc(maps.Keys(m), func(a, b K) int {
		return cmp.Or(cmp.Compare(m[b], m[a]), then(a, b))
	})
}

func compareRefused(a, b Refused) int {
	return cmp.Or(byName(a.Reason, b.Reason), cmp.Compare(b.Errno, a.Errno))
}

func byName(a, b rule.ID) int { return cmp.Compare(a.String(), b.String()) }
