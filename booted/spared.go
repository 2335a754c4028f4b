package booted

import (
	"encoding/binary"

	"kprobelab/x86"
)

// Values of signal_struct.oom_score_adj (include/uapi/linux/oom.h).
const (
	neverKilled   = -1000 // OOM_SCORE_ADJ_MIN
	killedAsOther = 0
)

// spare says whether a full memory may make the kernel kill the supervisor. Without it the kernel kills the largest
// process, and among many small ones that is the supervisor. A program inherits the value by fork, so the supervisor is
// not spared while it starts one. The host writes the value itself: a write to /proc/self/oom_score_adj would be an event
// for each tool that traces the guest. If the kernel does not describe its types, nothing is written.
func (v *supervision) spare(yes bool) error {
	if v.spared == yes {
		return nil
	}
	v.spared = yes
	var signal, score x86.Addr
	types := v.k.image.Types()
	if !offsets(types, "task_struct", map[string]*x86.Addr{"signal": &signal}) || !offsets(types, "signal_struct", map[string]*x86.Addr{"oom_score_adj": &score}) {
		return nil
	}
	value := int16(killedAsOther)
	if yes {
		value = neverKilled
	}
	return v.k.machine.WriteMem(v.k.pointer(v.from.task+signal)+score, binary.LittleEndian.AppendUint16(nil, uint16(value)))
}
