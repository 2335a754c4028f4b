package optimizer

import (
	"kprobelab/decoder"
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
