package optimizer

import (
	"kprobelab/decoder"
	"kprobelab/kprobes/slot"
	"kprobelab/x86"
)

// MaxRegion is the longest DCR in bytes (MAX_OPTIMIZED_LENGTH): 4 bytes and
// one instruction of 15.
const MaxRegion = x86.Rel32Size - 1 + decoder.MaxInsnSize

// tooFar is the kernel's test of the buffer's distance, which has the 5 with
// the wrong sign (docs/spec 4.2, step 3).
func tooFar(at, buf x86.Addr) bool {
	rel := buf.Sub(at) + x86.Rel32Size
	return rel > 0x7fffffff || rel < -0x7fffffff
}

// copyReason is the slot package's rule as one of ours, None for "".
func copyReason(r slot.Rule) ReasonID {
	switch r {
	case "":
		return None
	case slot.RuleUndecodable:
		return CopyUndecodable
	case slot.RuleEmulatePrefix:
		return CopyEmulatePrefix
	case slot.RuleInt3:
		return CopyInt3
	case slot.RuleMasksExceptions:
		return CopyMasksExceptions
	case slot.RuleDisplacement:
		return CopyDisplacement
	}
	return CopyUnreadable
}
