package tracing

import (
	"slices"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/tracing/ring"
	"kprobelab/internal/tracing/word"
)

// The clocks that do not count nanoseconds: "counter" counts its own readings,
// "uptime" the ticks of user mode (USER_HZ), "x86-tsc" the processor's cycles,
// of which a nanosecond has one here.
const (
	clockLocal   = "local"
	clockCounter = "counter"
	clockUptime  = "uptime"
	clockTSC     = "x86-tsc"
)

// clocks returns the names of trace_clock, in the kernel's order (trace_clocks[]). All of them read
// the one virtual clock, except counter.
func (t *Tracing) clocks() []string {
	list := []string{clockLocal, "global", clockCounter, clockUptime, "perf", "mono", "mono_raw"}
	if t.c.BootClock {
		list = append(list, "boot")
	}
	if t.c.TAIClock {
		list = append(list, "tai")
	}
	return append(list, clockTSC)
}

// inNS reports whether the array's clock is in nanoseconds.
func (a *traceArray) inNS() bool {
	return a.clock != clockCounter && a.clock != clockUptime && a.clock != clockTSC
}

// jiffy is the kernel's tick in nanoseconds (HZ is 250), userTick the tick that user mode sees
// (USER_HZ).
const (
	jiffy    = 1_000_000_000 / 250
	userTick = 1_000_000_000 / 100
)

// now is the time of a record that is written now, by the array's clock.
func (a *traceArray) now() uint64 {
	switch now := a.t.m.Now(); a.clock {
	case clockCounter:
		a.counter++
		return a.counter
	case clockUptime:
		return now / jiffy * jiffy / userTick
	default:
		return now
	}
}

// clockText is the file trace_clock: the chosen one is in brackets.
func (a *traceArray) clockText() string {
	list := a.t.clocks()
	i := slices.Index(list, a.clock)
	list[i] = "[" + list[i] + "]"
	return strings.Join(list, " ") + "\n"
}

// writeClock chooses a clock, and empties the buffer: times of two clocks
// cannot be compared (tracing_set_clock).
func (a *traceArray) writeClock(s string) error {
	s = word.Trim(s)
	if !slices.Contains(a.t.clocks(), s) {
		return errno.EINVAL
	}
	a.clock = s
	a.ring.Reset()
	return nil
}

// statsText is per_cpu/cpuN/stats.
func (a *traceArray) statsText(cpu int) string {
	return a.ring.Stats(cpu).Text(a.now(), a.inNS())
}

// signedChar: a char has a sign. From 6.2 on kernels are built with -funsigned-char.
func (t *Tracing) signedChar() bool { return !t.c.BTFArgs }

// headerPage and headerEvent are events/header_page and header_event: the layout of the data of
// trace_pipe_raw.
func (t *Tracing) headerPage() string {
	sign := "0"
	if t.signedChar() {
		sign = "1"
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
