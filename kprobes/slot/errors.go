package slot

import (
	"fmt"

	"kprobelab/errno"
	"kprobelab/x86"
)

// Rule is the stable name of a rule that refuses to put an instruction out of
// line. Tools print it and tests compare it.
type Rule string

// The rules, in the order in which the kernel applies them.
const (
	// RuleUnreadable: the instruction's bytes cannot be read.
	RuleUnreadable Rule = "UNREADABLE"
	// RuleUndecodable: the kernel's decoder does not know the bytes.
	RuleUndecodable Rule = "UNDECODABLE"
	// RuleEmulatePrefix: a Xen or KVM forced-emulation prefix.
	RuleEmulatePrefix Rule = "EMULATE_PREFIX"
	// RuleInt3: the instruction is a breakpoint.
	RuleInt3 Rule = "INT3"
	// RuleMasksExceptions: pop ss or mov ss.
	RuleMasksExceptions Rule = "MASKS_EXCEPTIONS"
	// RuleDisplacement: the target of a RIP-relative operand is more than
	// 2 GiB from the copy.
	RuleDisplacement Rule = "DISPLACEMENT"
	// RuleFarBranch: far call, far jump or iret.
	RuleFarBranch Rule = "FAR_BRANCH"
	// RuleBranchMemory: an indirect call or jump through memory, or with an
	// address-size prefix.
	RuleBranchMemory Rule = "BRANCH_THROUGH_MEMORY"
	// RuleVMCall: VMCALL and its neighbours, 0F 01 C0 to C7.
	RuleVMCall Rule = "VMCALL"
	// RuleTooLong: no room for an int3 behind a 15-byte instruction.
	RuleTooLong Rule = "TOO_LONG"
)

var refusals = map[Rule]struct {
	errno errno.Errno
	why   string
}{
	RuleUnreadable:      {errno.EINVAL, "its bytes cannot be read"},
	RuleUndecodable:     {errno.EINVAL, "the kernel's decoder does not know it"},
	RuleEmulatePrefix:   {errno.EINVAL, "it has a forced-emulation prefix"},
	RuleInt3:            {errno.EINVAL, "it is an int3"},
	RuleMasksExceptions: {errno.EINVAL, "it masks exceptions (pop ss, mov ss)"},
	RuleDisplacement:    {errno.EINVAL, "its new displacement does not fit into s32"},
	RuleFarBranch:       {errno.EOPNOTSUPP, "it is a far branch or iret"},
	RuleBranchMemory:    {errno.EOPNOTSUPP, "it branches through memory"},
	RuleVMCall:          {errno.EOPNOTSUPP, "it is a vmcall or of its group"},
	RuleTooLong:         {errno.ENOSPC, "no room for an int3 behind 15 bytes"},
}

// Rules lists every rule, in the kernel's order.
func Rules() []Rule {
	return []Rule{
		RuleUnreadable, RuleUndecodable, RuleEmulatePrefix, RuleInt3,
		RuleMasksExceptions, RuleDisplacement, RuleFarBranch,
		RuleBranchMemory, RuleVMCall, RuleTooLong,
	}
}

// Errno is the error number that registration returns for the rule.
func (r Rule) Errno() errno.Errno { return refusals[r].errno }

// Why is the rule in a few words that follow "the instruction cannot be put
// out of line:".
func (r Rule) Why() string { return refusals[r].why }

// Error is a refusal to put the instruction at Addr out of line. errors.Is
// finds its error number: EINVAL, EOPNOTSUPP or ENOSPC.
type Error struct {
	Rule Rule
	Addr x86.Addr
	// Cause is the decoder's error, for RuleUndecodable.
	Cause error
	// Displacement is what does not fit, for RuleDisplacement.
	Displacement int64
}

// Error says which instruction and why.
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

func refuse(r Rule, at x86.Addr) error { return &Error{Rule: r, Addr: at} }
