package tracing

// faults counts the exceptions that a record's fetches would raise. The
// kernels that have a fault_handler count each as a missed hit of the probe
// that is being handled (kprobe_fault_handler, to 5.13).
type faults struct {
	n uint64
	// waiting has the texts that a kernel would read a second time, to store
	// them, if a later text gives them room.
	waiting uint64
}

// raises reports whether a kernel tries to read there at all: it refuses
// impossible addresses before that.
func raises(addr uint64, user bool) bool {
	return addr < userEnd || !user && addr>>47 == 1<<17-1
}

// number counts the faults of a number: one in kernel memory, two in user
// memory, where the copy tries the rest byte by byte.
func (f *faults) number(addr uint64, user bool) {
	if !raises(addr, user) {
		return
	}
	f.n++
	if addr < userEnd {
		f.n++
	}
}

// text counts the faults of a text: one where its length is taken, and one
// where it is stored.
func (f *faults) text(addr uint64, user bool) {
	if raises(addr, user) {
		f.n++
		f.waiting++
	}
}

// stored tells of n bytes of text in the record.
func (f *faults) stored(n int) {
	if n > 0 {
		f.n += f.waiting
		f.waiting = 0
	}
}

// countFaults adds a record's faults to the misses of all probes at its place.
func (t *Tracing) countFaults(tp *probe, f *faults) {
	if f.n == 0 || !t.p.FaultHandler {
		return
	}
	for _, o := range t.probes {
		if o.planted && o.kp.Addr == tp.kp.Addr {
			o.kp.Nmissed += f.n
		}
	}
}
