package optimizer

import (
	"fmt"
	"iter"
	"math/bits"

	"kprobelab/errno"
)

// ReasonID names a rule that keeps a probe from being optimized. Its text
// (String) is stable: tools print it and tests compare it. The numbers are not;
// they are in the order in which the kernel asks.
type ReasonID uint8

// The rules, in the kernel's order.
const (
	// None: no rule refuses.
	None ReasonID = iota
	// NoOptprobes: this kernel optimizes no probes.
	NoOptprobes
	// FtraceBased: the probe runs from the function tracer.
	FtraceBased

	// NoSymbol: no symbol covers the address.
	NoSymbol
	// EntryText: the address lies in entry text.
	EntryText
	// TooShort: fewer than 5 bytes are left of the function.
	TooShort
	// ExceptionEntry: an instruction of the function is in the exception table.
	ExceptionEntry
	// Unreadable: code of the function cannot be read.
	Unreadable
	// Undecodable: the kernel's decoder does not know an instruction of it.
	Undecodable
	// Int3InFunction: there is an int3 in the function (to 5.9).
	Int3InFunction
	// IndirectJump: there is an indirect jump in the function (to 6.11).
	IndirectJump
	// ThunkJump: a jump of the function leads into the thunks (to 6.11).
	ThunkJump
	// JTPRTarget: a jump of the function leads into the JTPR.
	JTPRTarget

	// Distance: the detour buffer is out of a jump's reach.
	Distance
	// CopyUnreadable: an instruction of the DCR cannot be read.
	CopyUnreadable
	// CopyUndecodable: the kernel's decoder does not know one.
	CopyUndecodable
	// CopyEmulatePrefix: one has a forced-emulation prefix.
	CopyEmulatePrefix
	// CopyInt3: one is an int3.
	CopyInt3
	// CopyMasksExceptions: one masks exceptions.
	CopyMasksExceptions
	// CopyDisplacement: the operand of one is out of reach from the buffer.
	CopyDisplacement
	// NotBoostable: one is not boostable.
	NotBoostable
	// ReservedFtrace: the DCR overlaps an ftrace site.
	ReservedFtrace
	// ReservedSMPLock: it overlaps a lock prefix that may yet be patched.
	ReservedSMPLock
	// ReservedJumpLabel: it overlaps a jump label.
	ReservedJumpLabel
	// ReservedStaticCall: it overlaps an inline static call.
	ReservedStaticCall

	// NumReasons is one more than the last rule.
	NumReasons
)

// reason is a rule for people: rule says it of no place in particular, why of
// one. In why, {at} is the place, {insn} what stands there and {target} where
// it leads.
type reason struct {
	name   string
	errno  errno.Errno
	rule   string
	why    string
	source string
}

// The places in the kernel and its documentation where the rules stand.
const (
	srcConfig   = "arch/x86/Kconfig, HAVE_OPTPROBES; kernel/kprobes.c"
	srcTry      = "kernel/kprobes.c, try_to_optimize_kprobe"
	srcCan      = "arch/x86/kernel/kprobes/opt.c, can_optimize; kprobes.rst, Safety Check"
	srcIndirect = "arch/x86/kernel/kprobes/opt.c, insn_is_indirect_jump; kprobes.rst, Safety Check"
	srcInto     = "arch/x86/kernel/kprobes/opt.c, insn_jump_into_range; kprobes.rst, Safety Check"
	srcPrepare  = "arch/x86/kernel/kprobes/opt.c, arch_prepare_optimized_kprobe"
	srcCopy     = "arch/x86/kernel/kprobes/core.c, __copy_instruction"
	srcBoost    = "arch/x86/kernel/kprobes/core.c, can_boost; kprobes.rst, Safety Check"
	srcReserved = "arch/x86/kernel/kprobes/opt.c, copy_optimized_instructions"
)

