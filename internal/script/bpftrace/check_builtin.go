package bpftrace

import (
	"slices"
	"strings"

	"kprobelab/internal/ctype"
	"kprobelab/internal/script"
)

func (c *checker) parameter(n *node) *Type {
	text, inStr := c.param(int(n.num)), c.call == "str"
	err := ""
	switch given := int(n.num) <= len(c.o.Args); {
	case given:
		_, err = parseSigned(text)
	case inStr: // no text; elsewhere one that is not given is 0
		err = "not given"
	}
	if inStr {
		c.positional = true
	} else if c.final && err != "" {
		c.error(n.at, "$%d used numerically but given \"%s\". Try using str($%d).", n.num, text, n.num)
	}
	// Only when all other types are known it is looked which sign it has.
	if !c.final || err != "" || strings.HasPrefix(text, "-") {
		return int64T
	}
	return uint64T
}

func (c *checker) identifier(n *node) *Type {
	if c.o.Language.newest() {
		if t := c.newestIdentifier(n); t != nil {
			return t
		}
	}
	if c.call == "nsecs" {
		switch n.text {
		case "monotonic", "boot", "tai", "sw_tai":
			return &Type{Kind: TimestampMode, Name: n.text}
		}
		c.error(n.at, "Invalid timestamp mode: %s", n.text)
		return none
	}
	if v, enum, ok := c.enumerator(n.text); ok {
		n.num = uint64(v)
		return &Type{Kind: Integer, Size: 8, Name: enum.Name, C: enum}
	}
	c.error(n.at, "Unknown identifier: '%s'", n.text)
	return none
}

func (c *checker) enumerator(name string) (int64, *ctype.Type, bool) {
	if e, ok := c.defined.values[name]; ok {
		return e.Value, c.defined.of[name], true
	}
	if c.k == nil || c.k.Source == nil {
		return 0, nil, false
	}
	return c.k.Source.Enumerator(name)
}

// needs reports whether all points are of the kinds listed; the text says that one is not.
func (c *checker) needs(n *node, text string, list ...string) bool {
	for _, pt := range c.probe.points {
		ok := false
		for _, p := range list {
			ok = ok || p == pt.provider
		}
		if !ok {
			c.error(n.at, text, pt.provider)
			return false
		}
	}
	return true
}

// stackOf is the type of a whole stack, in the mode of the settings. Its size is the one of the stack's number; ustack has
// the process beside it.
func (c *checker) stackOf(word string) *Type {
	t := &Type{Kind: Kstack, Size: 16, Name: c.config["stack_mode"], N: 127}
	if word == "ustack" {
		t.Kind, t.Size = Ustack, 24
	}
	if t.Name == "" {
		t.Name = "bpftrace"
	}
	return t
}

func (c *checker) builtin(n *node) *Type {
	if t := c.newestBuiltin(n); t != nil {
		return t
	}
	switch n.text {
	case "pid", "tid":
		return integer(4, false)
	case "nsecs", "elapsed", "cgroup", "uid", "gid", "cpu", "rand", "numaid", "jiffies":
		return uint64T
	case "curtask":
		return &Type{Kind: Pointer, Size: 8, Elem: c.structure("task_struct"), Space: script.KernelSpace}
	case "comm":
		return withSpace(stringOf(16), script.KernelSpace)
	case "kstack", "ustack":
		return c.stackOf(n.text)
	case "username":
		return &Type{Kind: Username, Size: 8}
	case "cpid":
		if !c.o.Command {
			c.error(n.at, "cpid cannot be used without child command")
		}
		return integer(4, false)
	case "probe":
		c.probe.named = true
		size := 0
		for _, pt := range c.probe.points {
			size = max(size, len(pt.provider))
			if pt.target != "" || pt.name != "" {
				size = max(size, len(pt.provider)+1+len(pt.target)+1+len(pt.name))
			}
			for _, p := range pt.probes {
				size = max(size, len(p.Point))
			}
		}
		return stringOf(size + 1)
	case "func":
		if !c.needs(n, "The func builtin can not be used with '%s' probes", "kprobe", "kretprobe", "fentry", "fexit", "uprobe", "uretprobe") {
			return none
		}
		if c.ofProgram() {
			return &Type{Kind: Usym, Size: 16}
		}
		return &Type{Kind: Ksym, Size: 8}
	case "ctx":
		return c.context(n)
	case "retval":
		return c.retval(n)
	case "args":
		return c.args(n)
	}
	if strings.HasPrefix(n.text, "arg") {
		c.needs(n, "The "+n.text+" builtin can only be used with 'kprobes', 'uprobes' and 'usdt' probes%.0s", "kprobe", "uprobe", "usdt", "rawtracepoint")
		if i := n.text[3] - '0'; i > 5 {
			c.error(n.at, "x86_64 doesn't support %s", n.text)
		}
		return withSpace(uint64T, spaces[c.probe.points[0].provider])
	}
	if strings.HasPrefix(n.text, "sarg") {
		c.needs(n, "The "+n.text+" builtin can only be used with 'kprobes' and 'uprobes' probes%.0s", "kprobe", "uprobe")
		if !c.sargs {
			c.sargs = true
			first := &Problem{Warning: true, free: true, Message: "sarg* is deprecated and will be removed in the future. Use *(reg(\"sp\") + <stack_offset>) instead."}
			c.problems.warnings = slices.Insert(c.problems.warnings, 0, first)
		}
		for _, pt := range c.probe.points {
			if pt.offset != 0 || pt.address != 0 {
				c.warn(n.at, "Using an address offset with the sargX built-in canlead to unexpected behavior ")
			}
		}
		return withSpace(uint64T, spaces[c.probe.points[0].provider])
	}
	c.error(n.at, "Unknown builtin variable: '%s'", n.text)
	return none
}

