package bpftrace

import (
	"strings"

	"kprobelab/internal/script"
)

// unsafeCalls are allowed by --unsafe alone.
var unsafeCalls = setOf("system signal override skboutput")

func setOf(list string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}

// refusals are functions that do nothing here, with the reason.
var refusals = map[string]string{
	"system": "a script cannot run commands here", "cat": "there are no files of a running system here", "signal": "there is no task to send a signal to",
	"override": "a probe cannot change what a function returns here", "unwatch": "a watchpoint stays until the script ends", "skboutput": "there is no packet capture here",
	"cgroup_path": "there are no cgroups here", "cgroupid": "there are no cgroups here",
	"debugf": "there is no trace_pipe here; use printf",
}

func (c *checker) available(n *node) {
	only := map[string]string{
		"reg":    "kprobe kretprobe uprobe uretprobe usdt profile interval software hardware watchpoint asyncwatchpoint",
		"uaddr":  "usdt uretprobe uprobe",
		"signal": "kprobe kretprobe uprobe uretprobe usdt tracepoint profile fentry fexit rawtracepoint",
	}[n.text]
	if only == "" {
		return
	}
	for _, pt := range c.probe.points {
		if !setOf(only)[pt.provider] {
			c.error(n.at, "%s can not be used with \"%s\" probes", n.text, pt.provider)
		}
	}
}

func (c *checker) callType(n *node) *Type {
	if c.o.Language.newest() {
		if t := c.newestCall(n); t != nil {
			return t
		}
	}
	if !c.o.Unsafe && unsafeCalls[n.text] {
		c.error(n.at, "%s() is an unsafe function being used in safe mode", n.text)
	}
	old, oldArg := c.call, c.argument
	c.call = n.text
	for i, k := range n.kids {
		c.argument = i
		if k.op == nMap && len(k.kids) == 0 {
			switch n.text {
			case "delete", "has_key":
				k.skip = i == 0
			case "print", "clear", "zero", "len":
				k.skip = true
			}
		}
		c.expr(k)
	}
	c.call, c.argument = old, oldArg
	c.available(n)
	t := c.function(n)
	if why, ok := refusals[n.text]; ok && c.final {
		c.error(n.at, "%s(): %s", n.text, why)
	}
	return t
}

func (c *checker) function(n *node) *Type {
	switch n.text {
	case "hist", "lhist", "count", "sum", "min", "max", "avg", "stats":
		return c.aggregate(n)
	case "delete", "has_key", "clear", "zero", "len", "print":
		return c.mapFunction(n)
	case "str":
		return c.strType(n)
	case "buf":
		return c.bufType(n)
	case "ksym", "usym", "strerror", "bswap", "kptr", "uptr", "macaddr", "ntop", "pton":
		return c.conversion(n)
	case "kstack", "ustack":
		return c.stack(n)
	case "printf", "system", "cat", "debugf":
		c.alone(n)
		if c.count(n, 1, 128) && c.arg(n, 0, String, true) && c.final {
			if msg := c.formatFault(n); msg != "" {
				c.error(n.at, "%s", msg)
			}
		}
	case "exit":
		c.alone(n)
		if c.count(n, 0, 1) && len(n.kids) == 1 {
			c.arg(n, 0, Integer, false)
		}
	case "join":
		c.alone(n)
		if c.count(n, 1, 2) && c.final {
			if k := n.kids[0].typ; !k.isInt() && k.Kind != Pointer {
				c.error(n.at, "() only supports int or pointer arguments (%s provided)", k.kind())
			}
			if len(n.kids) > 1 {
				c.arg(n, 1, String, true)
			}
		}
	case "time":
		c.alone(n)
		if c.count(n, 0, 1) && c.final && len(n.kids) > 0 {
			c.arg(n, 0, String, true)
		}
	case "strftime":
		if c.count(n, 2, 2) && c.final && c.arg(n, 0, String, true) && c.arg(n, 1, Integer, false) && n.kids[1].typ.Clock == "monotonic" {
			c.error(n.at, "strftime() can not take a monotonic timestamp")
		}
		return &Type{Kind: Timestamp, Size: c.maxStr}
	case "reg":
		if c.count(n, 1, 1) && c.arg(n, 0, String, true) {
			if _, ok := script.RegisterNumber(n.kids[0].text); !ok {
				c.error(n.at, "'%s' is not a valid register on this architecture (x86_64)", n.kids[0].text)
			}
		}
		return withSpace(uint64T, spaces[c.only()])
	case "kaddr":
		if c.count(n, 1, 1) {
			c.arg(n, 0, String, true)
		}
		return withSpace(uint64T, script.KernelSpace)
	case "percpu_kaddr":
		return c.perCPU(n)
	case "path":
		return c.pathType(n)
	case "nsecs":
		if c.count(n, 0, 1) && len(n.kids) == 1 && c.arg(n, 0, TimestampMode, false) && n.kids[0].text != "boot" {
			t := *uint64T
			t.Clock = n.kids[0].text
			return &t
		}
		return uint64T
	case "strncmp":
		if c.count(n, 3, 3) {
			c.arg(n, 0, String, false)
			c.arg(n, 1, String, false)
			if c.arg(n, 2, Integer, true) {
				switch v, ok := c.number(n.kids[2]); {
				case !ok:
					c.error(n.at, "strncmp: invalid size value")
				case v < 0:
					c.error(n.at, "Builtin strncmp requires a non-negative size")
				}
			}
		}
		return uint64T
	case "strcontains":
		if c.count(n, 2, 2) {
			c.arg(n, 0, String, false)
			c.arg(n, 1, String, false)
			if n.kids[0].typ.Size*n.kids[1].typ.Size > 2000 {
				c.warn(n.at, "%s", complexSearch)
			}
		}
		return uint64T
	default:
		return c.refused(n)
	}
	return none
}

// refused checks the arguments of functions that are not supported here, so that a mistake in the call is reported
// before the function is refused.
func (c *checker) refused(n *node) *Type {
	switch n.text {
	case "signal", "override", "unwatch":
		c.count(n, 1, 1)
	case "cgroupid":
		if c.count(n, 1, 1) {
			c.arg(n, 0, String, true)
		}
	case "uaddr":
		if c.count(n, 1, 1) && c.arg(n, 0, String, true) {
			return c.uaddr(n)
		}
	case "cgroup_path":
		c.count(n, 1, 2)
	case "skboutput":
		c.count(n, 4, 4)
	}
	return uint64T
}
