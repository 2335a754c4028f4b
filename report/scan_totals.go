package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"kprobelab/errno"
	"kprobelab/probepoint"
	"kprobelab/slot"
)

// ScanTotals counts rows by their answer.
type ScanTotals struct {
	// Points is how many rows there are.
	Points int
	// Accepted counts the accepted rows by how they would run; Refused the
	// others by reason and errno. Together they are Points.
	Accepted map[probepoint.How]int
	Refused  map[Refused]int
	// Padding is the number of int3s in the functions that were walked; they
	// are among the rows where Listed.
	Padding int
	Listed  bool
}

// Refused is a reason with its errno, which is negative.
type Refused struct {
	Reason string
	Errno  int
}

func newTotals() *ScanTotals {
	return &ScanTotals{Accepted: map[probepoint.How]int{}, Refused: map[Refused]int{}}
}

func (t *ScanTotals) count(row *ScanRow) {
	t.Points++
	if row.Errno == 0 {
		t.Accepted[row.How]++
	} else {
		t.Refused[Refused{row.Reason, row.Errno}]++
	}
}

func (t *ScanTotals) add(o *ScanTotals) {
	t.Points += o.Points
	t.Padding += o.Padding
	for k, n := range o.Accepted {
		t.Accepted[k] += n
	}
	for k, n := range o.Refused {
		t.Refused[k] += n
	}
}

// ways are the ways to run, with their meaning.
var ways = []struct {
	how  probepoint.How
	what string
}{
	{probepoint.Stepped, "a copy runs, and a trap behind it returns"},
	{probepoint.Boosted, "a copy runs, and a jump behind it returns"},
	{probepoint.Emulated, "kprobes does what the instruction would"},
	{probepoint.Ftrace, "called by the function tracer"},
}

// WriteText writes the totals as a table, whose numbers add up to the last
// row; the padding stands apart below it.
func (t *ScanTotals) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	width := len(strconv.Itoa(max(t.Points, t.Padding, 100000)))
	line := func(n int, what string) { fmt.Fprintf(b, "%*d  %s\n", width, n, what) }
	fmt.Fprintf(b, "%*s\n", width, "points")
	for _, way := range ways {
		line(t.Accepted[way.how], "accepted, "+way.how.String()+": "+way.what)
	}
	for _, k := range t.refusedRows() {
		line(t.Refused[k], fmt.Sprintf("%s %s: %s", errno.Errno(-k.Errno).Name(), k.Reason, why(k.Reason)))
	}
	line(t.Points, "in all")
	if t.Padding > 0 {
		fmt.Fprintln(b)
		line(t.Padding, padding[t.Listed])
	}
	return b.Flush()
}

// padding says whether the int3s are among the rows.
var padding = map[bool]string{false: "int3 padding, not among these", true: "int3 padding, among these"}

// refusedRows lists the reasons, the most frequent first.
func (t *ScanTotals) refusedRows() []Refused {
	keys := make([]Refused, 0, len(t.Refused))
	for k := range t.Refused {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b Refused) int {
		return cmp.Or(cmp.Compare(t.Refused[b], t.Refused[a]), cmp.Compare(a.Reason, b.Reason), cmp.Compare(b.Errno, a.Errno))
	})
	return keys
}

// why is a reason's sentence, whichever package has the rule.
func why(reason string) string {
	if reason == string(RuleLine) {
		return "the line is no point"
	}
	if s := probepoint.Rule(reason).Why(); s != "" {
		return s
	}
	return slot.Rule(reason).Why()
}
