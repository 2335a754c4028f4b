package tracing

// faults counts the exceptions that a record's fetches would raise. The
// kernels that have a fault_handler count each as a missed hit of the probe
// that is being handled (kprobe_fault_handler, to 5.13).
type faults struct {
	n uint64
	// waiting are texts that would be read a second time, to be stored, where
	// text behind them gives them room.
	waiting uint64
}

// raises reports whether reading there is tried at all: addresses that cannot
// be what they should be are refused before.
func raises(addr uint64, user bool) bool {
	return addr < userEnd || !user && addr>>47 == 1<<17-1
}

// number is a fault of a number: one in kernel memory; in user memory a second
// one, for the copy tries the rest byte by byte.
func (f *faults) number(addr uint64, user bool) {
	if !raises(addr, user) {
		return
	}
	f.n++
	if addr < userEnd {
		f.n++
	}
}

// text is a fault of a text: one where its length is taken, and one where it
// is stored.
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
