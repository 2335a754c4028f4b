package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"kprobelab/kprobes/hazard"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/shard"
	"kprobelab/x86"
)

// ScanShard is a shard of a scan.
type ScanShard struct {
	shard.Part
	// Begin begins the shard's output: chunks are the names of all pieces of the scan.
	Begin func(chunks []string) (*shard.Writer, error)
	// Rest returns what the rules decided although Scan.Own was asked, a line each; nil for none.
	Rest func() []string
}

// ScanForm says how the results of a scan's shards are printed.
type ScanForm struct {
	Heading string     `json:"heading"`
	Format  ScanFormat `json:"format"`
	Padding bool       `json:"padding"`
	Slots   bool       `json:"slots"`
	Detail  bool       `json:"detail"`
	Own     bool       `json:"own"`
	Bare    bool       `json:"bare,omitempty"`
}

// Form is the form of the scan's results.
func (s *Scan) Form(heading string, f ScanFormat) ScanForm {
	return ScanForm{heading, f, s.Padding, s.Slots, s.Detail, s.Own != nil, s.Bare}
}

// Scan makes a scan that prints results in this form; it has no image.
func (f ScanForm) Scan() *Scan {
	s := &Scan{Padding: f.Padding, Slots: f.Slots, Detail: f.Detail, Bare: f.Bare}
	if f.Own {
		s.Own = func(x86.Addr, bool) Own { return Own{} }
	}
	return s
}

// scanPiece is the result of a piece of a scan.
type scanPiece struct {
	Text   shard.Text    `json:"text"`
	Totals countedTotals `json:"totals"`
	Rest   []string      `json:"rest,omitempty"`
}

// countedTotals are ScanTotals in JSON.
type countedTotals struct {
	Points    int             `json:"points"`
	Optimized int             `json:"optimized"`
	Padding   int             `json:"padding"`
	Kept      [][2]int        `json:"kept,omitempty"`
	Accepted  [][2]int        `json:"accepted,omitempty"`
	Refused   [][3]int        `json:"refused,omitempty"`
	Hazards   []countedHazard `json:"hazards,omitempty"`
	Own       map[string]int  `json:"own,omitempty"`
	Bare      *countedBare    `json:"bare,omitempty"`
}

type countedHazard struct {
	ID     hazard.ID     `json:"id"`
	Effect hazard.Effect `json:"effect"`
	Count  int           `json:"count"`
}

func (t *ScanTotals) counted() countedTotals {
	c := countedTotals{Points: t.Points, Optimized: t.Optimized, Padding: t.Padding, Own: t.Own, Bare: t.Bare.counted()}
	for id, n := range t.Kept {
		c.Kept = append(c.Kept, [2]int{int(id), n})
	}
	for how, n := range t.Accepted {
		c.Accepted = append(c.Accepted, [2]int{int(how), n})
	}
	for r, n := range t.Refused {
		c.Refused = append(c.Refused, [3]int{int(r.Reason), r.Errno, n})
	}
	for k, n := range t.Hazards {
		c.Hazards = append(c.Hazards, countedHazard{k.id, k.effect, n})
	}
	slices.SortFunc(c.Kept, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	slices.SortFunc(c.Accepted, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	slices.SortFunc(c.Refused, func(a, b [3]int) int { return slices.Compare(a[:], b[:]) })
	slices.SortFunc(c.Hazards, func(a, b countedHazard) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Effect, b.Effect))
	})
	return c
}

// errTotals: totals have a number that counts nothing.
var errTotals = fmt.Errorf("%w: the totals of a scan are damaged", shard.ErrShards)

func (c *countedTotals) totals() (*ScanTotals, error) {
	t := newTotals()
	t.Points, t.Optimized, t.Padding = c.Points, c.Optimized, c.Padding
	for _, k := range c.Kept {
		if !rule.Known(k[0]) {
			return nil, errTotals
		}
		t.Kept[rule.ID(k[0])] += k[1]
	}
	for _, a := range c.Accepted {
		t.Accepted[probepoint.How(a[0])] += a[1]
	}
	for _, r := range c.Refused {
		if !rule.Known(r[0]) {
			return nil, errTotals
		}
		t.Refused[Refused{rule.ID(r[0]), r[1]}] += r[2]
	}
	for _, h := range c.Hazards {
		if _, ok := hazard.ByID(h.ID); !ok {
			return nil, errTotals
		}
		t.Hazards[hazardKey{h.ID, h.Effect}] += h.Count
	}
	addTo(t.Own, c.Own)
	t.Bare = c.Bare.totals()
	return t, nil
}

// scanOutput takes what the chunks give.
type scanOutput struct {
	put func(written) error
	end func() error
}

// begin begins the output, and returns the chunks that are scanPiece here.
func (s *Scan) begin(w io.Writer, f ScanFormat, chunks []chunk, name func(i int) string) (mine []chunk, to scanOutput, err error) {
	if s.Shard == nil {
		_, err := io.WriteString(w, f.header(s))
		return chunks, scanOutput{put: func(r written) error {
			_, err := w.Write(r.text)
			return err
		}, end: func() error { return nil }}, err
	}
	var names []string
	for _, c := range chunks {
		var text strings.Builder
		for i := c.from; i < c.to; i++ {
			text.WriteString(name(i) + "\n")
		}
		names = append(names, text.String())
	}
	out, err := s.Shard.Begin(names)
	if err != nil {
		return nil, to, err
	}
	return shard.Of(s.Shard.Part, chunks), scanOutput{end: out.End, put: func(r written) error {
		one := scanPiece{Text: r.text, Totals: r.totals.counted()}
		if s.Shard.Rest != nil {
			one.Rest = s.Shard.Rest()
		}
		return out.Add(one)
	}}, nil
}

// WriteResults writes what the shards of a scan have written, as the scan of all would, and returns the totals. Rest is what the
// rules decided, of all shards.
func (s *Scan) WriteResults(w io.Writer, f ScanFormat, r *shard.Results) (totals *ScanTotals, rest []string, err error) {
	totals = newTotals()
	totals.Listed = s.Padding
	if _, err := io.WriteString(w, f.header(s)); err != nil {
		return totals, nil, err
	}
	err = shard.Each(r, func(one scanPiece) error {
		t, err := one.Totals.totals()
		if err != nil {
			return err
		}
		totals.add(t)
		for _, line := range one.Rest {
			if !slices.Contains(rest, line) {
				rest = append(rest, line)
			}
		}
		_, err = w.Write(one.Text)
		return err
	})
	return totals, rest, err
}
