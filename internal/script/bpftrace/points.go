package bpftrace

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"kprobelab/internal/ctype"
	"kprobelab/internal/script"
	"kprobelab/internal/script/host"
)

// Kernel answers which functions, events and types a kernel has. Scripts are resolved with it. Its fields may be nil.
type Kernel struct {
	host.Kernel
	// Events returns the events whose names fit a pattern, "subsystem:name", with their fields. EventNames returns the
	// names of all events.
	Events     func(pattern string) []Event
	EventNames func() []string
	// Formats returns the events that have a format and cannot be enabled, by their names; the value is
	// true if the event has a number.
	Formats func() map[string]bool
	// Ways says which probes the kernel accepts.
	Ways Ways
	// Symbol returns the address of a symbol.
	Symbol func(name string) (uint64, bool)
	// PathIn reports a function in which the kernel lets programs call bpf_d_path; nil if that is not known.
	PathIn func(function string) bool
	// FunctionsAtReturns: at the return of a program's function the kernel gives the function's address (6.7).
	FunctionsAtReturns bool
}

// Event is a tracepoint's event, with the fields of its record.
type Event struct {
	Name   string
	Fields []Field
	// Tracepoint is the tracepoint that is enabled for the event. If Filter is not nil, only a hit at which it is
	// not 0 is the event.
	Tracepoint string
	Filter     script.Expr
	// Chained: the event's stack begins with the caller of the tracepoint, after the address Above if that is not 0.
	Chained bool
	Above   uint64
	// Record: the kernel makes a record, and its address is the first parameter.
	Record bool
}

// Field is one field of an event.
type Field struct {
	Name string
	Type *ctype.Type
	// Text is the field's declaration in the event's format file.
	Text string
	// X is the value, or with InMemory its address.
	X        script.Expr
	InMemory bool
}

// FieldType is the type that bpftrace gives to a field of an event, by its type and size in the event's format:
// an integer that the kernel writes in more bytes than it has is as wide as that, with the sign of its type.
func FieldType(text string, size int64) string {
	if size == 8 {
		switch text {
		case "int":
			return "long"
		case "unsigned int", "unsigned", "u32", "pid_t", "uid_t", "gid_t":
			return "unsigned long"
		}
	}
	return text
}

// point is an attach point.
type point struct {
	raw string
	at  span

	provider     string
	target, name string
	offset       int64
	// address is the address of a place in a program that has no name; language is the language of a name.
	address  uint64
	language string
	freq     uint64
	// skip: the point is left out. optional: a pattern of providers has made it.
	skip, optional bool
	watched        *watched
	// expansion is the way in which a pattern is expanded. probes holds the probes of the point.
	// matched holds the entry of each probe in the tool's list, "" if the point is no pattern.
	// For tracepoints, events holds the event of each probe.
	expansion expansion
	probes    []*host.Probe
	matched   []string
	events    []*Event
	// unresolved is a place in a file that is not there, refused one that cannot be probed,
	// both in words.
	unresolved, refused string
}

var aliases = map[string]string{
	"k": "kprobe", "kr": "kretprobe", "u": "uprobe", "ur": "uretprobe", "t": "tracepoint", "p": "profile", "i": "interval", "s": "software",
	"h": "hardware", "w": "watchpoint", "aw": "asyncwatchpoint", "f": "fentry", "fr": "fexit", "kfunc": "fentry", "kretfunc": "fexit",
	"it": "iter", "rt": "rawtracepoint", "U": "usdt",
}

var providers = []string{
	"BEGIN", "END", "self", "kprobe", "kretprobe", "uprobe", "uretprobe", "usdt", "tracepoint", "profile", "interval", "software", "hardware",
	"watchpoint", "asyncwatchpoint", "fentry", "fexit", "iter", "rawtracepoint",
}

// parts splits a point at its colons.
func (c *checker) parts(pt *point) (list []string, err string) {
	raw, part, quoted := pt.raw, "", false
	for i := 0; i < len(raw); i++ {
		switch ch := raw[i]; {
		case ch == ':' && !quoted:
			list = append(list, part)
			part = ""
		case ch == '"':
			quoted = !quoted
		case quoted && ch == '\\' && i+1 < len(raw):
			i++
			part += raw[i : i+1]
		case !quoted && ch == '$':
			end := i + 1
			for end < len(raw) && raw[end] != '"' && raw[end] != ':' {
				end++
			}
			text := raw[i+1 : end]
			n := 0
			for n < len(text) && text[n] >= '0' && text[n] <= '9' {
				n++
			}
			if n < len(text) {
				return nil, fmt.Sprintf("Found trailing text '%s' in positional parameter index. Try quoting the trailing text.", text[n:])
			}
			num, err := strconv.ParseInt(text, 10, 64)
			if err != nil || num == 0 {
				return nil, outOfRange("$" + text)
			}
			part += c.param(int(num))
			i = end - 1
		default:
			part += raw[i : i+1]
		}
	}
	return append(list, part), ""
}

