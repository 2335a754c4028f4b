package fetch

import "kprobelab/x86"

// Faults counts the exceptions that a record's fetches would raise. The
// kernels that have a fault_handler count each as a missed hit of the probe
// that is being handled (kprobe_fault_handler, to 5.13).
type Faults struct {
	N uint64
	// waiting has the texts that a kernel would read a second time, to store
	// them, if a later text gives them room.
	waiting uint64
}

// raises reports whether a kernel tries to read there at all: it refuses
// impossible addresses before that.
func raises(addr uint64, user bool) bool {
	return addr < uint64(x86.UserEnd) || !user && addr>>47 == 1<<17-1
}

// number counts the faults of a number: one in kernel memory, two in user
// memory, where the copy tries the rest byte by byte.
func (f *Faults) number(addr uint64, user bool) {
	if !raises(addr, user) {
		return
	}
	f.N++
	if addr < uint64(x86.UserEnd) {
		f.N++
	}
}

// text counts the faults of a text: one where its length is taken, and one
// where it is stored.
func (f *Faults) text(addr uint64, user bool) {
	if raises(addr, user) {
		f.N++
		f.waiting++
	}
}

// stored tells of n bytes of text in the record.
func (f *Faults) stored(n int) {
	if n > 0 {
		f.N += f.waiting
		f.waiting = 0
	}
}
