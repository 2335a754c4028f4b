package report

import (
	"bufio"
	"cmp"
	gohex "encoding/hex"
	"fmt"
	"io"
	"slices"

	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/x86"
)

// BareVerdict is the answer of an uncorrected x86asm at a point that it gets wrong, and
// the instruction at which it goes wrong.
type BareVerdict struct {
	// Errno, Optimized and Reason are its answer, as in ScanRow.
	Errno     int
	Optimized bool
	Reason    string
	// Insn is the first instruction of the function that it reads wrongly, at Addr.
	// Read is its reading, Right the right one.
	Addr        x86.Addr
	Insn        []byte
	Read, Right decoder.Reading
	// Cause names the correction: "opcodes/FILE.txt:LINE" for a row of the decoder's
	// tables, CausePrefixes, CauseKernel, or CauseNone.
	Cause string
}

// Corrections of x86asm besides rows of tables.
const (
	// CausePrefixes: an override for a use of prefixes.
	CausePrefixes = "prefixes"
	// CauseKernel: x86asm is right about the processor, and the kernel's
	// decoder reads the instruction differently.
	CauseKernel = "kernel"
	// CauseNone: nothing does. An override is missing.
	CauseNone = "none"
)

// bareScanner compares each function with an uncorrected x86asm's reading.
type bareScanner struct {
	*scanner
	bare *scanner
}

func (s *scanner) bareScanner() bareScanner {
	copied := *s.Scan
	copied.View = kimage.ReadBy(s.View, decoder.Alone{Reader: decoder.X86asm{Bare: true}})
	b := copied.scanner()
	return bareScanner{s, b}
}

// function calls emit for every point of the function. The row has a BareVerdict if the
// two answers differ.
func (s bareScanner) function(sym kimage.Symbol, emit func(*ScanRow)) {
	s.keep(sym)
	s.bare.keep(sym)
	if s.readsAlike() {
		for i := range s.steps {
			emit(&ScanRow{padding: s.steps[i].IsPadding(), right: true})
		}
		return
	}
	wrong := s.wrong()
	at := 0
	for i := range s.steps {
		step := &s.steps[i]
		row := ScanRow{padding: step.IsPadding(), right: true}
		if !row.padding {
			bare := s.bareRow(step, &at)
			row = s.row(probepoint.Request{Addr: step.Addr}, s.SlotAddr, step)
			row.right = row.Errno == bare.Errno && row.Optimized == bare.Optimized && row.Reason == bare.Reason
			if !row.right {
				v := *wrong
				v.Errno, v.Optimized, v.Reason = bare.Errno, bare.Optimized, bare.Reason
				row.Bare = &v
			}
		}
		emit(&row)
	}
}

// bareRow returns x86asm's answer for the point of a step, with its own step if its
// walk has one at that address; at is the index up to which its steps were searched.
func (s bareScanner) bareRow(step *kimage.Step, at *int) ScanRow {
	for *at < len(s.bare.steps) && s.bare.steps[*at].Addr < step.Addr {
		*at++
	}
	var own *kimage.Step
	if *at < len(s.bare.steps) && s.bare.steps[*at].Addr == step.Addr {
		own = &s.bare.steps[*at]
	}
	return s.bare.row(probepoint.Request{Addr: step.Addr}, s.SlotAddr, own)
}

// readsAlike: the readings are the same all along, and so are all answers.
func (s bareScanner) readsAlike() bool {
	return slices.EqualFunc(s.steps, s.bare.steps, func(a, b kimage.Step) bool {
		return a.Addr == b.Addr && a.Reading == b.Reading && (a.Err == nil) == (b.Err == nil)
	})
}

// wrong is the first instruction that x86asm is wrong about, or else the first
// that the kernel's decoder reads differently from the processor.
func (s bareScanner) wrong() (found *BareVerdict) {
	bare := decoder.X86asm{Bare: true}
	for i := range s.steps {
		step := &s.steps[i]
		var b [decoder.MaxInsnSize]byte
		code := b[:s.View.CodeAt(step.Addr, b[:])]
		read := bare.Read(code, step.Addr)
		if read == step.Reading {
			continue
		}
		v := &BareVerdict{Addr: step.Addr, Read: read, Right: step.Reading}
		length := max(1, step.Reading.Length, decoder.Tables{}.Read(code, step.Addr).Length)
		v.Insn = slices.Clone(code[:min(len(code), length)])
		v.Cause = causeOf(code, step.Addr, read)
		if v.Cause != CauseKernel {
			return v
		}
		if found == nil {
			found = v
		}
	}
	return cmp.Or(found, &BareVerdict{})
}

// causeOf names the correction of a reading of x86asm.
func causeOf(code []byte, at x86.Addr, read decoder.Reading) string {
	right := decoder.Tables{}.Read(code, at)
	if read == right {
		return CauseKernel
	}
	if (decoder.X86asm{}).Read(code, at) != right {
		return CauseNone
	}
	if i, err := decoder.Decode(code); err == nil {
		if o, ok := i.Override(); ok {
			return fmt.Sprintf("opcodes/%v.txt:%d", o.Encoding, o.Line)
		}
	}
	return CausePrefixes
}

// BareTotals counts what an uncorrected x86asm gets wrong.
type BareTotals struct {
	// Points counts the points, Wrong the ones that it gets wrong.
	Points, Wrong int
	// Panics counts the points where it panicked, Uncorrected the ones that no
	// correction puts right.
	Panics, Uncorrected int
	groups              map[string]*bareGroup
}

