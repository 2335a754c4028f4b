package probepoint

import (
	"kprobelab/errno"
	"kprobelab/kprobes/rule"
	"kprobelab/x86"
)

// Refusal is the error of a probe that cannot be planted: the kernel's errno,
// the first rule that refused, and the place. It wraps the errno, so that
// errors.Is(err, errno.EILSEQ) holds, and the cause where there is one.
type Refusal struct {
	Errno errno.Errno
	Rule  rule.ID
	// Addr is the address that was refused, 0 where it was not found.
	Addr x86.Addr
	// Symbol names the place as "symbol+0xoffset"; it is empty where no
	// symbol is known.
	Symbol string
	// Why is the rule in words, lower case, with the details of this place.
	Why string
	// Cause is the error of the layer below, or nil.
	Cause error
}

// Refuse makes a refusal with the rule's own errno and words.
func Refuse(id rule.ID, at x86.Addr, symbol string) *Refusal {
	return RefuseAs(id.Errno(), id, at, symbol)
}

// RefuseAs is Refuse where a release, or the layer below, has another errno.
func RefuseAs(e errno.Errno, id rule.ID, at x86.Addr, symbol string) *Refusal {
	return &Refusal{Errno: e, Rule: id, Addr: at, Symbol: symbol, Why: id.Why()}
}

// Error reads like "probe vfs_read+0x3: not at an instruction boundary (EILSEQ)".
func (r *Refusal) Error() string {
	return "probe " + r.place() + ": " + r.Why + " (" + r.Errno.Name() + ")"
}

func (r *Refusal) place() string {
	if r.Symbol != "" {
		return r.Symbol
	}
	return r.Addr.String()
}

// Unwrap gives errors.Is and errors.As the errno and the cause.
func (r *Refusal) Unwrap() []error {
	if r.Cause == nil {
		return []error{r.Errno}
	}
	return []error{r.Errno, r.Cause}
}
