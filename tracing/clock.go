package tracing

import (
	"slices"
	"strings"

	"kprobelab/errno"
	"kprobelab/tracing/ring"
)

// clocks are the clocks that trace_clock names. There is one virtual clock, in
// nanoseconds, which all of them read, but for counter: that counts what reads
// it.
var clocks = []string{"local", "global", clockCounter, "perf", "mono", "mono_raw", "boot"}

const clockCounter = "counter"

// now is the time of a record that is written now, by the array's clock.
func (a *traceArray) now() uint64 {
	if a.clock == clockCounter {
		a.counter++
		return a.counter
	}
	return a.t.m.Now()
}

// clockText is the file trace_clock: the chosen one is in brackets.
func (a *traceArray) clockText() string {
	list := slices.Clone(clocks)
	i := slices.Index(list, a.clock)
	list[i] = "[" + list[i] + "]"
	return strings.Join(list, " ") + "\n"
}

// writeClock chooses a clock, and empties the buffer: times of two clocks
// cannot be compared (tracing_set_clock).
func (a *traceArray) writeClock(s string) error {
	s = strings.TrimSpace(s)
	if !slices.Contains(clocks, s) {
		return errno.EINVAL
	}
	a.clock = s
	a.ring.Reset()
	return nil
}

// statsText is per_cpu/cpuN/stats.
func (a *traceArray) statsText(cpu int) string {
	return a.ring.Stats(cpu).Text(a.now(), a.clock != clockCounter)
}

// headerPage and headerEvent are events/header_page and header_event: the
// layout of what trace_pipe_raw reads. From 6.2 on a kernel's char has no sign
// (-funsigned-char).
func (t *Tracing) headerPage() string {
	sign := "1"
	if t.c.BTFArgs {
		sign = "0"
	}
	return "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n" +
		"\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n" +
		"\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n" +
		"\tfield: char data;\toffset:16;\tsize:" + itoa(ring.PageData) + ";\tsigned:" + sign + ";\n"
}

func headerEvent() string {
	return "# compressed entry header\n" +
		"\ttype_len    :    5 bits\n" +
		"\ttime_delta  :   27 bits\n" +
		"\tarray       :   32 bits\n\n" +
		"\tpadding     : type == 29\n" +
		"\ttime_extend : type == 30\n" +
		"\ttime_stamp : type == 31\n" +
		"\tdata max type_len  == 28\n"
}
