package machine

import (
	"encoding/binary"
	"fmt"

	"kprobelab/kimage"
	"kprobelab/x86"
)

// ud2Size is the length of the ud2 that BUG and WARN are made of.
const ud2Size = 2

// bugTable is a source that knows which ud2 is a WARN (the kernel's bug table).
type bugTable interface {
	BugAt(addr x86.Addr) (kimage.Bug, bool)
}

// OnLog makes the machine call fn with each line that the kernel itself would
// log: a WARN that was reached. nil removes it.
func (m *Machine) OnLog(fn func(line string)) { m.onLog = fn }

// warn goes on after the ud2 of a WARN and logs it, once for a WARN_ONCE
// (lib/bug.c, report_bug). Whether it was logged is in the guest's bug table. A
// BUG stays a fault.
func (m *Machine) warn(regs *x86.PtRegs) bool {
	table, ok := m.src.(bugTable)
	if !ok {
		return false
	}
	at := x86.Addr(regs.IP)
	bug, ok := table.BugAt(at)
	if !ok {
		return false
	}
	var b [2]byte
	if m.ReadMem(bug.Flags, b[:]) != nil {
		return false
	}
	flags := binary.LittleEndian.Uint16(b[:])
	if flags&kimage.BugWarning == 0 {
		return false
	}
	regs.IP += ud2Size
	if flags&kimage.BugOnce != 0 && flags&kimage.BugDone != 0 {
		return true
	}
	if flags&kimage.BugOnce != 0 {
		binary.LittleEndian.PutUint16(b[:], flags|kimage.BugDone)
		if m.WriteMem(bug.Flags, b[:]) != nil {
			return false
		}
	}
	m.log(fmt.Sprintf("WARNING: CPU: %d PID: %d at %s", m.CPU(), m.Task(), m.warnPlace(bug)))
	return true
}

func (m *Machine) warnPlace(bug kimage.Bug) string {
	if bug.File == "" {
		return m.Symbolize(bug.Addr)
	}
	return fmt.Sprintf("%s:%d %s", bug.File, bug.Line, m.Symbolize(bug.Addr))
}

func (m *Machine) log(line string) {
	if m.onLog != nil {
		m.onLog(line)
	}
}
