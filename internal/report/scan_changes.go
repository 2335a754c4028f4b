package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// The kinds of change between two kernels.
const (
	// ChangeAnswer: the same point of the same function has another answer.
	ChangeAnswer = "answer"
	// ChangeCode: the function has other instruction boundaries, so that its
	// points cannot be compared one by one.
	ChangeCode = "code"
	// ChangeGone and ChangeAdded: the function is in one of the kernels only.
	ChangeGone  = "gone"
	ChangeAdded = "added"
	// ChangeName: nothing but the function's suffix.
	ChangeName = "name"
)

// ScanChange is one difference between two scans.
type ScanChange struct {
	// Change is its kind, one of the constants.
	Change string `json:"change"`
	Symbol string `json:"symbol"`
	// Renamed is the function's name in the new kernel, if the compiler has given it another
	// suffix; else "".
	Renamed string `json:"renamed,omitempty"`
	// Nth counts functions of one name, from 0, by their order.
	Nth int `json:"nth,omitempty"`
	// Offset is the point's offset, if the answer has changed.
	Offset *uint64 `json:"offset,omitempty"`
	// Old and New are the answers of a point, OldPoints and NewPoints what a
	// function comes to.
	Old       *ScanAnswer `json:"old,omitempty"`
	New       *ScanAnswer `json:"new,omitempty"`
	OldPoints *ScanCount  `json:"old_points,omitempty"`
	NewPoints *ScanCount  `json:"new_points,omitempty"`
}

// ScanCount counts the points of a function, and how many of them are optimized.
type ScanCount struct {
	Points    int `json:"points"`
	Optimized int `json:"optimized"`
}

// ScanChanges lists the changes between two kernels: function by function in the old
// one's order, then the functions that the new one adds.
type ScanChanges struct {
	Old, New *ScanFile
	Changes  []ScanChange
	// Functions holds the number of functions by their kind of change. Renames is the number of
	// functions that have another suffix in the new kernel.
	Functions map[string]int
	Renames   int
	// Points counts the old and the new scan's points by their fate.
	Points [numFates]struct{ Old, New int }
}

// fate says whether and how a point changed.
type fate int

const (
	fateSame fate = iota
	fateAnswer
	fateCode
	fateOneOnly
	numFates
)

var fateNames = [numFates]string{
	fateSame:    "same answer",
	fateAnswer:  "another answer",
	fateCode:    "in functions with other instructions",
	fateOneOnly: "in functions of this kernel only",
}

// CompareScans lists the changes from one scan to another. Functions are matched by name, several of
// one name in their order, and then by name without the compiler's suffixes; points by their offset.
func CompareScans(before, after *ScanFile) *ScanChanges {
	c := &ScanChanges{Old: before, New: after}
	renamed := joined(before, after)
	taken := map[functionKey]bool{}
	for _, k := range before.keys {
		was, is := before.functions[k], after.functions[k]
		to := ""
		if now, ok := renamed[k]; ok {
			is, to, taken[now] = after.functions[now], now.name, true
		}
		first := len(c.Changes)
		switch {
		case is == nil:
			c.whole(ChangeGone, k, was, nil)
		case !sameBoundaries(was, is):
			c.whole(ChangeCode, k, was, is)
		default:
			c.answers(k, was, is)
			if to != "" && len(c.Changes) == first {
				c.Changes = append(c.Changes, ScanChange{Change: ChangeName, Symbol: k.name, Nth: k.nth})
			}
		}
		for i := first; i < len(c.Changes); i++ {
			c.Changes[i].Renamed = to
		}
		c.function(c.Changes[first:], to != "")
	}
	for _, k := range after.keys {
		if before.functions[k] == nil && !taken[k] {
			c.whole(ChangeAdded, k, nil, after.functions[k])
			c.Functions[ChangeAdded]++
		}
	}
	return c
}

// function counts a function by its fate.
func (c *ScanChanges) function(changes []ScanChange, renamed bool) {
	if c.Functions == nil {
		c.Functions = map[string]int{}
	}
	if renamed {
		c.Renames++
	}
	if len(changes) == 0 {
		c.Functions[functionSame]++
		return
	}
	c.Functions[changes[0].Change]++
}

func sameBoundaries(a, b *scanned) bool {
	return slices.EqualFunc(a.rows, b.rows, func(a, b offsetAnswer) bool { return a.offset == b.offset })
}

// whole notes a change of a function as a whole.
func (c *ScanChanges) whole(kind string, k functionKey, was, is *scanned) {
	f := fateOneOnly
	if kind == ChangeCode {
		f = fateCode
	}
	change := ScanChange{Change: kind, Symbol: k.name, Nth: k.nth, OldPoints: was.count(), NewPoints: is.count()}
	if was != nil {
		c.Points[f].Old += len(was.rows)
	}
	if is != nil {
		c.Points[f].New += len(is.rows)
	}
	c.Changes = append(c.Changes, change)
}

func (s *scanned) count() *ScanCount {
	if s == nil {
		return nil
	}
	return &ScanCount{len(s.rows), s.optimized}
}

// answers compares the points of a function one by one.
func (c *ScanChanges) answers(k functionKey, was, is *scanned) {
	for i := range was.rows {
		a, b := &was.rows[i], &is.rows[i]
		f := fateSame
		if a.ScanAnswer != b.ScanAnswer {
			f = fateAnswer
			c.Changes = append(c.Changes, ScanChange{
				Change: ChangeAnswer, Symbol: k.name, Nth: k.nth,
				Offset: &a.offset, Old: &a.ScanAnswer, New: &b.ScanAnswer,
			})
		}
		c.Points[f].Old++
		c.Points[f].New++
	}
}

// WriteJSON writes one object for each change, a line each.
func (c *ScanChanges) WriteJSON(w io.Writer) error {
	b := bufio.NewWriter(w)
	enc := json.NewEncoder(b)
	for i := range c.Changes {
		if err := enc.Encode(&c.Changes[i]); err != nil {
			return err
		}
	}
	return b.Flush()
}

// String is the change in one line.
func (c *ScanChange) String() string {
	name := c.Symbol
	if c.Nth > 0 {
		name += fmt.Sprintf(" (no. %d of that name)", c.Nth+1)
	}
	if c.Renamed != "" {
		name += " (now " + c.Renamed + ")"
	}
	switch c.Change {
	case ChangeAnswer:
		if *c.Offset > 0 {
			name = fmt.Sprintf("%s+%#x", name, *c.Offset)
		}
		return fmt.Sprintf("%s: %s -> %s", name, c.Old, c.New)
	case ChangeName:
		return name + ": the name alone"
	case ChangeGone:
		return fmt.Sprintf("%s: gone, had %s", name, c.OldPoints)
	case ChangeAdded:
		return fmt.Sprintf("%s: new, has %s", name, c.NewPoints)
	}
	return fmt.Sprintf("%s: other instructions, %s -> %s", name, c.OldPoints, c.NewPoints)
}

// String is the count in words.
func (c *ScanCount) String() string {
	unit := "points"
	if c.Points == 1 {
		unit = "point"
	}
	return fmt.Sprintf("%d %s, %d optimized", c.Points, unit, c.Optimized)
}
