package decoder

import (
	"fmt"

	"kprobelab/errno"
)

// MaxInsnSize is the kernel's MAX_INSN_SIZE: no instruction is longer, and no
// decode looks at more bytes.
const MaxInsnSize = 15

// What the kernel's decoder returns for bytes it cannot decode (docs/spec 11.1).
var (
	// ErrTruncated: the instruction runs past the given bytes, in the kernel's
	// view also past 15, or its immediate is impossible. It wraps errno.ENODATA.
	ErrTruncated = fmt.Errorf("instruction is cut off or too long: %w", errno.ENODATA)
	// ErrBadVEX: the opcode does not go with the VEX or EVEX prefix, or needs
	// one. It wraps errno.EINVAL.
	ErrBadVEX = fmt.Errorf("opcode and VEX prefix do not match: %w", errno.EINVAL)
)

// What the processor makes of bytes that are no instruction; ErrTruncated too.
var (
	// ErrUnknown: no instruction in 64-bit mode (#UD). It wraps errno.EINVAL.
	ErrUnknown = fmt.Errorf("not an instruction: %w", errno.EINVAL)
	// ErrPrefix: LOCK before an instruction that cannot be locked, or 66, F3, F2, LOCK or REX
	// before VEX, EVEX or XOP (#UD). It wraps ErrUnknown.
	ErrPrefix = fmt.Errorf("a prefix that the instruction does not allow: %w", ErrUnknown)
	// ErrOperands: operands that may not go together, such as a gather whose
	// registers are not distinct, or a register that does not exist (#UD). It
	// wraps ErrUnknown.
	ErrOperands = fmt.Errorf("operands that the instruction does not allow: %w", ErrUnknown)
	// ErrTooLong: more than 15 bytes (#GP). It wraps errno.EINVAL.
	ErrTooLong = fmt.Errorf("instruction is longer than 15 bytes: %w", errno.EINVAL)
)
