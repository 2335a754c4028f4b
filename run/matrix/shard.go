package matrix

import (
	"errors"
	"fmt"
	"time"

	"kprobelab/internal/bounded"
	"kprobelab/shard"
)

// Form says how a matrix is printed: the program with its arguments, and whether as JSON.
type Form struct {
	Program string `json:"program"`
	JSON    bool   `json:"json"`
}

// Take leaves the kernels of a shard.
func (m *Matrix) Take(p shard.Part) { m.Cells = shard.Of(p, m.Cells) }

// result is the run on one kernel in a shard's output.
type result struct {
	Kernel  shard.Text    `json:"kernel"`
	Label   shard.Text    `json:"label"`
	Release shard.Text    `json:"release"`
	Code    int           `json:"code"`
	Error   shard.Text    `json:"error,omitempty"`
	Ended   bool          `json:"ended,omitempty"`
	Took    time.Duration `json:"took"`
	Stdout  shard.Text    `json:"stdout"`
	Stderr  shard.Text    `json:"stderr"`
	Events  shard.Text    `json:"events,omitempty"`
}

// WriteShard writes the runs as the results of a shard. Its error is of the output, or of the first kernel that could not be had
// here: its result is written, and the shard can be run again.
func (m *Matrix) WriteShard(w *shard.Writer) error {
	var lacks error
	for _, c := range m.Cells {
		r := result{
			Kernel: shard.Text(c.Kernel), Label: shard.Text(c.Label), Release: shard.Text(c.Release), Code: c.Code,
			Ended: errors.Is(c.Err, ErrEnded), Took: c.Took, Stdout: c.Stdout.Bytes(), Stderr: c.Stderr.Bytes(), Events: c.events.Bytes(),
		}
		if c.Err != nil {
			r.Error = shard.Text(c.Err.Error())
		}
		if !c.Ran() && lacks == nil {
			lacks = c.Err
		}
		if err := w.Add(r); err != nil {
			return err
		}
	}
	if err := w.End(); err != nil {
		return err
	}
	return lacks
}

// Merged makes the matrix of all kernels from the results of shards.
func Merged(r *shard.Results) (m *Matrix, form Form, err error) {
	if r.Items > bounded.MatrixKernels {
		return nil, form, ErrKernels
	}
	if form, err = shard.Form[Form](r); err != nil {
		return nil, form, err
	}
	m = &Matrix{}
	return m, form, shard.Each(r, func(one result) error {
		if one.Code < 0 || one.Code > 255 {
			return fmt.Errorf("%w: there is no exit code %d", shard.ErrShards, one.Code)
		}
		c := &Cell{Kernel: string(one.Kernel), Label: string(one.Label), Release: string(one.Release), Code: one.Code, Took: one.Took}
		switch {
		case one.Ended:
			c.Err = ErrEnded
		case len(one.Error) > 0:
			c.Err = errors.New(string(one.Error))
		}
		c.Stdout.Write(one.Stdout)
		c.Stderr.Write(one.Stderr)
		c.events.Write(one.Events)
		m.Cells = append(m.Cells, c)
		return nil
	})
}