// bareGroup is one instruction that is read wrongly in one way.
type bareGroup struct {
	text          string
	places, wrong int
	example       BareVerdict
	last          x86.Addr
}

func (t *BareTotals) count(row *ScanRow) {
	t.Points++
	if row.right {
		return
	}
	t.Wrong++
	v := row.Bare
	name := bareName(v)
	key := fmt.Sprint(name, v.Cause, v.Read.Kind, v.Read.Length-v.Right.Length)
	if t.groups == nil {
		t.groups = map[string]*bareGroup{}
	}
	g := t.groups[key]
	if g == nil {
		g = &bareGroup{text: name, example: *v}
		t.groups[key] = g
	}
	g.wrong++
	if g.places == 0 || g.last != v.Addr {
		g.places++
		g.last = v.Addr
		t.mark(v, 1)
	}
}

// mark counts places that stand out.
func (t *BareTotals) mark(v *BareVerdict, places int) {
	if v.Read.Kind == decoder.KindPanic {
		t.Panics += places
	}
	if v.Cause == CauseNone {
		t.Uncorrected += places
	}
}

// bareName returns the mnemonic by which instructions are grouped, or the bytes if they do
// not decode.
func bareName(v *BareVerdict) string {
	i, err := decoder.Decode(v.Insn)
	if err != nil {
		return fmt.Sprintf("% x", v.Insn)
	}
	return i.Mnemonic()
}

func (t *BareTotals) add(o *BareTotals) {
	t.Points += o.Points
	t.Wrong += o.Wrong
	if t.groups == nil && o.groups != nil {
		t.groups = map[string]*bareGroup{}
	}
	for key, g := range o.groups {
		t.mark(&g.example, g.places)
		if have := t.groups[key]; have != nil {
			have.places += g.places
			have.wrong += g.wrong
			continue
		}
		t.groups[key] = g
	}
}

// countedBare are BareTotals in JSON.
type countedBare struct {
	Points int                    `json:"points"`
	Wrong  int                    `json:"wrong"`
	Groups map[string]countedRead `json:"groups,omitempty"`
}

// countedRead is a bareGroup in JSON.
type countedRead struct {
	Text    string      `json:"text"`
	Places  int         `json:"places"`
	Wrong   int         `json:"wrong"`
	Example BareVerdict `json:"example"`
}

// counted returns nil if there are no points.
func (t *BareTotals) counted() *countedBare {
	if t.Points == 0 {
		return nil
	}
	c := &countedBare{t.Points, t.Wrong, map[string]countedRead{}}
	for key, g := range t.groups {
		c.Groups[key] = countedRead{g.text, g.places, g.wrong, g.example}
	}
	return c
}

// totals leaves Panics and Uncorrected to add, which marks each group again.
func (c *countedBare) totals() (t BareTotals) {
	if c == nil {
		return t
	}
	t.Points, t.Wrong, t.groups = c.Points, c.Wrong, map[string]*bareGroup{}
	for key, g := range c.Groups {
		t.groups[key] = &bareGroup{text: g.Text, places: g.Places, wrong: g.Wrong, example: g.Example}
	}
	return t
}

// WriteText lists each instruction that is read wrongly, with an example, and
// the totals.
func (t *BareTotals) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	list := make([]*bareGroup, 0, len(t.groups))
	for _, g := range t.groups {
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b *bareGroup) int {
		return cmp.Or(cmp.Compare(b.wrong, a.wrong), cmp.Compare(a.text, b.text), cmp.Compare(a.example.Addr, b.example.Addr))
	})
	for _, g := range list {
		v := &g.example
		fmt.Fprintf(b, "%s: %s, %s; such as %s at %v\n", g.text, Counted(g.places, "place"), Counted(g.wrong, "wrong verdict"), gohex.EncodeToString(v.Insn), v.Addr)
		fmt.Fprintf(b, "  x86asm: %v; right: %v; %s\n", v.Read, v.Right, causeWords(v.Cause))
		fmt.Fprintf(b, "  an answer of x86asm: %s\n", answerWords(v))
	}
	if len(list) > 0 {
		fmt.Fprintln(b)
	}
	if err := b.Flush(); err != nil {
		return err
	}
	return t.WriteTotals(w)
}

// WriteTotals writes the totals alone.
func (t *BareTotals) WriteTotals(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%d points, of which an uncorrected x86asm gets %d wrong (%.3f %%); it panics in %s\n%s without an override\n",
		t.Points, t.Wrong, 100*float64(t.Wrong)/float64(max(1, t.Points)), Counted(t.Panics, "place"), Counted(t.Uncorrected, "wrong place"))
	return err
}

func causeWords(cause string) string {
	switch cause {
	case CauseKernel:
		return "x86asm is right about the processor, and the kernel's decoder reads it differently"
	case CausePrefixes:
		return "the override for prefixes puts it right"
	case CauseNone:
		return "nothing puts it right: an override is missing"
	}
	return cause + " puts it right"
}

func answerWords(v *BareVerdict) string {
	switch {
	case v.Errno != 0:
		return errno.Errno(-v.Errno).Name() + " " + v.Reason
	case v.Optimized:
		return "accepted, optimized"
	}
	return "accepted, " + v.Reason
}
