package vmcore

import (
	"encoding/binary"
	"strings"

	"kprobelab/internal/bounded"
)

var le = binary.LittleEndian

// Types of notes (include/uapi/linux/elf.h).
const (
	noteNone     = 0
	notePrstatus = 1
	notePrpsinfo = 3
)

// note is an ELF note.
type note struct {
	name string
	typ  uint32
	desc []byte
}

// notes takes a note segment apart. What is left over at its end is ignored, as all
// readers do: /proc/vmcore rounds it up to pages.
func notes(b []byte) []note {
	var list []note
	for len(b) >= 12 {
		nameSize, descSize, typ := uint64(le.Uint32(b)), uint64(le.Uint32(b[4:])), le.Uint32(b[8:])
		desc := 12 + align4(nameSize)
		end := desc + descSize
		if nameSize == 0 || end > uint64(len(b)) {
			break
		}
		name := strings.TrimRight(string(b[12:12+nameSize]), "\x00")
		list = append(list, note{name, typ, b[desc:end]})
		b = b[min(align4(end), uint64(len(b))):]
	}
	return list
}

func align4(n uint64) uint64 { return (n + 3) &^ 3 }

// appendTo appends the note to a segment.
func (n note) appendTo(b []byte) []byte {
	b = le.AppendUint32(b, uint32(len(n.name)+1))
	b = le.AppendUint32(b, uint32(len(n.desc)))
	b = le.AppendUint32(b, n.typ)
	b = append(b, n.name...)
	b = pad4(append(b, 0))
	return pad4(append(b, n.desc...))
}

func pad4(b []byte) []byte {
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// setNotes reads the notes of a dump.
func (c *Core) setNotes(list []note) error {
	controls := 0
	for _, n := range list {
		switch {
		case n.name == "CORE" && n.typ == notePrpsinfo:
			return bad("this is the core file of a process; the dump of a machine is wanted")
		case n.name == "CORE" && n.typ == notePrstatus:
			cpu, err := parsePrstatus(n.desc)
			if err != nil {
				return err
			}
			if c.cpus = append(c.cpus, cpu); len(c.cpus) > bounded.DumpCPUs {
				return bad("it has more than %d CPUs", bounded.DumpCPUs)
			}
		case n.name == "QEMU" && n.typ == noteNone:
			control, err := parseQEMU(n.desc)
			if err != nil {
				return err
			}
			// QEMU writes all notes of the one kind, then all of the other.
			if controls < len(c.cpus) {
				c.cpus[controls].Control = control
			}
			controls++
		case n.name == "VMCOREINFO" && n.typ == noteNone && len(n.desc) <= bounded.DumpInfo:
			c.note = n.desc
		}
	}
	return nil
}
