package kimage

import (
	"slices"

	"kprobelab/profile"
)

// Who decides: a fact that a release or a configuration changes has several witnesses, and the
// first one of the chain that says anything decides. Those after it that say otherwise are kept
// with the fact, because that is a fault here, a backport, or a configuration of another kernel.

// Witness is the value that one kind of evidence gives to a fact.
type Witness struct {
	// Value is the value; Evidence says in words where it was read.
	Value, Evidence string
	// From is its kind.
	From Source
}

// chain has the kinds of evidence, the best first: what the image's own code answers when it is
// run; what its bytes, tables and symbols show; its configuration; that symbols are absent which
// need not be there; its release.
var chain = []Source{Measured, Coded, Symbolic, Configured, Absent, Dated}

// place returns the index of a kind of evidence in the chain.
func (s Source) place() int {
	if i := slices.Index(chain, s); i >= 0 {
		return i
	}
	return len(chain)
}

// decided returns the first of the witnesses by the chain, and the witnesses with other values;
// false if there are no witnesses. Evidence of code and of symbols has one rank, in the order given.
func decided(witnesses []Witness) (first Witness, against []Witness, ok bool) {
	rank := func(w *Witness) int {
		if w.From == Symbolic {
			return Coded.place()
		}
		return w.From.place()
	}
	list := slices.Clone(witnesses)
	slices.SortStableFunc(list, func(a, b Witness) int { return rank(&a) - rank(&b) })
	for _, w := range list {
		switch {
		case !ok:
			first, ok = w, true
		case w.Value != first.Value && w.From != Absent: // what may be absent for other reasons disputes nothing
			against = append(against, w)
		}
	}
	return first, against, ok
}

// dated returns the release's value of a field that no configuration decides.
func dated(c *profile.Config, field string) Witness {
	return Witness{Value: c.Field(field), Evidence: "profile " + c.Name, From: Dated}
}

// decidedFact makes a fact of the witnesses; false if there are none.
func decidedFact(name string, witnesses []Witness) (Fact, bool) {
	first, against, ok := decided(witnesses)
	return Fact{Name: name, Value: first.Value, Evidence: first.Evidence, From: first.From, Against: against}, ok
}

// Disputed lists the facts about which witnesses disagree.
func (img *Image) Disputed() (list []Fact) {
	for _, f := range img.facts {
		if len(f.Against) > 0 {
			list = append(list, f)
		}
	}
	return list
}

// askedFor lets a configuration that the user gave decide, as a requested profile does. The image's
// evidence is kept beside it.
func (e *evidence) askedFor(f Fact, given Witness) Fact {
	if e.img.opts.Config == "" || f.Value == given.Value {
		return f
	}
	said := Witness{f.Value, f.Evidence, f.From}
	return Fact{Name: f.Name, Value: given.Value, Evidence: given.Evidence, From: given.From, Against: []Witness{said}}
}
