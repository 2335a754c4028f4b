package transparency

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/profile"
)

// extent is the amount of work of a run.
type extent struct {
	// calls is the number of inputs of a function.
	calls int
	// seed is the first of their seeds.
	seed uint64
	// sparse leaves out the instructions that many forms share; alternate tries
	// those in one way each, in turn.
	sparse, alternate bool
	// part takes one function of so many.
	part int
}

// extentOf is the extent of a short run, of an ordinary one, and with
// $KPROBELAB_SOAK of a long one, with other inputs each time: $KPROBELAB_SEED
// repeats one.
func extentOf(short bool) extent {
	seed, _ := strconv.ParseUint(os.Getenv("KPROBELAB_SEED"), 10, 64)
	switch {
	case soaking():
		return extent{calls: 8, seed: seed, part: 1}
	case short:
		return extent{calls: 1, seed: seed, sparse: true, part: 7}
	}
	return extent{calls: 2, seed: seed, alternate: true, part: 1}
}

func soaking() bool { return os.Getenv("KPROBELAB_SOAK") != "" }

// Every boundary of the guest kernel's functions, probed in every way on every kernel, leaves the
// program unchanged, except for the listed differences, which equal their models; and each
// difference shows where the list says.
func TestProbesAreTransparent(t *testing.T) {
	total := &sum{}
	t.Cleanup(func() { total.report(t) })
	for _, k := range kernels {
		t.Run(k.name, func(t *testing.T) {
			k.parallel(t)
			c := k.check(t, nil)
			if k.again && k.profile == "6.12" && !soaking() {
				c.sparse = true // what the forms repeat steps as in 6.1 and 5.10
			}
			c.everything(total)
			for _, d := range differences {
				if slices.Contains(d.on, k.name) {
					if testing.Short() {
						continue // one input need not show it
					}
					require.Positive(t, c.found[d.name], "%s is listed for this kernel", d.name)
				} else {
					require.Zero(t, c.found[d.name], "%s is not listed for this kernel", d.name)
				}
			}
			total.add(c)
		})
	}
}

// With the fields of all differences off, no run differs.
func TestWithoutDifferences(t *testing.T) {
	total := &sum{}
	t.Cleanup(func() { total.report(t) })
	for _, k := range kernels {
		t.Run(k.name, func(t *testing.T) {
			k.parallel(t)
			c := k.check(t, without)
			c.sparse = true
			if !soaking() {
				c.calls = 1
			}
			c.everything(total)
			require.Zero(t, c.listed)
			total.add(c)
		})
	}
}

// docs/transparency.md names the field of each difference.
func TestEveryDifferenceIsTold(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "transparency.md"))
	require.NoError(t, err)
	for _, d := range differences {
		require.Contains(t, string(text), "`"+strings.TrimPrefix(d.field, "Step.")+"`", d.name)
	}
}

// One difference turned off leaves the others.
func TestOneDifferenceOff(t *testing.T) {
	for _, d := range differences {
		t.Run(strings.ReplaceAll(d.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			k := kernels[slices.IndexFunc(kernels, func(k kernel) bool { return slices.Contains(d.on, k.name) })]
			c := k.check(t, func(c *profile.Config) { d.off(c) })
			c.sparse = true
			c.someForms()
			c.writtenOnes()
			require.Zero(t, c.found[d.name])
		})
	}
}

// sum adds the kernels' tallies up.
type sum struct {
	sync.Mutex
	tally
	skipped map[string]int
}

func (s *sum) add(c *check) {
	s.Lock()
	defer s.Unlock()
	s.tally.add(&c.tally)
	c.log()
}

func (c *check) log() {
	var found []string
	for _, d := range differences {
		if n := c.found[d.name]; n > 0 {
			found = append(found, fmt.Sprintf("%s (%d)", d.name, n))
		}
	}
	c.t.Logf("%s; differences shown: %s", &c.tally, strings.Join(found, ", "))
}

func (s *sum) skip(why string) {
	s.Lock()
	defer s.Unlock()
	if s.skipped == nil {
		s.skipped = map[string]int{}
	}
	s.skipped[why]++
}

func (s *sum) report(t *testing.T) {
	t.Logf("all kernels: %s", &s.tally)
	for why, n := range s.skipped {
		t.Logf("left out %d times: %s", n, why)
	}
}

// leftOut are the forms that tell nothing, with the reason.
func (f *function) leftOut() string {
	switch {
	case f.name == "form_rdtsc":
		return "rdtsc: a probe takes time"
	case f.name == "form_mov_to_dr7":
		return "mov to dr7: the machine refuses it"
	case f.form != nil && f.form.flags&needsAVX != 0:
		return "Unicorn has no AVX: the form's preparation is an invalid opcode"
	}
	return ""
}

// everything is all functions, and all there is at once.
func (c *check) everything(s *sum) {
	for n, f := range c.all(c.t) {
		if n%c.part != 0 {
			continue
		}
		if why := f.leftOut(); why != "" {
			s.skip(why)
			continue
		}
		c.function(&f, c.unprobed(&f))
	}
	c.writtenOnes()
}

// someForms are the forms of listed differences.
func (c *check) someForms() {
	for _, f := range c.all(c.t) {
		for _, name := range []string{"form_loop", "form_loop_67", "form_ret_imm16", "form_pushfw", "form_popfw", "form_len_14",
			"form_rep_ret", "form_evex", "ex_divide", "fault_read"} {
			if f.name == name {
				c.function(&f, c.unprobed(&f))
			}
		}
	}
}

// writtenOnes checks the functions that are written over one of the guest's.
func (c *check) writtenOnes() {
	for n := range written {
		if written[n].far && !c.Image.Profile().Step.FarRetIsNear {
			continue // the machine has no descriptors to return to
		}
		f, undo := c.write(c.t, n)
		c.function(&f, c.unprobed(&f))
		undo()
	}
}
