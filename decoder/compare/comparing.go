package compare

import (
	"cmp"
	"fmt"
	"io"
)

// Comparing asks decoders the questions of one comparison: Among compares others with this program's, Versions an old decoder
// with a new one.
type Comparing interface {
	// Walk asks about code, Fuzz about generated encodings, FuzzEnumerated about a fixed list.
	Walk(code []byte, addr uint64, seen map[string]bool, progress func(done, total int64)) error
	Fuzz(seed uint64, count int, progress func(done, total int64)) (*Coverage, error)
	FuzzEnumerated(progress func(done, total int64)) (*Coverage, error)
	// Verdict writes the report. The error is a *DiffersError if something is wrong with a decoder's answers.
	Verdict(w io.Writer, o *ReportOptions) error
	// Close ends the decoders, and returns what is wrong with the first that did not end well.
	Close() error
}

var _, _ Comparing = (*Among)(nil), (*Versions)(nil)

// DiffersError says in a sentence what is wrong with answers.
type DiffersError struct{ text string }

// Error implements error.
func (e *DiffersError) Error() string { return e.text }

func differs(format string, args ...any) error { return &DiffersError{fmt.Sprintf(format, args...)} }

// Among is a comparison of other decoders with this program's.
type Among struct {
	Others []Decoder
	Comparison
}

// Walk implements Comparing.
func (a *Among) Walk(code []byte, addr uint64, seen map[string]bool, progress func(done, total int64)) error {
	return Walk(a.Others, code, addr, &a.Comparison, seen, progress)
}

// Fuzz implements Comparing.
func (a *Among) Fuzz(seed uint64, count int, progress func(done, total int64)) (*Coverage, error) {
	return Fuzz(a.Others, seed, count, &a.Comparison, progress)
}

// FuzzEnumerated implements Comparing.
func (a *Among) FuzzEnumerated(progress func(done, total int64)) (*Coverage, error) {
	return FuzzEnumerated(a.Others, &a.Comparison, progress)
}

// Verdict implements Comparing: answers that tell nothing, and differences without a known cause, are wrong.
func (a *Among) Verdict(w io.Writer, o *ReportOptions) error {
	unexplained, err := a.Report(w, a.Others, o)
	if err != nil {
		return err
	}
	for _, d := range a.Others {
		if text := a.Tally(d.Name()).Useless(d.Name()); text != "" {
			return differs("%s", text)
		}
	}
	if unexplained > 0 {
		return differs("%d kinds of differences without a known cause", unexplained)
	}
	_, err = fmt.Fprintln(w, "no differences without a known cause")
	return err
}

// Close implements Comparing.
func (a *Among) Close() (err error) {
	for _, d := range a.Others {
		err = cmp.Or(err, d.Close())
	}
	return err
}

// Verdict implements Comparing: answers that have become worse are wrong.
func (v *Versions) Verdict(w io.Writer, o *ReportOptions) error {
	worse, err := v.Report(w, o)
	if err == nil && worse > 0 {
		err = differs("%d kinds of answers are worse than those of %s", worse, v.Old.Name())
	}
	return err
}

// Close implements Comparing.
func (v *Versions) Close() error { return cmp.Or(v.Old.Close(), v.New.Close()) }
