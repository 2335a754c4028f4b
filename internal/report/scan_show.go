package report

import (
	"errors"
	"fmt"
	"io"
)

// ScanOutput holds the writers that a scan is shown on.
type ScanOutput struct {
	// Err gets the heading, and the totals of Own and Bare, where rows are data on Out.
	Out, Err io.Writer
	// Done is called after the last row.
	Done func()
}

// ErrUncorrected: x86asm answers wrongly, and no override puts it right.
var ErrUncorrected = errors.New("no override puts x86asm right")

// Show writes the heading and the rows that write writes, or the totals. rest are the decisions of the rules, with Scan.Own.
func (s *Scan) Show(o *ScanOutput, head string, f ScanFormat, rest func() []string, write func(ScanFormat) (*ScanTotals, error)) error {
	to := o.Err
	if f == ScanNone {
		to = o.Out
	}
	fmt.Fprintln(to, head)
	totals, err := write(f)
	o.Done()
	switch {
	case err != nil:
		return err
	case s.Own != nil:
		if f == ScanNone {
			if err := totals.WriteText(o.Out); err != nil {
				return err
			}
			fmt.Fprintln(to)
		}
		return totals.WriteOwn(to, rest())
	case s.Bare:
		return totals.Bare.show(o, f)
	case f != ScanNone:
		return nil
	}
	return totals.WriteText(o.Out)
}

// show writes the counts; where rows are data, the totals alone, to o.Err.
func (t *BareTotals) show(o *ScanOutput, f ScanFormat) error {
	write, to := t.WriteText, o.Out
	if f != ScanNone {
		write, to = t.WriteTotals, o.Err
	}
	if err := write(to); err != nil {
		return err
	}
	if t.Uncorrected > 0 {
		return fmt.Errorf("%w at %s", ErrUncorrected, Addresses(t.Uncorrected))
	}
	return nil
}
