package hazard

import (
	"errors"
	"fmt"
	"strings"

	"kprobelab/profile"
)

// ID is a hazard's stable name, such as "CALL_PREFIX".
type ID string

// Effect is the consequence of a hit of the probe.
type Effect string

// The effects, the worst first.
const (
	// Hang: the CPU does not come back.
	Hang Effect = "hang"
	// Oops: the kernel goes on where no code is meant to run, or with a stack that is
	// not right: an oops, or memory overwritten if the address happens to be mapped.
	Oops Effect = "oops"
	// WrongResult: the function goes on on the wrong path.
	WrongResult Effect = "wrong-result"
	// WrongRegister: a register has a wrong value.
	WrongRegister Effect = "wrong-register"
	// Harmless: there is a difference, and nothing suffers from it.
	Harmless Effect = "harmless"
	// Refused: it would do harm, but the kernel refuses the probe.
	Refused Effect = "refused"
)

var effects = []Effect{Hang, Oops, WrongResult, WrongRegister, Harmless, Refused}

// Effects lists all, the worst first.
func Effects() []Effect { return append([]Effect(nil), effects...) }

// Harms reports whether something suffers from it.
func (e Effect) Harms() bool { return e != Harmless && e != Refused }

// Hazard is one row of the table.
type Hazard struct {
	ID ID `json:"id"`
	// Effect is the worst consequence; a point can have a lesser one.
	Effect Effect `json:"effect"`
	// Sentence describes the course of events.
	Sentence string `json:"sentence"`
	// Needs is a condition beyond the one probe, "" for none. A hazard with a condition belongs to
	// no point.
	Needs string `json:"needs,omitempty"`
	// Field is the field of profile.Config that decides which kernels have the hazard; "" stands
	// for all kernels.
	Field string `json:"field,omitempty"`
	// Cause is the origin in the kernel's code, Mend the change that would remove it.
	Cause string `json:"cause"`
	Mend  string `json:"mend"`
	// Evidence is the source of the knowledge: a measurement or the code.
	Evidence string `json:"evidence"`

	// in reports whether a kernel has the hazard.
	in func(*profile.Config) bool
	// off: the kernels that do not have the field's value have the hazard.
	off bool
	// at finds the hazard at a point; nil for a hazard that belongs to no point.
	at func(*point) (Effect, string)
}

// All is the table.
func All() []Hazard { return append([]Hazard(nil), table...) }

// ByID finds a row; false if there is none.
func ByID(id ID) (Hazard, bool) {
	for i := range table {
		if table[i].ID == id {
			return table[i], true
		}
	}
	return Hazard{}, false
}

// In reports whether a kernel has the hazard.
func (h *Hazard) In(c *profile.Config) bool { return h.in(c) }

// Span is the range of releases that have a hazard.
type Span struct {
	// From is the first release of mainline with the hazard, Until the first without it again. Zero
	// is open: always, or still.
	From, Until profile.Version
	// Also are the stable releases that introduced it, Mended the stable releases that removed it:
	// the first such release of each series.
	Also, Mended []profile.Version
}

// Span returns the releases that have the hazard, from the table of releases. A measured profile
// overrides that table.
func (h *Hazard) Span() (s Span) {
	for _, c := range profile.Changes() {
		if c.Field != h.Field {
			continue
		}
		began, ended := c.Backports()
		if h.off {
			return Span{Until: c.From, Mended: began}
		}
		return Span{From: c.From, Until: c.Until, Also: began, Mended: ended}
	}
	return s
}

// InMainline reports whether the newest known release still has the hazard.
func (h *Hazard) InMainline() bool { return h.Span().Until == profile.Version{} }

// String is the span for people.
func (s Span) String() string {
	var b strings.Builder
	switch {
	case s.From == profile.Version{} && s.Until == profile.Version{}:
		return "every release"
	case s.From == profile.Version{}:
		fmt.Fprintf(&b, "before %s", s.Until)
	case s.Until == profile.Version{}:
		fmt.Fprintf(&b, "from %s on", s.From)
	default:
		fmt.Fprintf(&b, "from %s, mended in %s", s.From, s.Until)
	}
	versions(&b, "also from", s.Also)
	versions(&b, "mended in", s.Mended)
	return b.String()
}

func versions(b *strings.Builder, words string, list []profile.Version) {
	for i, v := range list {
		if i == 0 {
			b.WriteString("; " + words + " ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(v.String())
	}
}

// ErrUnknown: a hazard has another name.
var ErrUnknown = errors.New("there is no hazard")

// Named returns the hazards of these names. Its error names the first that there is not.
func Named(names []string) (map[ID]bool, error) {
	list := map[ID]bool{}
	for _, name := range names {
		if _, ok := ByID(ID(name)); !ok {
			return nil, fmt.Errorf("%w %q; kprobelab hazards lists them", ErrUnknown, name)
		}
		list[ID(name)] = true
	}
	return list, nil
}
