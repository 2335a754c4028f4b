package skeletons

import (
	"bytes"
	"encoding/binary"
)

// The header of a little-endian ELF file of 64 bits, and what it says of an object of BPF.
const (
	magic       = "\x7fELF\x02\x01\x01"
	headerSize  = 64
	sectionSize = 64
	relocatable = 1
	machineBPF  = 247
	noBytes     = 8 // SHT_NOBITS
)

// inside finds the BPF objects in a program's bytes, each from its header to its last byte.
func inside(b []byte) (objects [][]byte) {
	for {
		i := bytes.Index(b, []byte(magic))
		if i < 0 {
			return objects
		}
		b = b[i:]
		n := size(b)
		if n > 0 {
			objects = append(objects, b[:n])
		}
		b = b[max(n, len(magic)):]
	}
}

// size is that of the object at the beginning of b, 0 if there is none: its sections and the table of them end it.
func size(b []byte) int {
	le := binary.LittleEndian
	if len(b) < headerSize || le.Uint16(b[16:]) != relocatable || le.Uint16(b[18:]) != machineBPF {
		return 0
	}
	table, count := le.Uint64(b[40:]), uint64(le.Uint16(b[60:]))
	end := table + count*sectionSize
	if le.Uint16(b[58:]) != sectionSize || table < headerSize || end < table || end > uint64(len(b)) {
		return 0
	}
	for s := b[table:end]; len(s) > 0; s = s[sectionSize:] {
		from, length := le.Uint64(s[24:]), le.Uint64(s[32:])
		if le.Uint32(s[4:]) == noBytes {
			continue
		}
		if from+length < from || from+length > uint64(len(b)) {
			return 0
		}
		end = max(end, from+length)
	}
	return int(end)
}