// outOfRange returns the message for a parameter's number that is out of range.
func outOfRange(text string) string {
	return fmt.Sprintf("param %s is out of integer range [1, %d]", text, int64(math.MaxInt64))
}

func (c *checker) param(n int) string {
	if n > 0 && n <= len(c.o.Args) {
		return c.o.Args[n-1]
	}
	return ""
}

func counted(pt *point, want string, parts []string) string {
	return fmt.Sprintf("%s probe type requires %s arguments, found %d", pt.provider, want, len(parts)-1)
}

// readPoint reads a point. It returns the message for a mistake, "" for none.
func (c *checker) readPoint(pt *point) string {
	parts, err := c.parts(pt)
	if err != "" {
		return err
	}
	if parts[0] == "" {
		pt.skip = true
		return ""
	}
	name := parts[0]
	if long, ok := aliases[name]; ok {
		name = long
	}
	if c.o.Language.newest() {
		if parts, err = c.newestPoint(&name, parts); err != "" {
			return err
		}
	}
	pt.provider = name
	known := false
	for _, p := range providers {
		known = known || p == name
	}
	known = known || c.o.Language.newest() && (name == "bench" || name == "test")
	if !known {
		return "Invalid probe type: " + parts[0]
	}
	switch name {
	case "BEGIN", "END":
		if len(parts) == 2 && parts[1] == "*" {
			parts = parts[:1]
		}
		if len(parts) != 1 {
			return counted(pt, "0", parts)
		}
	case "bench", "test":
		if len(parts) != 2 {
			return counted(pt, "1", parts)
		}
		pt.name = parts[1]
	case "self":
		if len(parts) != 3 {
			return counted(pt, "2", parts)
		}
		pt.target, pt.name = parts[1], parts[2]
	case "kprobe", "kretprobe", "fentry", "fexit":
		if len(parts) != 2 && len(parts) != 3 {
			if pt.skip = pt.optional; pt.skip {
				return ""
			}
			return counted(pt, "1 or 2", parts)
		}
		pt.name = parts[len(parts)-1]
		if len(parts) == 3 {
			pt.target = parts[1]
		}
		if name[0] == 'k' && strings.Contains(pt.name, "+") {
			return pt.withOffset()
		}
	case "tracepoint":
		if len(parts) == 2 && wild(parts[1]) {
			parts = []string{parts[0], "*", parts[1]}
		}
		if len(parts) != 3 {
			if pt.skip = pt.optional; pt.skip {
				return ""
			}
			return counted(pt, "2", parts)
		}
		pt.target, pt.name = parts[1], parts[2]
	case "rawtracepoint":
		if len(parts) != 2 {
			if pt.skip = pt.optional; pt.skip {
				return ""
			}
			return counted(pt, "1", parts)
		}
		pt.name = parts[1]
	case "profile", "interval":
		if len(parts) == 2 && wild(parts[1]) {
			pt.target = parts[1] // for a list
			return ""
		}
		if len(parts) != 3 {
			return counted(pt, "2", parts)
		}
		pt.target = parts[1]
		rate, negative := strings.CutPrefix(parts[2], "-")
		v, e := parseInt(rate)
		switch {
		case e != "":
			return fmt.Sprintf("%s\nInvalid rate of %s probe", e, name)
		case negative:
			v = 0 // no rate either
		}
		pt.freq = v
	case "software", "hardware":
		if len(parts) != 2 && len(parts) != 3 {
			if pt.skip = pt.optional; pt.skip {
				return ""
			}
			return counted(pt, "1 or 2", parts)
		}
		if pt.target = parts[1]; len(parts) == 3 && parts[2] != "*" {
			v, err := unsigned(parts[2])
			if err != "" {
				return err + "\nInvalid count for " + name + " probe"
			}
			pt.freq = v
		}
	case "uprobe", "uretprobe", "usdt":
		if len(parts) != 3 && len(parts) != 4 {
			return counted(pt, "2 or 3", parts)
		}
		return pt.readProgram(parts)
	case "watchpoint", "asyncwatchpoint":
		if len(parts) != 4 {
			return counted(pt, "3", parts)
		}
		return pt.readWatch(parts[1:])
	case "iter":
		if len(parts) != 2 && len(parts) != 3 {
			if pt.skip = pt.optional; pt.skip {
				return ""
			}
			return name + " probe type takes 2 arguments (1 optional)"
		}
		if pt.name = parts[1]; starred(pt.name) && !c.listing {
			if pt.skip = pt.optional; pt.skip {
				return ""
			}
			return name + " probe type does not support wildcards"
		}
	}
	return ""
}

