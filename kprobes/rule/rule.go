// Package rule has every rule by which the kernel refuses a probe or its optimization: its stable
// name, its error number, the rule in words, and its place in the kernel's code.
//
// It must not know how a rule is tested, nor what a probe is: slot, probepoint and optimizer apply
// the rules, and kprobes applies the rules of registered probes.
package rule

import (
	"fmt"
	"strings"

	"kprobelab/errno"
	"kprobelab/profile"
)

// Kind is the decision that a rule belongs to.
type Kind string

// The kinds.
const (
	// Registration: may a probe be there at all.
	Registration Kind = "registration"
	// OutOfLine: can the instruction be copied to a slot.
	OutOfLine Kind = "slot"
	// Optimization: can a jump replace the int3. The kernel swallows the error
	// number, and the probe keeps its int3.
	Optimization Kind = "optimization"
	// Asking: does the caller that places the probe get as far as registration.
	Asking Kind = "asking"
)

// Of lists the rules of a kind, in the kernel's order.
func Of(kind Kind) (list []ID) {
	for id := None + 1; id < numRules; id++ {
		if rows[id].kind == kind {
			list = append(list, id)
		}
	}
	return list
}

func (id ID) row() *row {
	if id >= numRules {
		id = None
	}
	return &rows[id]
}

// String is the rule's stable name, such as "JTPR_TARGET", which tools print
// and tests compare; "" for None. It is unique within its kind only.
func (id ID) String() string { return id.row().name }

// Kind is the decision that the rule belongs to; "" for None.
func (id ID) Kind() Kind { return id.row().kind }

// Errno is the error number that the kernel's function returns in 6.1, or in the release that has
// the rule. It is 0 if a lower layer decides, or if the kernel does not try.
func (id ID) Errno() errno.Errno { return id.row().errno }

// Why returns the rule in words, for any place. The text of a registration rule continues "probe
// NAME: ", that of a slot rule "the instruction cannot be put out of line: ".
func (id ID) Why() string {
	r := id.row()
	if end, ended := profile.Ended(r.field); ended {
		return r.why + " (before " + end.String() + ")"
	}
	return r.why
}

// Here returns a rule of optimization as one sentence about a place: at is the place, insn the
// instruction there and target its destination.
func (id ID) Here(at, insn, target string) string {
	return strings.NewReplacer("{at}", at, "{insn}", insn, "{target}", target).Replace(id.row().here)
}

// Source names the kernel file and function that contain the rule, and the section of the
// documentation if there is one.
func (id ID) Source() string { return id.row().source }

// InDetour returns the rule for a copy in a detour buffer that corresponds to a rule for a copy in
// a slot; None for None.
func (id ID) InDetour() ID {
	if id == None {
		return None
	}
	return id - SlotUnreadable + CopyUnreadable
}

// MarshalText gives the stable name.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// Known reports whether a number is a rule's, or None.
func Known(n int) bool { return n >= 0 && n < int(numRules) }

// UnmarshalText reads the stable name. A name that rules of several kinds have means the first of them.
func (id *ID) UnmarshalText(text []byte) error {
	for *id = None; *id < numRules; *id++ {
		if id.String() == string(text) {
			return nil
		}
	}
	*id = None
	return fmt.Errorf("there is no rule %q", text)
}
