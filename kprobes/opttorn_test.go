package kprobes_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// errTorn: a CPU ran something that is no instruction of the program, or the
// program went wrong.
var errTorn = errors.New("torn")

// tearing makes a random run on a machine that leaves a step out, and reports whether a CPU ran a
// torn instruction. The model is not compared: the text may be wrong as long as no CPU runs it.
func tearing(kernel, leaveOut string, seed uint64) error {
	r := newOptRun(kernel, seed)
	r.leaveOut = leaveOut
	for range 200 {
		r.act()
		if err := r.ranTorn(); err != nil {
			return err
		}
		r.failed = nil
		if leaveOut == "wait" {
			clear(r.waits) // as the machine says
		}
	}
	return nil
}

func (r *optRun) ranTorn() error {
	if len(r.torn) > 0 {
		return fmt.Errorf("%w: %s", errTorn, r.torn[0])
	}
	for cpu, t := range r.threads {
		switch {
		case t == nil || !t.done:
		case t.err != nil:
			return fmt.Errorf("%w: %w", errTorn, t.err)
		case t.regs.AX != r.args[cpu]+overResult:
			return fmt.Errorf("%w: over(%d) = %d", errTorn, r.args[cpu], t.regs.AX)
		}
	}
	return nil
}

// TestNoStepCanBeLeftOut: without a necessary step of the protocol some CPU runs a torn
// instruction, and with all steps no CPU ever does. The steps that kprobes could do without,
// because the probe's own int3 does their work, are listed too.
func TestNoStepCanBeLeftOut(t *testing.T) {
	const seeds = 150
	for _, c := range []struct {
		step string
		torn bool
		why  string
	}{
		{"", false, "nothing is left out"},
		{"wait", true, "a task is inside the bytes that become the jump's tail"},
		{"optimize: int3", false, "the probe's own int3 is there"},
		{"optimize: sync after int3", false, "and everybody has seen it"},
		{"optimize: tail", true, "the jump leads anywhere"},
		{"optimize: sync after tail", true, "a CPU sees the new first byte and the old tail"},
		{"optimize: first", false, "the int3 stays, and leads through the detour"},
		{"optimize: sync after first", false, "a CPU that still sees the int3 goes through the detour"},
		{"undo: int3", true, "the tail changes under the jump"},
		{"undo: sync after int3", true, "a CPU sees the jump's first byte and the new tail"},
		{"undo: tail", true, "the original first byte is written before the displacement"},
		{"undo: sync after tail", true, "a CPU sees the original first byte and the displacement"},
	} {
		t.Run(c.step, func(t *testing.T) {
			var err error
			for seed := uint64(0); seed < seeds && err == nil; seed++ {
				err = tearing("6.1", c.step, seed)
			}
			if c.torn {
				require.ErrorIs(t, err, errTorn, c.why)
			} else {
				require.NoError(t, err, c.why)
			}
			t.Logf("%v (%s)", err, c.why)
		})
	}
}
