package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
)

// functionSame: nothing of the function changed.
const functionSame = "same"

// functionFates are the words for the fates of functions, in the order of the summary.
var functionFates = []struct{ kind, words string }{
	{functionSame, "the same in every answer"},
	{ChangeAnswer, "with another answer somewhere"},
	{ChangeCode, "with other instructions"},
	{ChangeName, "the same but for a suffix of the name"},
	{ChangeGone, "of the old kernel only"},
	{ChangeAdded, "of the new kernel only"},
}

// mostKinds is the largest number of kinds of changed answers in the summary.
const mostKinds = 20

// WriteText writes a summary: the fates of points, in columns that add up to the two scans; the
// fates of functions; and the changes from one answer to another, the most frequent first. With
// all, a line for each change follows.
func (c *ScanChanges) WriteText(w io.Writer, all bool) error {
	b := bufio.NewWriter(w)
	width := len(strconv.Itoa(max(c.Old.Rows, c.New.Rows, 100000)))
	fmt.Fprintf(b, "%*s %*s  points\n", width, "old", width, "new")
	for f, n := range c.Points {
		fmt.Fprintf(b, "%*d %*d  %s\n", width, n.Old, width, n.New, fateNames[f])
	}
	fmt.Fprintf(b, "%*d %*d  in all\n\nfunctions\n", width, c.Old.Rows, width, c.New.Rows)
	for _, f := range functionFates {
		fmt.Fprintf(b, "%*d  %s\n", width, c.Functions[f.kind], f.words)
	}
	if c.Renames > 0 {
		fmt.Fprintf(b, "%*d  of these have another suffix in the new kernel, and are compared all the same\n", width, c.Renames)
	}
	c.writeKinds(b, width)
	switch {
	case len(c.Changes) == 0:
	case !all:
		fmt.Fprintf(b, "\n--all lists the %s\n", Counted(len(c.Changes), "change"))
	default:
		fmt.Fprintln(b)
		for i := range c.Changes {
			fmt.Fprintln(b, &c.Changes[i])
		}
	}
	return b.Flush()
}

// writeKinds writes which answers became which.
func (c *ScanChanges) writeKinds(w io.Writer, width int) {
	type kind struct{ old, new ScanAnswer }
	points := map[kind]int{}
	for i := range c.Changes {
		if x := &c.Changes[i]; x.Change == ChangeAnswer {
			points[kind{*x.Old, *x.New}]++
		}
	}
	if len(points) == 0 {
		return
	}
	var list []kind
	for k := range points {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b kind) int {
		return cmp.Or(points[b]-points[a], cmp.Compare(a.old.String(), b.old.String()), cmp.Compare(a.new.String(), b.new.String()))
	})
	fmt.Fprintln(w, "\nanswers")
	for i, k := range list {
		if i == mostKinds {
			fmt.Fprintf(w, "%*s  and %s\n", width, "", Counted(len(list)-mostKinds, "kind")+" more")
			break
		}
		fmt.Fprintf(w, "%*d  %s -> %s\n", width, points[k], k.old, k.new)
	}
}

// scannedRow is a row of a scan, with the fields that are compared.
type scannedRow struct {
	addr   uint64
	symbol string
	offsetAnswer
}

// ScanWhole scans all functions of an image. It returns the answers in the form in which ReadScan
// returns a file's.
func ScanWhole(s *Scan) (*ScanFile, error) {
	functions, err := s.Functions()
	if err != nil {
		return nil, err
	}
	l := newScanReader(s.Image)
	chunks := codeChunks(functions, chunkCode)
	var done, total int64
	for _, c := range chunks {
		total += c.size
	}
	scanners := sync.Pool{New: func() any { return s.scanner() }}
	err = inOrder(len(chunks), func(i int) (list []scannedRow) {
		one := scanners.Get().(*scanner)
		defer scanners.Put(one)
		for _, sym := range functions[chunks[i].from:chunks[i].to] {
			one.function(sym, func(row *ScanRow) {
				if row.padding && !s.Padding {
					return
				}
				list = append(list, scannedRow{uint64(row.Addr.Addr), row.Symbol, offsetAnswer{row.Offset, ScanAnswer{
					Errno: row.Errno, Ftrace: row.Ftrace, Boostable: row.Boostable, Emulated: row.Emulated, Optimized: row.Optimized, Reason: row.Reason,
				}}})
			})
		}
		return list
	}, func(i int, list []scannedRow) error {
		for j := range list {
			l.row(list[j].addr, list[j].symbol, list[j].offset, list[j].ScanAnswer)
		}
		if done += chunks[i].size; s.Progress != nil {
			s.Progress(done, total)
		}
		return nil
	})
	return l.f.sorted(), err
}
