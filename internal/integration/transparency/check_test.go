package transparency

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/profile"
	"kprobelab/x86"
)

// baseline is a call unprobed: at full speed, and instruction by instruction.
type baseline struct {
	args []any
	outcome
	*trace
}

// tally counts the work that was done.
type tally struct{ functions, probes, refused, runs, hits, listed int }

func (c *tally) String() string {
	return fmt.Sprintf("%d functions, %d places probed and %d refused, %d probed runs, %d hits, %d runs of listed differences",
		c.functions, c.probes, c.refused, c.runs, c.hits, c.listed)
}

func (c *tally) add(o *tally) {
	c.functions += o.functions
	c.probes += o.probes
	c.refused += o.refused
	c.runs += o.runs
	c.hits += o.hits
	c.listed += o.listed
}

// reporter is the common interface of a test and a fuzz target.
type reporter interface {
	require.TestingT
	Logf(format string, args ...any)
}

// check is one kernel's run over the guest kernel.
type check struct {
	*bench
	t reporter
	tally
	extent
	real       profile.Decoder
	have, want outcome
	// found counts the listed differences that showed, failures the failed checks.
	found    map[string]int
	failures int
}

// check opens a machine, which the test closes.
func (k *kernel) check(t *testing.T, edit func(*profile.Config)) *check {
	c := k.openCheck(t, edit)
	t.Cleanup(func() { _ = c.Lab.Close() })
	return c
}

// openCheck opens a machine, which the caller closes.
func (k *kernel) openCheck(t reporter, edit func(*profile.Config)) *check {
	c := &check{bench: k.open(t, edit), t: t, real: newest().Decoder, found: map[string]int{}}
	c.extent = extentOf(testing.Short())
	return c
}

// newest is the kernel whose decoder knows every instruction of the guest.
func newest() *profile.Config {
	c, _ := profile.Named("6.12")
	return c
}

// fail reports a failure, up to a number that a person may want to read.
func (c *check) fail(format string, args ...any) {
	if c.failures++; c.failures <= 20 {
		c.t.Errorf(format, args...)
	}
}

// unprobed makes the calls without a probe.
func (c *check) unprobed(f *function) []baseline {
	base := make([]baseline, c.calls)
	for i := range base {
		base[i] = c.unprobedOnce(f, f.gen(newGen(c.seed+uint64(i))))
	}
	return base
}

func (c *check) unprobedOnce(f *function, args []any) baseline {
	b := baseline{args: args}
	require.NoError(c.t, c.run(f, args, &b.outcome), f.name)
	tr, o, err := c.stepped(f, args)
	require.NoError(c.t, err, f.name)
	require.Empty(c.t, o.difference(&b.outcome, x86.Range{}), "%s, instruction by instruction: %v", f.name, args)
	b.trace = tr
	return b
}

// function probes one function: each boundary in several ways, and all of
// them at once.
func (c *check) function(f *function, base []baseline) {
	c.functions++
	text := c.text(f)
	at := c.boundaries(f.addr, f.size, &c.Image.Profile().Decoder)
	real := c.boundaries(f.addr, f.size, &c.real)
	var all []*place
	for n, a := range at {
		ways, with := []*way{&wayPre, &wayPost}, base
		switch {
		case f.form == nil || f.form.insn == a:
			ways = append(ways, &wayJoin, &wayMany, &wayBare)
		default:
			ways = c.preparation(n, ways)
			with = base[n%c.calls:][:1]
		}
		for _, w := range ways {
			if !c.place(f, a, slices.Contains(real, a), w, with) {
				break
			}
		}
	}
	for n, a := range at {
		if p, err := c.plant(a, []*way{&wayPre, &wayPost}[n&1]); err == nil {
			p.realBoundary = slices.Contains(real, a)
			all = append(all, p)
		}
	}
	c.together(f, all, base)
	if now := c.text(f); !slices.Equal(text, now) {
		c.fail("%s: the text is not restored", f.name)
	}
}

