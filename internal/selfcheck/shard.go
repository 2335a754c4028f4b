package selfcheck

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"kprobelab/internal/own"
	"kprobelab/kimage"
	"kprobelab/shard"
	"kprobelab/x86"
)

// pieceSize is the number of points in an item of a shard's list.
const pieceSize = 256

// textItem is the last item of the list: the text that the image's own functions patch.
const textItem = "text"

// pieces cuts the points into the items of the list.
func pieces(points []x86.Addr) [][]x86.Addr { return slices.Collect(slices.Chunk(points, pieceSize)) }

// Items names the items of a comparison at points, which shards divide.
func Items(points []x86.Addr) (names []string) {
	for _, p := range pieces(points) {
		names = append(names, fmt.Sprint(p))
	}
	return append(names, textItem)
}

// CheckShard is Check for a part of the items; it writes a shard's output. A function that does not answer is given up by each
// shard for itself.
func CheckShard(w *shard.Writer, part shard.Part, img *kimage.Image, points []x86.Addr, timeout time.Duration, progress func(done, total int64)) error {
	all := pieces(points)
	mine := shard.Of(part, append(all, nil)) // nil is the item of the text
	withText := len(mine) > 0 && mine[len(mine)-1] == nil
	if withText {
		mine = mine[:len(mine)-1]
	}
	results, err := checkPieces(img, mine, timeout, progress)
	if err != nil {
		return err
	}
	if withText {
		r := &Result{}
		if img.Core() == nil {
			r.checkText(img)
		}
		results = append(results, r)
	}
	for _, r := range results {
		if err := w.Add(r.shared()); err != nil {
			return err
		}
	}
	return w.End()
}

// checkPieces returns the result of each piece.
func checkPieces(img *kimage.Image, list [][]x86.Addr, timeout time.Duration, progress func(done, total int64)) ([]*Result, error) {
	results, errs := make([]*Result, len(list)), make([]error, workers)
	var done, total int64
	for _, p := range list {
		total += int64(len(p))
	}
	var mu sync.Mutex
	work := func(from, to int) error {
		if from == to {
			return nil
		}
		k, err := own.Open(img, timeout)
		if err != nil {
			return err
		}
		defer k.Close()
		s := newAsker(img, k)
		for i := from; i < to; i++ {
			results[i] = s.piece(list[i])
			mu.Lock()
			if done += int64(len(list[i])); progress != nil {
				progress(done, total)
			}
			mu.Unlock()
		}
		return nil
	}
	var wait sync.WaitGroup
	for i := range workers {
		wait.Go(func() { errs[i] = work(i*len(list)/workers, (i+1)*len(list)/workers) })
	}
	wait.Wait()
	return results, errors.Join(errs...)
}

// piece asks all questions about some points. What was given up before stays given up.
func (s *asker) piece(points []x86.Addr) *Result {
	before := s.result
	s.result = newResult(s.img)
	for i := range before.Questions {
		t, b := &s.result.Questions[i], &before.Questions[i]
		t.GivenUp, t.NotThere = b.GivenUp, b.NotThere
	}
	for _, a := range points {
		s.at(a)
	}
	s.result.Points = len(points)
	return s.result
}

// sharedResult is a Result in a shard's output.
type sharedResult struct {
	Points    int             `json:"points"`
	Booted    bool            `json:"booted,omitempty"`
	Questions []sharedAnswers `json:"questions"`
}

// sharedAnswers are Answers with all that their JSON for people leaves out.
type sharedAnswers struct {
	Answers
	Counts []kindCount `json:"kinds,omitempty"`
	// Places are the Addr and Code of Examples.
	Places []sharedPlace `json:"places,omitempty"`
}

type kindCount struct {
	Kind  Kind `json:"kind"`
	Count int  `json:"count"`
}

type sharedPlace struct {
	Addr x86.Addr `json:"addr"`
	Code []byte   `json:"code"`
}

func (r *Result) shared() sharedResult {
	s := sharedResult{Points: r.Points, Booted: r.Booted}
	for i := range r.Questions {
		t := sharedAnswers{Answers: r.Questions[i]}
		for k, n := range t.Kinds {
			t.Counts = append(t.Counts, kindCount{k, n})
		}
		slices.SortFunc(t.Counts, func(a, b kindCount) int {
			return cmp.Or(strings.Compare(a.Kind.Rule, b.Kind.Rule), strings.Compare(a.Kind.Rules, b.Kind.Rules), strings.Compare(a.Kind.Own, b.Kind.Own))
		})
		for _, d := range t.Examples {
			t.Places = append(t.Places, sharedPlace{d.Addr, d.Code})
		}
		s.Questions = append(s.Questions, t)
	}
	return s
}

// errAnswers: a result has not the form of one.
var errAnswers = fmt.Errorf("%w: the results of selfcheck are damaged", shard.ErrShards)

func (s *sharedResult) result() (*Result, error) {
	r := &Result{Points: s.Points, Booted: s.Booted}
	for _, t := range s.Questions {
		if len(t.Places) != len(t.Examples) {
			return nil, errAnswers
		}
		t.Kinds = map[Kind]int{}
		for _, k := range t.Counts {
			t.Kinds[k.Kind] += k.Count
		}
		for i := range t.Examples {
			t.Examples[i].Addr, t.Examples[i].Code = t.Places[i].Addr, t.Places[i].Code
		}
		r.Questions = append(r.Questions, t.Answers)
	}
	return r, nil
}

// Merge joins the results of all shards.
func Merge(r *shard.Results) (*Result, error) {
	var all *Result
	item := 0
	err := shard.Each(r, func(s sharedResult) error {
		one, err := s.result()
		item++
		switch {
		case err != nil:
			return err
		case all == nil:
			all = one
		case item == r.Items:
			all.Questions = append(all.Questions, one.Questions...)
		case len(one.Questions) != len(all.Questions):
			return errAnswers
		default:
			all.add(one)
		}
		return nil
	})
	if err == nil && all == nil {
		err = errAnswers
	}
	return all, err
}

// Form says how a result is printed.
type Form struct {
	// Name is the image's, Heading the first line.
	Name    string `json:"name"`
	Heading string `json:"heading"`
	JSON    bool   `json:"json"`
}

// Begin writes the heading: to errs if the result is data.
func (f Form) Begin(out, errs io.Writer) {
	if f.JSON {
		out = errs
	}
	fmt.Fprintln(out, f.Heading)
}

// Show writes the result, and returns the exit code of selfcheck with its reason.
func (f Form) Show(out io.Writer, r *Result) (code int, err error) {
	write := r.WriteText
	if f.JSON {
		write = r.WriteJSON
	}
	if err := write(out); err != nil {
		return 0, err
	}
	switch {
	case r.Asked() == 0:
		return 3, fmt.Errorf("%s: the image answers nothing: %s", f.Name, r.First())
	case r.Differ() > 0:
		return 1, fmt.Errorf("%s: %d of %d answers differ", f.Name, r.Differ(), r.Asked())
	case len(r.Mute()) > 0:
		return 3, fmt.Errorf("%s: nothing differs, but there is no answer of %s", f.Name, strings.Join(r.Mute(), ", "))
	}
	return 0, nil
}
