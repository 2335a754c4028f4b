package selfcheck

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"kprobelab/decoder"
	"kprobelab/internal/own"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/optimizer"
	"kprobelab/profile"
	"kprobelab/x86"
)

// patience is the number of questions in a row that a function may leave without an
// answer, tries the number in all. After that it is called no more: a function that
// does not return costs its whole budget each time.
const (
	patience = 3
	tries    = 20
)

// workers is the number of machines that work at once. It is a constant, so that the
// result does not depend on the host.
const workers = 2

// Check compares the answers of the image and of its rules at every point. A question that
// takes longer than the timeout has no answer; with 0 only its budget ends it. progress, if
// not nil, gets the number of points that are done. The error is the machine's.
func Check(img *kimage.Image, points []x86.Addr, timeout time.Duration, progress func(done, total int64)) (*Result, error) {
	results, errs := make([]*Result, workers), make([]error, workers)
	var done int64
	var mu sync.Mutex
	step := func() {
		mu.Lock()
		defer mu.Unlock()
		if done++; progress != nil {
			progress(done, int64(len(points)))
		}
	}
	var wait sync.WaitGroup
	for i := range workers {
		wait.Go(func() {
			part := points[i*len(points)/workers : (i+1)*len(points)/workers]
			results[i], errs[i] = checkPart(img, part, timeout, step)
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	all := newResult(img)
	for _, r := range results {
		all.add(r)
	}
	all.Points = len(points)
	if img.Core() == nil {
		all.checkText(img)
	}
	return all, nil
}

func checkPart(img *kimage.Image, points []x86.Addr, timeout time.Duration, step func()) (*Result, error) {
	k, err := own.Open(img, timeout)
	if err != nil {
		return nil, err
	}
	defer k.Close()
	s := newAsker(img, k)
	for _, a := range points {
		s.at(a)
		step()
	}
	return s.result, nil
}

// asker puts questions to both, one point after the other.
type asker struct {
	img     *kimage.Image
	profile *profile.Config
	opt     *optimizer.Scanner
	// buffer is the address at which copies would go.
	buffer x86.Addr
	k      *own.Kernel
	// questions are the questions that the image can answer.
	questions []question
	result    *Result

	// code has the bytes at the point. refusal says why it is no boundary, nil if it is
	// one; it is valid once known is set.
	code    []byte
	known   bool
	refusal error
	// point and placement are the result of the registration, or unplaced is the reason
	// of its refusal; they are valid once placed is set.
	placed    bool
	point     probepoint.Point
	placement probepoint.Placement
	unplaced  error
	// silent counts the unanswered questions in a row, failed all unanswered questions;
	// by question.
	silent, failed []int
}

func newAsker(img *kimage.Image, k *own.Kernel) *asker {
	questions := questionsOf(img)
	return &asker{
		img: img, profile: img.Profile(), buffer: img.ModuleEnd(), opt: optimizer.NewScannerAt(img, img.ModuleEnd(), img.Profile()),
		k: k, questions: questions, result: newResult(img), silent: make([]int, len(questions)), failed: make([]int, len(questions)),
	}
}

func (s *asker) boundary(a x86.Addr) error {
	if !s.known {
		s.known, s.refusal = true, probepoint.Boundary(s.img, a, s.profile)
	}
	return s.refusal
}

// at asks all questions about one address.
func (s *asker) at(a x86.Addr) {
	code := make([]byte, decoder.MaxInsnSize)
	s.code, s.known = code[:s.img.CodeAt(a, code)], false
	s.placed = false
	for i := range s.questions {
		s.ask(i, a)
	}
}

func (s *asker) ask(i int, a x86.Addr) {
	q, t := &s.questions[i], &s.result.Questions[i]
	if t.GivenUp {
		return
	}
	rules, rule, ok := q.rules(s, a)
	if !ok {
		return
	}
	got, err := q.own(s.k, s.code, a)
	switch {
	case errors.Is(err, own.ErrNotThere):
		t.NotThere, t.GivenUp = true, true
		return
	case err != nil:
		t.Silent++
		if t.Why == "" {
			t.Why = fmt.Sprintf("at %s: %v", s.place(a), err)
		}
		if errors.Is(err, own.ErrReplaced) {
			return
		}
		s.silent[i]++
		s.failed[i]++
		t.GivenUp = s.silent[i] == patience || s.failed[i] == tries
		return
	}
	s.silent[i] = 0
	t.Asked++
	if got != rules {
		t.differ(Difference{Place: s.place(a), Addr: a, Rules: rules, Rule: rule, Own: got, Code: slices.Clone(s.code)})
	}
}

// place is an address in words.
func (s *asker) place(a x86.Addr) string {
	sym, ok := s.img.SymbolAt(a)
	if !ok {
		return a.String()
	}
	return fmt.Sprintf("%s+%#x", sym.Name, uint64(a.Sub(sym.Addr)))
}
