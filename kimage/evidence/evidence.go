// Package evidence keeps what is found out about a kernel: facts, the kind of evidence that each
// has, and which evidence decides if several kinds disagree.
//
// It must not know of images, nor where evidence is read.
package evidence

import (
	"slices"

	"kprobelab/profile"
)

// Fact is something inferred about the kernel.
type Fact struct {
	// Name is the profile's field or the configuration option that it decides, or a
	// word that describes the kernel ("release", "compiler").
	Name string
	// Value is the decided value.
	Value string
	// Evidence says in a few words where the value was read.
	Evidence string
	// From is the kind of the evidence if the fact decides a field of the profile or of
	// the boot-time text, else empty.
	From Source
	// Against has the evidence that says otherwise and was not followed.
	Against []Witness
}

// Source is a kind of evidence for a field of the profile, the best first.
type Source string

// The kinds of evidence.
const (
	// Measured: the image's own functions were run and asked.
	Measured Source = "measured"
	// Configured: the kernel's configuration says so.
	Configured Source = "configuration"
	// Symbolic: the image has, or lacks, a symbol or a section.
	Symbolic Source = "symbol"
	// Absent: the image lacks a symbol that it could lack for other reasons.
	Absent Source = "no symbol"
	// Coded: it is in the image's code, data or banner.
	Coded Source = "code"
	// Dated: the release, by the dates of changes or of its nearest profile.
	Dated Source = "release"
	// Asked: the user chose the profile.
	Asked Source = "asked for"
)

// Facts lists facts in the order in which they were found.
type Facts []Fact

// Add appends facts.
func (l *Facts) Add(f ...Fact) { *l = append(*l, f...) }

// Set replaces the fact of that name, or adds it.
func (l *Facts) Set(f Fact) {
	for i := range *l {
		if (*l)[i].Name == f.Name {
			(*l)[i] = f
			return
		}
	}
	l.Add(f)
}

// Find returns the first fact of that name, the zero Fact if there is none.
func (l Facts) Find(name string) Fact {
	for _, f := range l {
		if f.Name == name {
			return f
		}
	}
	return Fact{}
}

// Value returns the value of the first fact of that name, "" if there is none.
func (l Facts) Value(name string) string { return l.Find(name).Value }

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

// Says makes a Witness.
func Says(value, why string, from Source) Witness {
	return Witness{Value: value, Evidence: why, From: from}
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

// best returns the first of the witnesses by the chain, and the witnesses with other values;
// false if there are no witnesses. Evidence of code and of symbols has one rank, in the order given.
func best(witnesses []Witness) (first Witness, against []Witness, ok bool) {
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

// ByRelease returns the release's value of a field that no configuration decides.
func ByRelease(c *profile.Config, field string) Witness {
	return Witness{Value: c.Field(field), Evidence: "profile " + c.Name, From: Dated}
}

// Decided makes a fact of the witnesses; false if there are none.
func Decided(name string, witnesses []Witness) (Fact, bool) {
	first, against, ok := best(witnesses)
	return Fact{Name: name, Value: first.Value, Evidence: first.Evidence, From: first.From, Against: against}, ok
}
