package transparency

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kprobelab/x86"
)

// allWays are the ways of probing a place.
var allWays = []*way{&wayPre, &wayPost, &wayJoin, &wayMany, &wayBare}

// Random sets of probes, on a function that is called with random arguments and on
// the functions that it calls, leave the program as it is, and their handlers see
// the right registers.
func TestRandomProbes(t *testing.T) {
	for _, k := range kernels {
		t.Run(k.name, func(t *testing.T) {
			k.parallel(t)
			c := k.check(t, nil)
			callable := slices.DeleteFunc(c.all(t), func(f function) bool { return f.leftOut() != "" })
			var places []x86.Addr
			for _, f := range callable {
				if f.form == nil {
					places = append(places, c.boundaries(f.addr, f.size, &c.real)...)
				}
			}
			rounds := 1
			if soaking() {
				rounds = 50
			}
			for range rounds {
				rapid.Check(t, func(rt *rapid.T) { c.random(rt, callable, places) })
			}
			c.t = t
			c.log()
		})
	}
}

// random is one call with a set of probes.
func (c *check) random(rt *rapid.T, callable []function, elsewhere []x86.Addr) {
	c.t, c.failures = rt, 0
	f := &callable[rapid.IntRange(0, len(callable)-1).Draw(rt, "function")]
	base := c.unprobedOnce(f, f.gen(newGen(rapid.Uint64().Draw(rt, "arguments"))))
	own := c.boundaries(f.addr, f.size, &c.real)
	at := map[x86.Addr]bool{}
	for range rapid.IntRange(1, 12).Draw(rt, "probes") {
		from := own
		if rapid.IntRange(0, 2).Draw(rt, "elsewhere") == 0 {
			from = elsewhere
		}
		at[rapid.SampledFrom(from).Draw(rt, "at")] = true
	}
	var all []*place
	for _, a := range sorted(at) {
		if p, err := c.plant(a, rapid.SampledFrom(allWays).Draw(rt, "way")); err == nil {
			all = append(all, p)
		} else {
			c.refused++
		}
	}
	c.probes += len(all)
	c.together(f, all, []baseline{base})
}

func sorted(set map[x86.Addr]bool) []x86.Addr {
	list := make([]x86.Addr, 0, len(set))
	for a := range set {
		list = append(list, a)
	}
	slices.Sort(list)
	return list
}
