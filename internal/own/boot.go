//go:build cgo && linux && amd64

package own

import "encoding/binary"

// systemRunning is at least SYSTEM_RUNNING in every release (1 to 4.12, 2 to 5.16,
// 3 later), and no less than what counts as running where the order is asked.
const systemRunning = 3

// boot sets what a booted kernel has in the variables that the questions depend
// on: while the system boots, the text of init functions counts as text.
func (k *Kernel) boot() {
	if at := only(k.img.Lookup("system_state")); at != 0 {
		// An image that has it in memory that is not writable keeps its own.
		_ = k.m.WriteMem(at, binary.LittleEndian.AppendUint32(nil, systemRunning))
	}
}
