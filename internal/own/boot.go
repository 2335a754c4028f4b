package own

import "encoding/binary"

// systemRunning is at least SYSTEM_RUNNING in every release (1 to 4.12, 2 to 5.16, 3
// later), so that comparisons of the order take it for running.
const systemRunning = 3

// setState sets what a booted kernel has in the variable that the questions depend
// on: while the system boots, the text of init functions counts as text. An image
// that has it in memory that is not writable keeps its own, which says booting.
func (k *Kernel) setState(state uint32) {
	if at := only(k.img.Lookup("system_state")); at != 0 {
		_ = k.m.WriteMem(at, binary.LittleEndian.AppendUint32(nil, state))
	}
}

// whileBooting asks a question about the tables of patched sites. Their entries are
// marked as init functions' until boot has looked at them (from 5.14 on), and those
// are left out of the answer once the system is up.
func (k *Kernel) whileBooting(ask func() (bool, error)) (bool, error) {
	k.setState(0)
	defer k.setState(systemRunning)
	return ask()
}
