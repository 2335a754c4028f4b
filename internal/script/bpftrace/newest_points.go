package bpftrace

import (
	"fmt"
	"strconv"
	"strings"
)

// newestPoint reads what 0.27 writes otherwise: the names of probes, and times. It returns the parts in 0.23's words, or
// the message for a mistake.
func (c *checker) newestPoint(name *string, parts []string) ([]string, string) {
	switch *name {
	case "kprobe", "kretprobe":
		if len(parts) == 2 && strings.HasPrefix(parts[1], "0x") && !c.o.Unsafe {
			return nil, "Probing by address requires --unsafe"
		}
	case "rawtracepoint":
		if len(parts) == 3 {
			return []string{parts[0], parts[2]}, "" // the module does not matter: names of tracepoints are unique
		}
	case "begin", "end":
		*name = strings.ToUpper(*name)
	case "interval", "profile":
		if len(parts) == 2 && !wild(parts[1]) {
			n, err := nanoseconds(parts[1])
			if err != "" {
				return nil, err
			}
			return []string{parts[0], "ns", strconv.FormatUint(n, 10)}, ""
		}
	}
	return parts, ""
}

// nanoseconds reads a time: a number with a unit, or of nanoseconds.
func nanoseconds(text string) (uint64, string) {
	unit := uint64(1)
	if m := durationRE.FindStringSubmatch(text); m != nil && m[0] == text {
		text, unit = m[1], durations[m[2]]
	}
	n, err := parseUint(text)
	if err != "" {
		return 0, fmt.Sprintf("%s\nInvalid rate of probe", err)
	}
	return n * unit, ""
}

// special returns the name of a begin or end probe.
func (c *checker) special(provider string) string {
	if c.o.Language.newest() {
		return strings.ToLower(provider)
	}
	return provider
}
