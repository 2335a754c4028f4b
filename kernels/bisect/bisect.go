package bisect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Result says between which two kernels the answer changed.
type Result struct {
	// Before is the last kernel that answers From, After the next one that could be asked, which answers To.
	Before string `json:"before"`
	After  string `json:"after"`
	From   string `json:"from"`
	To     string `json:"to"`
	// Stable: both are of one series, so a stable release brought the change. Else it came with the series of After.
	Stable bool `json:"stable"`
	// Asked lists the kernels that answered, in the order of asking; Of counts all between the ends.
	Asked []Asked `json:"asked"`
	Of    int     `json:"of"`
	// Unasked are the kernels between Before and After that could not be asked.
	Unasked []Unasked `json:"unasked,omitempty"`
}

// Asked is a kernel with its answer.
type Asked struct {
	Kernel string `json:"kernel"`
	Answer string `json:"answer"`
}

// Unasked is a kernel that could not be asked, with the reason.
type Unasked struct {
	Kernel string `json:"kernel"`
	Reason string `json:"reason"`
}

// ErrSame: the first and the last kernel give the same answer.
var ErrSame = errors.New("the answer is the same on the oldest and on the newest kernel")

// ErrStop: an error of ask that is about all kernels, so no further one is asked.
var ErrStop = errors.New("no kernel can be asked")

// ErrFew: there are no two kernels that can be asked.
var ErrFew = errors.New("at least two kernels are needed")

// Series is the series of a release: its first two numbers.
func Series(release string) string {
	numbers := strings.FieldsFunc(release, func(r rune) bool { return r < '0' || r > '9' })
	if len(numbers) < 2 {
		return release
	}
	return numbers[0] + "." + numbers[1]
}

// Code is the exit code of a command that ends with an error of Find: 1 if the answer is the same everywhere, 3 if kernels could not
// be asked.
func Code(err error) int {
	if errors.Is(err, ErrSame) {
		return 1
	}
	return 3
}

// finding asks each kernel at most once.
type finding struct {
	ask     func(ctx context.Context, kernel string) (string, error)
	say     func(text string)
	answers map[string]string
	failed  map[string]error
	stopped error
	result  Result
}

// Find asks kernels, from the oldest to the newest, whose ends have to answer differently. A kernel that ask has an error for is
// left out, unless the error is ErrStop or the context ended. If the answer changed more than once, one of the changes is found. say, when not nil, is told
// each answer. The error is ErrSame, ErrFew, ErrStop, or the context's; the result has the kernels asked, with an error, too.
func Find(ctx context.Context, kernels []string, series func(string) string, ask func(ctx context.Context, kernel string) (string, error), say func(text string)) (*Result, error) {
	f := &finding{ask: ask, say: say, answers: map[string]string{}, failed: map[string]error{}}
	f.result.Of = len(kernels)
	if f.say == nil {
		f.say = func(string) {}
	}
	kernels, err := f.ends(ctx, kernels)
	if err != nil {
		return &f.result, err
	}
	var newest []string // of each series, with the first of all before
	for i, k := range kernels {
		if i == 0 || i == len(kernels)-1 || series(k) != series(kernels[i+1]) {
			newest = append(newest, k)
		}
	}
	before, after, err := f.between(ctx, newest)
	if err == nil {
		i, j := slices.Index(kernels, before), slices.Index(kernels, after)
		before, after, err = f.between(ctx, kernels[i:j+1])
	}
	if err != nil {
		return &f.result, err
	}
	r := &f.result
	r.Before, r.After, r.From, r.To, r.Stable = before, after, f.answers[before], f.answers[after], series(before) == series(after)
	for _, k := range kernels[slices.Index(kernels, before):slices.Index(kernels, after)] {
		if err := f.failed[k]; err != nil {
			r.Unasked = append(r.Unasked, Unasked{k, err.Error()})
		}
	}
	return r, nil
}

// ends leaves kernels out at both ends until these answer.
func (f *finding) ends(ctx context.Context, kernels []string) ([]string, error) {
	for len(kernels) > 0 && !f.answered(ctx, kernels[0]) {
		kernels = kernels[1:]
	}
	for len(kernels) > 1 && !f.answered(ctx, kernels[len(kernels)-1]) {
		kernels = kernels[:len(kernels)-1]
	}
	switch {
	case f.ended(ctx) != nil:
		return nil, f.ended(ctx)
	case len(kernels) < 2:
		return nil, errors.Join(ErrFew, f.anyError())
	case f.answers[kernels[0]] == f.answers[kernels[len(kernels)-1]]:
		return nil, fmt.Errorf("%w: %s", ErrSame, f.answers[kernels[0]])
	}
	return kernels, nil
}

// ended says why no further kernel is asked, nil if one can be.
func (f *finding) ended(ctx context.Context) error { return cmp.Or(f.stopped, ctx.Err()) }

// anyError is the reason of a kernel that could not be asked.
func (f *finding) anyError() error {
	for _, err := range f.failed {
		return err
	}
	return nil
}

// answered asks a kernel, if it was not asked yet, and reports whether it has an answer.
func (f *finding) answered(ctx context.Context, kernel string) bool {
	if _, ok := f.answers[kernel]; ok {
		return true
	}
	if f.failed[kernel] != nil || f.ended(ctx) != nil {
		return false
	}
	answer, err := f.ask(ctx, kernel)
	switch {
	case errors.Is(err, ErrStop), err != nil && ctx.Err() != nil:
		f.stopped = err
		return false
	case err != nil:
		f.failed[kernel] = err
		f.say(kernel + ": cannot be asked: " + err.Error())
		return false
	}
	f.answers[kernel] = answer
	f.result.Asked = append(f.result.Asked, Asked{kernel, answer})
	f.say(kernel + ": " + answer)
	return true
}

// between halves a list whose ends have different answers, until two neighbours have.
func (f *finding) between(ctx context.Context, kernels []string) (before, after string, err error) {
	first := f.answers[kernels[0]]
	for len(kernels) > 2 {
		n := len(kernels) / 2
		switch {
		case !f.answered(ctx, kernels[n]):
			if err := f.ended(ctx); err != nil {
				return "", "", err
			}
			kernels = slices.Delete(slices.Clone(kernels), n, n+1)
		case f.answers[kernels[n]] == first:
			kernels = kernels[n:]
		default:
			kernels = kernels[:n+1]
		}
	}
	return kernels[0], kernels[1], nil
}
