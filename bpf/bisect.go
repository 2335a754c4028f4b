package bpf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"kprobelab/bpf/answer"
	"kprobelab/internal/printable"
	"kprobelab/kernels/bisect"
)

// Change says with which kernel the verdict on a program changed.
type Change struct {
	Program string `json:"program"`
	*bisect.Result
	// Was and Is are the verdicts before and after.
	Was *answer.Program `json:"was,omitempty"`
	Is  *answer.Program `json:"is,omitempty"`
	// Versions are the versions of the kernels' packages, by release.
	Versions map[string]string `json:"versions,omitempty"`
}

// Bisect finds the kernel with which the verdict on a program changed. ask asks one kernel, releases are from the oldest to the
// newest, version returns the version of a kernel's package; say is told each answer.
func Bisect(ctx context.Context, program string, releases []string, ask func(ctx context.Context, release string) (*Table, error), version func(release string) string, say func(text string)) (*Change, error) {
	c := &Change{Program: program, Versions: map[string]string{}}
	verdicts := map[string]*answer.Program{}
	r, err := bisect.Find(ctx, releases, bisect.Series, func(ctx context.Context, release string) (string, error) {
		t, err := ask(ctx, release)
		switch {
		case errors.Is(err, ErrObject), errors.Is(err, ErrLoader):
			return "", fmt.Errorf("%w: %w", bisect.ErrStop, err)
		case err != nil:
			return "", err
		}
		c.Versions[release] = version(release)
		p := t.Columns[0].program(program)
		if p == nil {
			return "", fmt.Errorf("%w: the object has no program %s; it has %s", bisect.ErrStop, program, strings.Join(t.names(), ", "))
		}
		verdicts[release] = p
		return p.Word(), nil
	}, say)
	c.Result = r
	c.Was, c.Is = verdicts[r.Before], verdicts[r.After]
	return c, err
}

// Text writes the change in sentences.
func (c *Change) Text(w io.Writer) error {
	why := c.Is.Why()
	if why == "" {
		why = c.Was.Why()
	}
	return c.Result.Text(w, printable.Name(c.Program), func(kernel string) string {
		if v := c.Versions[kernel]; v != "" {
			return fmt.Sprintf("%s (%s)", printable.Name(kernel), printable.Name(v))
		}
		return printable.Name(kernel)
	}, why)
}

// Show writes the change in sentences, or as one object.
func (c *Change) Show(w io.Writer, object bool) error {
	if !object {
		return c.Text(w)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(c)
}