// preparation selects the ways for the instructions around the instruction of a form: they are the
// same in many forms.
func (c *check) preparation(n int, ways []*way) []*way {
	switch {
	case c.sparse:
		return nil
	case c.alternate:
		return ways[n&1:][:1]
	}
	return ways
}

func (c *check) text(f *function) []byte {
	b := make([]byte, f.size)
	require.NoError(c.t, c.Machine.ReadMem(f.addr, b))
	return b
}

// place probes one instruction in one way; false where the kernel refuses.
func (c *check) place(f *function, at x86.Addr, real bool, w *way, with []baseline) bool {
	p, err := c.plant(at, w)
	if err != nil {
		c.refused++
		return false
	}
	defer p.remove()
	p.realBoundary = real
	c.probes++
	for i := range with {
		b := &with[i]
		d := p.listed(b.trace)
		wrong := ""
		if d != nil {
			wrong = c.runListed(f, p, d, b)
		} else {
			wrong = c.runSame(f, p, b)
		}
		if wrong != "" {
			c.fail("%s+%#x (%x) probed with %s, called with %v: %s", f.name, at.Sub(f.addr), p.insn, w.name, b.args, wrong)
		}
	}
	return true
}

// runSame makes a run that has to be the same as unprobed.
func (c *check) runSame(f *function, p *place, b *baseline) string {
	p.expect(b.trace)
	c.probed(f, b)
	c.hits += len(p.hits)
	if d := c.have.difference(&b.outcome, p.dead(b.trace)); d != "" {
		return d
	}
	if err := c.Kprobes.ClearErr(); err != nil {
		return err.Error()
	}
	return p.counted()
}

func (c *check) probed(f *function, b *baseline) {
	require.NoError(c.t, c.run(f, b.args, &c.have), f.name)
	c.runs++
}

// runListed makes a run where a listed difference may show, and compares it
// with the model.
func (c *check) runListed(f *function, p *place, d *difference, b *baseline) string {
	p.now = nil
	p.start()
	c.probed(f, b)
	_ = c.Kprobes.ClearErr() // an emulated access to a stack that is gone
	c.listed++
	if c.have.difference(&b.outcome, p.dead(b.trace)) != "" {
		c.found[d.name]++
	}
	if d.model == nil {
		return ""
	}
	m := d.model(p)
	c.Machine.SetTraps(m)
	err := c.run(f, b.args, &c.want)
	c.Machine.SetTraps(c.Kprobes.Traps())
	require.NoError(c.t, err, f.name)
	if wrong := c.have.difference(&c.want, x86.Range{}); wrong != "" {
		return "not as the kernel's " + d.name + ": " + wrong
	}
	for _, member := range p.members {
		if member.PreHandler != nil && !member.Disabled() && member.pres != m.hits {
			return fmt.Sprintf("%s: %d hits, not %d", d.name, member.pres, m.hits)
		}
	}
	return ""
}

// together runs with all boundaries of a function probed, except those with listed differences, and
// removes the probes.
func (c *check) together(f *function, all []*place, base []baseline) {
	all = slices.DeleteFunc(all, func(p *place) bool {
		listed := slices.ContainsFunc(base, func(b baseline) bool { return p.listed(b.trace) != nil })
		if listed {
			p.remove()
		}
		return listed
	})
	for i := range base {
		b, dead := &base[i], x86.Range{}
		for _, p := range all {
			p.expect(b.trace)
			if p.ftrace {
				dead = p.dead(b.trace)
			}
		}
		c.probed(f, b)
		wrong := c.have.difference(&b.outcome, dead)
		if err := c.Kprobes.ClearErr(); err != nil {
			wrong += err.Error()
		}
		for _, p := range all {
			c.hits += len(p.hits)
			if w := p.counted(); w != "" && wrong == "" {
				wrong = fmt.Sprintf("at +%#x: %s", p.at.Sub(f.addr), w)
			}
		}
		if wrong != "" {
			c.fail("%s with every boundary probed, called with %v: %s", f.name, b.args, wrong)
		}
	}
	for _, p := range all {
		p.remove()
	}
}
