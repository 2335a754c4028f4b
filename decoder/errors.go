package decoder

import (
	"fmt"

	"kprobelab/errno"
)

// MaxInsnSize is the kernel's MAX_INSN_SIZE: no instruction is longer, and no
// decode looks at more bytes.
const MaxInsnSize = 15

// What the kernel's decoder returns for bytes it cannot decode (spec 11.1).
var (
	// ErrTruncated: the instruction runs past the given bytes or past 15, or
	// its immediate is impossible. It wraps errno.ENODATA.
	ErrTruncated = fmt.Errorf("instruction is cut off or too long: %w", errno.ENODATA)
	// ErrBadVEX: the opcode does not go with the VEX or EVEX prefix, or needs
	// one. It wraps errno.EINVAL.
	ErrBadVEX = fmt.Errorf("opcode and VEX prefix do not match: %w", errno.EINVAL)
)
