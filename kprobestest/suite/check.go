package suite

import (
	"bytes"
	"fmt"
)

// Kernel is an implementation that has a decision's text as code, on which it takes one
// probe at a time.
type Kernel interface {
	// Register plants a kprobe, so many bytes into the text, whose pre handler counts.
	// The result is the name of the error, such as "EILSEQ", or "".
	Register(offset int) string
	// Settle makes the optimizer process its queues.
	Settle()
	// Runs returns the way in which a hit of the probe executes the instruction while there is no
	// jump, "" if the implementation does not know it.
	Runs() string
	// Optimized reports whether the probe has its jump.
	Optimized() bool
	// Call calls a function of the text.
	Call(function string, args []Number) Number
	// Hits returns the number of runs of the handler.
	Hits() int
	Unregister()
	// Text is the code as it is now.
	Text() []byte
}

// Difference is an answer that differs from the expected one.
type Difference struct {
	Decision, Release string
	Offset            int
	// The question, and both answers.
	What, Want, Got string
}

// String is a sentence.
func (d Difference) String() string {
	return fmt.Sprintf("%s+%#x on %s: %s is %s, not %s", d.Decision, d.Offset, d.Release, d.What, d.Got, d.Want)
}

// Check compares a kernel of a release at each byte of a decision's text. It returns the
// differences, none if the implementation is right, and false if the release's answer is unknown.
func (d *Decision) Check(release string, k Kernel) ([]Difference, bool) {
	a, known := d.Of(release)
	if !known {
		return nil, false
	}
	c := checker{decision: d, release: release, kernel: k}
	for c.offset = range a.Offsets {
		c.check(&a.Offsets[c.offset])
	}
	return c.differences, true
}

type checker struct {
	decision    *Decision
	release     string
	kernel      Kernel
	offset      int
	differences []Difference
}

// The instructions that a probe writes.
const (
	int3      = 0xcc
	jumpNear  = 0xe9
	jumpBytes = 5
)

func (c *checker) check(want *Offset) {
	k := c.kernel
	errno := k.Register(c.offset)
	if c.equal("errno", orNone(want.Errno), orNone(errno)); errno != "" {
		c.text("the text after a refused registration", c.decision.Text)
		return
	}
	if runs := k.Runs(); runs != "" && want.Errno == "" {
		c.equal("how it runs", want.Runs, runs)
	}
	k.Settle()
	c.equal("optimized", want.Optimized, k.Optimized())
	if want.Errno == "" {
		c.planted(want)
	}
	if want.Hazard == "" {
		before := k.Hits()
		c.equal("the result of the call", c.decision.Result, k.Call(c.decision.Call, c.decision.Args))
		c.equal("hits", want.Hits, k.Hits()-before)
	}
	k.Unregister()
	k.Settle()
	c.text("the text when the probe is gone", c.decision.Text)
	c.equal("the result without the probe", c.decision.Result, k.Call(c.decision.Call, c.decision.Args))
}

// planted looks at the text with the probe. Where a jump leads to is not looked at.
func (c *checker) planted(want *Offset) {
	at := max(want.At, c.offset)
	now, expected := bytes.Clone(c.kernel.Text()), bytes.Clone(c.decision.Text)
	expected[at] = int3
	if want.Optimized {
		expected[at] = jumpNear
		n := min(at+jumpBytes, len(now))
		copy(expected[at+1:n], now[at+1:n])
	}
	c.equal("the text with the probe", Hex(expected), Hex(now))
}

func (c *checker) text(what string, want []byte) { c.equal(what, Hex(want), Hex(c.kernel.Text())) }

func (c *checker) equal(what string, want, got any) {
	if w, g := inWords(want), inWords(got); w != g {
		c.differences = append(c.differences, Difference{c.decision.Name, c.release, c.offset, what, w, g})
	}
}

func inWords(v any) string {
	switch v := v.(type) {
	case Hex:
		return fmt.Sprintf("%x", []byte(v))
	case Number:
		return fmt.Sprintf("%#x", uint64(v))
	}
	return fmt.Sprint(v)
}

func orNone(errno string) string {
	if errno == "" {
		return "0"
	}
	return errno
}