func (c *checker) structure(name string) *Type {
	if t := c.defined.types["struct "+name]; t != nil {
		return fromC(t)
	}
	if c.k != nil && c.k.Source != nil {
		if t, err := c.k.Source.Tagged(ctype.Struct, name); err == nil {
			return fromC(t)
		}
	}
	return &Type{Kind: Record, Name: "struct " + name}
}

// programTypes are the kinds of BPF programs that run at probes.
var programTypes = map[string]string{
	"kprobe": "KPROBE", "kretprobe": "KPROBE", "uprobe": "KPROBE", "uretprobe": "KPROBE", "usdt": "KPROBE", "tracepoint": "TRACEPOINT",
	"profile": "PERF_EVENT", "interval": "PERF_EVENT", "software": "PERF_EVENT", "hardware": "PERF_EVENT", "watchpoint": "PERF_EVENT", "asyncwatchpoint": "PERF_EVENT",
	"fentry": "TRACING", "fexit": "TRACING", "iter": "TRACING", "rawtracepoint": "RAW_TRACEPOINT", "BEGIN": "RAW_TRACEPOINT", "END": "RAW_TRACEPOINT", "self": "RAW_TRACEPOINT",
}

func (c *checker) context(n *node) *Type {
	for _, pt := range c.probe.points {
		if one, other := programTypes[c.probe.points[0].provider], programTypes[pt.provider]; one != other {
			c.error(n.at, "ctx cannot be used in different BPF program types: BPF_PROG_TYPE_%s and BPF_PROG_TYPE_%s", one, other)
		}
	}
	for _, pt := range c.probe.points {
		switch pt.provider {
		case "kprobe", "kretprobe", "uprobe", "uretprobe":
			return &Type{Kind: Pointer, Size: 8, Elem: c.structure("pt_regs"), Context: true, Space: script.KernelSpace}
		case "tracepoint":
			c.error(n.at, "Use args instead of ctx in tracepoint")
		case "profile", "interval", "watchpoint", "asyncwatchpoint":
			return &Type{Kind: Pointer, Size: 8, Elem: c.structure("bpf_perf_event_data"), Context: true, Space: script.KernelSpace}
		default:
			c.error(n.at, "invalid program type")
		}
	}
	return none
}

func (c *checker) retval(n *node) *Type {
	switch p := c.only(); p {
	case "kretprobe", "uretprobe":
		return withSpace(uint64T, spaces[p])
	case "fexit":
		if pr := c.first(); pr != nil {
			if at := c.place(pr); at != nil {
				if t := fromC(at.Returns()); t.Kind != Void {
					return withSpace(t, script.KernelSpace)
				}
			}
		}
		c.error(n.at, "Can't find a field $retval")
	case "fentry":
		c.error(n.at, "Can't find a field $retval")
	case "tracepoint":
		c.error(n.at, "The retval builtin can only be used with 'kretprobe' and 'uretprobe' and 'fentry' probes (try to use args.ret instead)")
	default:
		c.error(n.at, "The retval builtin can only be used with 'kretprobe' and 'uretprobe' and 'fentry' probes")
	}
	return none
}

func (c *checker) args(n *node) *Type {
	for _, pt := range c.probe.points {
		if pt.provider == "tracepoint" && pt.optional && len(pt.events) == 0 {
			return none // nothing is known of one that is not there
		}
	}
	c.probe.fields = true
	if c.o.Language.newest() && c.only() == "rawtracepoint" {
		return &Type{Kind: Record, Name: "args", Size: 8, Args: true, Context: true, Space: script.KernelSpace}
	}
	switch p := c.only(); p {
	case "":
		c.error(n.at, "The args builtin can only be used within the context of a single probe type, e.g. \"probe1 {args}\" is valid while \"probe1,probe2 {args}\" is not.")
	case "tracepoint", "fentry", "fexit":
		space := script.KernelSpace
		if last := c.probe.points[len(c.probe.points)-1]; p == "tracepoint" && last.target == "syscalls" {
			space = script.UserSpace
		}
		return &Type{Kind: Record, Name: "args", Size: 8, Args: true, Context: true, Space: space}
	default:
		if p == "BEGIN" || p == "END" || p == "self" {
			p = "special"
		}
		c.error(n.at, "The args builtin can only be used with tracepoint/fentry/uprobe probes (%s used here)", p)
	}
	return none
}

// variant reports whether an enumeration has a value; one that is not known has all.
func variant(t *Type, v int64) bool {
	if t.C == nil {
		return true
	}
	list := t.C.Real().Enumerators()
	return len(list) == 0 || slices.ContainsFunc(list, func(e ctype.Enumerator) bool { return e.Value == v })
}
