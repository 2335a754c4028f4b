package slot

import (
	"fmt"

	"kprobelab/kprobes/rule"
	"kprobelab/x86"
)

// Error is a refusal to put the instruction at Addr out of line. errors.Is
// finds its error number: EINVAL, EOPNOTSUPP or ENOSPC.
type Error struct {
	Rule rule.ID
	Addr x86.Addr
	// Cause is the decoder's error, for rule.SlotUndecodable.
	Cause error
	// Displacement is the value that does not fit, for rule.SlotDisplacement.
	Displacement int64
}

// Error names the instruction and the reason.
func (e *Error) Error() string {
	why := e.Rule.Why()
	if e.Cause != nil {
		why += " (" + e.Cause.Error() + ")"
	}
	return fmt.Sprintf("the instruction at %v cannot be put out of line: %s", e.Addr, why)
}

// Unwrap gives the error number. The decoder's own number is not the
// kernel's answer, so Cause is left out.
func (e *Error) Unwrap() error { return e.Rule.Errno() }

func refuse(r rule.ID, at x86.Addr) error { return &Error{Rule: r, Addr: at} }
