package ring

import (
	"fmt"
	"strconv"
)

// Stats are a CPU's counters.
type Stats struct {
	// Entries are there to read now.
	Entries uint64
	// Overrun counts overwritten records, Dropped the records that were not written because the
	// buffer was full, Read the consumed ones.
	Overrun, Dropped, Read uint64
	// Bytes are unread, paddings and headers of events included.
	Bytes int64
	// OldestTime is the time of the oldest page that may be overwritten, in
	// nanoseconds, 0 where nothing was written.
	OldestTime uint64
}

// Stats reads a CPU's counters.
func (b *Buffer) Stats(cpu int) Stats {
	c := b.cpus[cpu]
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Stats{
		Entries: c.entries(), Overrun: c.overrun, Dropped: c.dropped, Read: c.read,
		Bytes: c.bytes - c.readBytes,
	}
	if c.used == 0 {
		s.OldestTime = c.reader.stamp()
	} else {
		s.OldestTime = c.at(0).stamp()
	}
	return s
}

// Counts are the two numbers in the head of the trace file, over all CPUs:
// entries in the buffer, and entries written but for those consumed.
func (b *Buffer) Counts() (inBuffer, written uint64) {
	for i := range b.cpus {
		s := b.Stats(i)
		inBuffer += s.Entries
		written += s.Entries + s.Overrun
	}
	return inBuffer, written
}

// Text is per_cpu/cpuN/stats, with the clock reading now: in nanoseconds, or else in the clock's
// own unit.
func (s Stats) Text(now uint64, inNS bool) string {
	write := seconds
	if !inNS {
		write = func(v uint64) string { return strconv.FormatUint(v, 10) }
	}
	return fmt.Sprintf("entries: %d\noverrun: %d\ncommit overrun: 0\nbytes: %d\n"+
		"oldest event ts: %s\nnow ts: %s\ndropped events: %d\nread events: %d\n",
		s.Entries, s.Overrun, s.Bytes, write(s.OldestTime), write(now), s.Dropped, s.Read)
}

// seconds writes a time as the stats do: rounded to microseconds.
func seconds(ns uint64) string {
	us := (ns + 500) / 1000
	return fmt.Sprintf("%5d.%06d", us/1e6, us%1e6)
}

// LostLine returns the line that trace and trace_pipe print before a record if records before it
// were lost; else "".
func (r Record) LostLine() string {
	if r.Lost == 0 {
		return ""
	}
	return fmt.Sprintf("CPU:%d [LOST %d EVENTS]\n", r.CPU, r.Lost)
}