func (pt *point) withOffset() string {
	if pt.provider == "kretprobe" {
		return "Offset not allowed"
	}
	if strings.Count(pt.name, "+") != 1 {
		return "Cannot take more than one offset"
	}
	name, off, _ := strings.Cut(pt.name, "+")
	v, err := strconv.ParseInt(off, 0, 64)
	if err != nil || name == "" {
		return "Invalid offset"
	}
	pt.name, pt.offset = name, v
	return ""
}

// units are of timers.
var units = map[string]uint64{"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1, "hz": 0}

// absent are the kinds of probes that are not there, with the reason.
var absent = map[string]string{
	"usdt":     "the markers of programs are not there",
	"software": "there are no software events to sample", "hardware": "there is no performance counter to sample",
	"iter": "iterators are not there", "self": "there is no signal to wait for",
}

// checkPoint reports the mistakes in a point after readPoint.
func (c *checker) checkPoint(pt *point) {
	bad := func(format string, a ...any) { c.error(pt.at, format, a...) }
	switch pt.provider {
	case "kprobe", "kretprobe":
		if pt.name == "" {
			bad("kprobes should be attached to a function")
		}
		c.warnUntraceable(pt)
	case "fentry", "fexit":
		if pt.name == "" {
			bad("fentry/fexit should specify a function")
		}
	case "tracepoint":
		if pt.target == "" || pt.name == "" {
			bad("tracepoint probe must have a target")
		}
	case "rawtracepoint":
		if pt.name == "" {
			bad("rawtracepoint should be attached to a function")
		}
	case "profile", "interval":
		if _, ok := units[pt.target]; !ok {
			if pt.target == "" {
				bad("%s probe must have unit of time", pt.provider)
			} else {
				bad("%s is not an accepted unit of time", pt.target)
			}
		}
		if int64(pt.freq) <= 0 {
			bad("%s frequency should be a positive integer", pt.provider)
		}
	case "BEGIN", "END":
		if c.final {
			if c.seen[pt.provider] && !c.o.Language.newest() {
				bad("More than one %s probe defined", pt.provider)
			}
			c.seen[pt.provider] = true
		}
	case "watchpoint", "asyncwatchpoint":
		c.checkWatch(pt)
	case "uprobe", "uretprobe":
		c.checkProgram(pt)
	case "usdt":
		switch {
		case pt.name == "":
			bad("usdt probe must have a target function or wildcard")
		case pt.target != "" && c.k != nil && c.k.Program != nil && c.targetOf(pt) == nil:
			bad("usdt target file '%s' does not exist or is not executable", pt.target)
		default:
			bad("usdt: %s", absent["usdt"])
		}
	case "software", "hardware":
		if wild(pt.target) || pt.optional {
			bad("wildcards are not allowed for hardware probe type")
			return
		}
		if !c.o.Language.newest() || !clocks[pt.target] || pt.provider == "hardware" {
			bad("%s: %s", pt.provider, absent[pt.provider])
		}
	case "self":
		if !c.o.Language.newest() {
			bad("%s: %s", pt.provider, absent[pt.provider])
		} else if pt.target != "signal" || pt.name != "SIGUSR1" {
			bad("Only %s is supported for self probes", "signal:SIGUSR1")
		}
	case "bench", "test":
	default:
		bad("%s: %s", pt.provider, absent[pt.provider])
	}
}

// maxProbes is the maximum number of probes that bpftrace attaches.
const maxProbes = 1024

// resolve finds what a point stands for.
func (c *checker) resolve(pt *point) {
	if pt.skip || pt.probes != nil {
		return
	}
	switch pt.provider {
	case "BEGIN", "END":
		kind := map[string]host.ProbeKind{"BEGIN": host.Begin, "END": host.End}[pt.provider]
		pt.add(&host.Probe{Kind: kind, Point: c.special(pt.provider)}, "")
	case "profile", "interval":
		every := units[pt.target] * pt.freq
		if pt.target == "hz" && pt.freq > 0 {
			every = 1e9 / pt.freq
		}
		pt.add(&host.Probe{Kind: host.Timer, Every: max(every, 1000), Profile: pt.provider == "profile", Point: fmt.Sprintf("%s:%s:%d", pt.provider, pt.target, pt.freq)}, "")
	case "software":
		c.clock(pt)
	case "watchpoint":
		pt.add(c.watch(pt), "")
	case "uprobe", "uretprobe":
		c.program(pt)
	}
}
