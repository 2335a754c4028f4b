package page

import (
	"regexp"
	"strconv"
	"strings"

	"kprobelab/x86"
)

const (
	byProtocol    = "protocol"
	byInstruction = "instruction"
)

// answerKind says what an answer means.
type answerKind int

const (
	// answerName: a name, such as that of a list.
	answerName answerKind = iota
	// answerNumber: a number, in digits or as a word.
	answerNumber
	// answerPlace: an address or a symbol, with an offset or without.
	answerPlace
	// answerOffset: a place, or an offset in the probed function.
	answerOffset
	// answerHex: a byte in hexadecimal.
	answerHex
)

// wrongAnswer is an answer that many give, and why it is wrong.
type wrongAnswer struct{ answer, why string }

// Checked says whether an answer is right.
type Checked struct {
	Right bool   `json:"right"`
	Says  string `json:"says"`
}

type checkQuestion struct {
	Lesson int    `json:"lesson"`
	Answer string `json:"answer"`
}

// check compares an answer with the run of the lesson's machine.
func (p *Page) check(q checkQuestion, _ []byte) (*Checked, error) {
	if q.Lesson < 0 || q.Lesson >= len(lessons) {
		return nil, errRequest
	}
	l := &lessons[q.Lesson]
	img, err := guest()
	if err != nil {
		return nil, err
	}
	r, err := newRun(img, l.Scenario)
	if err != nil {
		return nil, err
	}
	defer r.lab.Close()
	right, err := l.solve(r)
	if err != nil {
		return nil, err
	}
	given := r.means(l.kind, q.Answer)
	if given == r.means(l.kind, right) {
		return &Checked{true, l.After}, nil
	}
	for _, w := range l.wrong {
		if given == r.means(l.kind, w.answer) {
			return &Checked{false, w.why}, nil
		}
	}
	return &Checked{false, "The machine does something else. Write " + l.Form + "; step through the machine below and look."}, nil
}

var numberWords = strings.NewReplacer("once", "1", "twice", "2", "one", "1", "two", "2", "three", "3", "zero", "0", "none", "0")

// means writes an answer in one way, in whichever form it is given.
func (r *run) means(kind answerKind, s string) string {
	s = strings.ToLower(strings.Join(strings.Fields(s), ""))
	s = strings.TrimSuffix(s, ".")
	switch kind {
	case answerNumber:
		if n, err := strconv.ParseInt(numberWords.Replace(s), 0, 64); err == nil {
			return strconv.FormatInt(n, 10)
		}
	case answerHex:
		if n, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 8); err == nil {
			return strconv.FormatUint(n, 16)
		}
	case answerName:
		s = strings.TrimPrefix(s, "the")
		return strings.TrimRight(strings.TrimSuffix(strings.TrimSuffix(s, "list"), "_"), "()")
	case answerOffset:
		if n, ok := offsetOf(s); ok && n < 1<<16 {
			return (r.img.Lookup(r.probes[0].Symbol)[0].Addr + x86.Addr(n)).String()
		}
		fallthrough
	case answerPlace:
		if a, ok := r.addressOf(s); ok {
			return a.String()
		}
	}
	return s
}

var (
	offsetPattern  = regexp.MustCompile(`^\+?(0x[0-9a-f]+|[0-9]+)$`)
	addressPattern = regexp.MustCompile(`^(0x)?(ffffffff[0-9a-f]{8})$`)
)

// offsetOf reads a number, decimal or with 0x.
func offsetOf(s string) (uint64, bool) {
	m := offsetPattern.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	base, digits := 10, m[1]
	if strings.HasPrefix(digits, "0x") {
		base, digits = 16, digits[2:]
	}
	n, err := strconv.ParseUint(digits, base, 64)
	return n, err == nil
}

// addressOf reads a symbol, with an offset or without, or an address of the kernel.
func (r *run) addressOf(s string) (x86.Addr, bool) {
	if m := addressPattern.FindStringSubmatch(s); m != nil {
		n, err := strconv.ParseUint(m[2], 16, 64)
		return x86.Addr(n), err == nil
	}
	name, off, more := strings.Cut(s, "+")
	found := r.img.Lookup(strings.TrimSuffix(name, "()"))
	if len(found) == 0 {
		return 0, false
	}
	n := uint64(0)
	if more {
		var ok bool
		if n, ok = offsetOf(off); !ok {
			return 0, false
		}
	}
	return found[0].Addr + x86.Addr(n), true
}