var reasons = [NumReasons]reason{
	None: {"", 0, "the probe can be optimized", "the probe can be optimized", srcCan},
	NoOptprobes: {
		"NO_OPTPROBES", 0,
		"the kernel optimizes no probes (no OPTPROBES, or PREEMPTION before 4.15)",
		"this kernel optimizes no probes", srcConfig,
	},
	FtraceBased: {
		"FTRACE_BASED", 0,
		"the probe is on an ftrace site: the function tracer calls it, and there is no int3 to replace",
		"{at} is an ftrace site: the function tracer calls the probe, and there is nothing to optimize", srcTry,
	},

	NoSymbol: {
		"NO_SYMBOL", errno.EILSEQ,
		"no symbol covers the address, so its function is not known",
		"no symbol covers {at}, so the function around it is not known", srcCan,
	},
	EntryText: {
		"ENTRY_TEXT", errno.EILSEQ,
		"the address lies in entry text, where stack and registers are not set up yet",
		"{at} lies in entry text, where stack and registers are not set up yet", srcCan,
	},
	TooShort: {
		"TOO_SHORT", errno.EILSEQ,
		"fewer than the 5 bytes that the jump needs are left of the function",
		"from {at} on, the function has fewer than the 5 bytes that the jump needs", srcCan,
	},
	ExceptionEntry: {
		"EXCEPTION_ENTRY", errno.EILSEQ,
		"an instruction of the function is in the exception table: a fixup may jump into the region",
		"{at}: {insn} is in the exception table, and a fixup may jump anywhere into the function", srcCan,
	},
	Unreadable: {
		"UNREADABLE", errno.EILSEQ,
		"code of the function cannot be read",
		"the code of the function cannot be read from {at} on", srcCan,
	},
	Undecodable: {
		"UNDECODABLE", errno.EILSEQ,
		"the kernel's decoder does not know an instruction of the function",
		"{at}: the kernel's decoder does not know {insn}, so what follows is not known to be free of jumps", srcCan,
	},
	Int3InFunction: {
		"INT3_IN_FUNCTION", errno.EILSEQ,
		"there is an int3 in the function, maybe another debugger's (to 6.1.0)",
		"{at} is an int3, which may be another debugger's", srcCan,
	},
	IndirectJump: {
		"INDIRECT_JUMP", errno.EILSEQ,
		"there is an indirect jump in the function (FF /4, FF /5, EA): it may lead into the region (to 6.11)",
		"{at}: {insn} may jump anywhere into the function", srcIndirect,
	},
	ThunkJump: {
		"THUNK_JUMP", errno.EILSEQ,
		"a jump of the function leads among the thunks, which makes it an indirect one (to 6.11)",
		"{at}: {insn} leads to {target}, among the thunks, and is an indirect jump", srcIndirect,
	},
	JTPRTarget: {
		"JTPR_TARGET", errno.EILSEQ,
		"a jump of the function leads into the region, behind its first byte",
		"{at}: {insn} leads to {target}, behind the first byte of what the jump replaces", srcInto,
	},

	Distance: {
		"DISTANCE", errno.ERANGE,
		"the detour buffer is more than 2 GiB away",
		"the detour buffer at {target} is more than 2 GiB from {at}", srcPrepare,
	},
	CopyUnreadable: {
		"COPY_UNREADABLE", errno.EINVAL,
		"an instruction of the region cannot be read",
		"{at} cannot be read", srcCopy,
	},
	CopyUndecodable: {
		"COPY_UNDECODABLE", errno.EINVAL,
		"the kernel's decoder does not know an instruction of the region",
		"{at}: the kernel's decoder does not know {insn}", srcCopy,
	},
	CopyEmulatePrefix: {
		"COPY_EMULATE_PREFIX", errno.EINVAL,
		"an instruction of the region has a forced-emulation prefix",
		"{at}: {insn} has a forced-emulation prefix and is not copied", srcCopy,
	},
	CopyInt3: {
		"COPY_INT3", errno.EINVAL,
		"there is an int3 in the region",
		"{at} is an int3 and is not copied", srcCopy,
	},
	CopyMasksExceptions: {
		"COPY_MASKS_EXCEPTIONS", errno.EINVAL,
		"an instruction of the region masks exceptions for the next one (pop ss, mov ss)",
		"{at}: {insn} masks exceptions for one instruction and is not copied", srcCopy,
	},
	CopyDisplacement: {
		"COPY_DISPLACEMENT", errno.EINVAL,
		"a RIP-relative operand of the region is out of reach from the detour buffer",
		"{at}: the operand of {insn} is more than 2 GiB from the detour buffer", srcCopy,
	},
	NotBoostable: {
		"NOT_BOOSTABLE", errno.EINVAL,
		"an instruction of the region is not boostable: it cannot run anywhere but in its place",
		"{at}: {insn} is not boostable, so it cannot run in the detour buffer", srcBoost,
	},
	ReservedFtrace: {
		"RESERVED_FTRACE", errno.EBUSY,
		"an ftrace site is in the region",
		"the ftrace site at {at} is in the region, and the function tracer patches it", srcReserved,
	},
	ReservedSMPLock: {
		"RESERVED_SMP_LOCK", errno.EBUSY,
		"a lock prefix that may yet be patched is in the region (UP kernels on SMP text)",
		"the lock prefix at {at} is in the region, and is patched when a second CPU comes up", srcReserved,
	},
	ReservedJumpLabel: {
		"RESERVED_JUMP_LABEL", errno.EBUSY,
		"a jump label is in the region",
		"the jump label at {at} is in the region, and is patched when its key changes", srcReserved,
	},
	ReservedStaticCall: {
		"RESERVED_STATIC_CALL", errno.EBUSY,
		"an inline static call is in the region",
		"the static call at {at} is in the region, and is patched when its key changes", srcReserved,
	},
}

// Reasons lists every rule, in the kernel's order.
func Reasons() []ReasonID {
	list := make([]ReasonID, 0, NumReasons-1)
	for id := None + 1; id < NumReasons; id++ {
		list = append(list, id)
	}
	return list
}

func (id ReasonID) row() *reason {
	if id >= NumReasons {
		id = None
	}
	return &reasons[id]
}

// String is the rule's stable name, such as "JTPR_TARGET"; "" for None.
func (id ReasonID) String() string { return id.row().name }

// Errno is what preparing the detour buffer returns in the kernel, where no
// caller looks at it: EILSEQ, ERANGE, EINVAL or EBUSY; 0 where the kernel does
// not try at all.
func (id ReasonID) Errno() errno.Errno { return id.row().errno }

// Source is where the rule stands: kernel file and function, and the section
// of the documentation where there is one.
func (id ReasonID) Source() string { return id.row().source }

// Rule is the rule as one sentence about no place in particular.
func (id ReasonID) Rule() string { return id.row().rule }

// MarshalText gives the stable name.
func (id ReasonID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText takes a stable name.
func (id *ReasonID) UnmarshalText(b []byte) error {
	for i := range NumReasons {
		if i.String() == string(b) {
			*id = i
			return nil
		}
	}
	return fmt.Errorf("no reason is called %q: %w", b, errno.EINVAL)
}

// reasonSet is a set of rules, a bit each.
type reasonSet uint32

func (s *reasonSet) add(id ReasonID) { *s |= 1 << id }

// all are the rules of the set, in the kernel's order.
func (s reasonSet) all() iter.Seq[ReasonID] {
	return func(yield func(ReasonID) bool) {
		for ; s != 0; s &= s - 1 {
			if !yield(ReasonID(bits.TrailingZeros32(uint32(s)))) {
				return
			}
		}
	}
}
