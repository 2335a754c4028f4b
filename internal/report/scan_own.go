package report

import (
	"fmt"
	"io"
	"strings"

	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/x86"
)

// Own is the answer of an image's own functions for a point.
type Own struct {
	// Errno is register_kprobe's result by them: 0, or a negative number by Rule.
	Errno     int
	Rule      rule.ID
	Boostable bool
	Optimized bool
	// The image decided these fields.
	ErrnoDecided, BoostableDecided, OptimizedDecided bool
}

// Columns that an image can decide, and OwnDiffers, which marks a column for which the
// rules give another value.
const (
	ownErrno     = "errno"
	ownBoostable = "boostable"
	ownOptimized = "optimized"
	ownDiffers   = "!"
)

// OwnTotals counts the rows that the image decided, by column, and the rows for which
// the rules give another value.
type OwnTotals map[string]int

// imageDecides are the rules of registration that the image decides. The other rules
// stay: about the place of a probe, and about tables that boot fills.
var imageDecides = map[rule.ID]bool{
	rule.None: true, rule.NotText: true, rule.Blacklisted: true, rule.JumpLabel: true, rule.StaticCall: true, rule.BugTable: true,
	rule.NotBoundary: true,
}

// bootDecides are the rules of optimization about what only a booted kernel has.
var bootDecides = map[rule.ID]bool{
	rule.NoOptprobes: true, rule.FtraceBased: true, rule.ReservedFtrace: true, rule.ReservedSMPLock: true, rule.Distance: true,
}

// own puts the image's answers in the place of the rules'.
func (s *scanner) own(row *ScanRow, at x86.Addr) {
	refused := row.Errno != 0
	if refused && !imageDecides[row.Rule] && row.Rule.Kind() != rule.OutOfLine {
		return
	}
	o := s.Own(at, row.Ftrace)
	if o.ErrnoDecided {
		row.decided(ownErrno, o.Errno != row.Errno)
		if o.Errno != row.Errno {
			row.Errno, row.Rule, row.Detail = o.Errno, o.Rule, ""
		}
	}
	if row.Errno != 0 {
		row.Boostable, row.Emulated, row.Optimized = false, false, false
		return
	}
	if o.BoostableDecided && !row.Emulated {
		row.decided(ownBoostable, o.Boostable != row.Boostable)
		if row.Boostable = o.Boostable; o.Boostable {
			row.How = probepoint.Boosted
		} else {
			row.How = probepoint.Stepped
		}
	}
	if o.OptimizedDecided && !bootDecides[row.Rule] {
		row.decided(ownOptimized, o.Optimized != row.Optimized)
		if row.Optimized != o.Optimized {
			row.Optimized, row.Rule = o.Optimized, rule.None
		}
	}
}

// decided notes that the image decided a column.
func (row *ScanRow) decided(column string, differs bool) {
	if differs {
		column += ownDiffers
	}
	if row.Decided != "" {
		column = row.Decided + "," + column
	}
	row.Decided = column
}

func (t OwnTotals) count(row *ScanRow) {
	for _, c := range strings.Split(row.Decided, ",") {
		if c != "" {
			t[strings.TrimSuffix(c, ownDiffers)]++
		}
		if strings.HasSuffix(c, ownDiffers) {
			t[ownDiffers]++
		}
	}
}

// WriteOwn writes the counts of the image's decisions, and the decisions of the rules:
// rest, a line each.
func (t *ScanTotals) WriteOwn(w io.Writer, rest []string) error {
	_, err := fmt.Fprintf(w, "decided by the image's own functions: the errno of %d points, boosting of %d, optimization of %d; the rules say otherwise %d times\n"+
		"decided by the rules:\n  %s\n",
		t.Own[ownErrno], t.Own[ownBoostable], t.Own[ownOptimized], t.Own[ownDiffers], strings.Join(rest, "\n  "))
	return err
}
