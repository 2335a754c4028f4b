package bpftrace

import (
	"net/netip"
	"slices"
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

// count checks how many arguments a call has.
func (c *checker) count(n *node, least, most int) bool {
	have := len(n.kids)
	plural := func(k int) string {
		switch k {
		case 0:
			return "no arguments"
		case 1:
			return "one argument"
		}
		return itoa(k) + " arguments"
	}
	switch {
	case least == most && have != least:
		if most > 0 && varArgs[n.text] {
			break
		}
		c.error(n.at, "%s() requires %s (%d provided)", n.text, plural(least), have)
		return false
	}
	switch {
	case have < least:
		c.error(n.at, "%s() requires at least %s (%d provided)", n.text, plural(least), have)
		return false
	case have > most && most == 0:
		c.error(n.at, "%s() requires no arguments (%d provided)", n.text, have)
		return false
	case have > most:
		c.error(n.at, "%s() takes up to %s (%d provided)", n.text, plural(most), have)
		return false
	}
	return true
}

// varArgs are those whose number of arguments is a range even where both ends are the same.
var varArgs = setOf("has_key strftime signal override")

func itoa(n int) string {
	if n >= 10 {
		return itoa(n/10) + itoa(n%10)
	}
	return string(rune('0' + n))
}

// arg checks the type of an argument.
func (c *checker) arg(n *node, i int, want Kind, literal bool) bool {
	a := n.kids[i]
	switch {
	case literal && (!a.literal() || a.typ.kind() != want):
		if want == String && a.op == nParam {
			c.plain("Use str($%d) to treat $%d as a string", a.num, a.num)
		}
		c.error(n.at, "%s() expects a %s literal (%s provided)", n.text, want, a.typ.kind())
		return false
	case c.final && a.typ.kind() != want:
		c.error(n.at, "%s() only supports %s arguments (%s provided)", n.text, want, a.typ.kind())
		return false
	}
	return true
}

// literalText is a text that is known beforehand. What has none is told at once, without a place.
func (c *checker) literalText(n *node) string {
	switch {
	case n.op == nString:
		return n.text
	case n.op == nCall && n.text == "str" && n.post && n.kids[0].op == nParam:
		return c.param(int(n.kids[0].num))
	}
	c.plainAtOnce("Expected string literal, got %s", n.typ)
	return ""
}

// toMap checks that a call's value goes straight to a map; alone that it goes nowhere.
func (c *checker) toMap(n *node) {
	if !n.forMap {
		c.error(n.at, "%s() should be directly assigned to a map", n.text)
	}
}

func (c *checker) alone(n *node) {
	if n.forMap || n.forVar || n.forKey {
		c.error(n.at, "%s() should not be used in an assignment or as a map key", n.text)
	}
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
			if msg := checkFormat(n); msg != "" {
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

// refused checks what only can be refused, so that what is wrong with a call is said first.
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

func (c *checker) aggregate(n *node) *Type {
	c.toMap(n)
	least, most := 1, 1
	switch n.text {
	case "count":
		least, most = 0, 0
	case "hist":
		most = 2
	case "lhist":
		least, most = 4, 4
	}
	k := map[string]Kind{"hist": Hist, "lhist": Lhist, "count": Count, "sum": Sum, "min": Min, "max": Max, "avg": Avg, "stats": Stats}[n.text]
	t := &Type{Kind: k, Size: 8, Signed: true}
	if !c.count(n, least, most) {
		return t
	}
	if most > 0 {
		c.arg(n, 0, Integer, false)
	}
	switch k {
	case Sum, Min, Max:
		t.Signed = n.kids[0].typ.Signed
	case Hist:
		if len(n.kids) == 2 && c.arg(n, 1, Integer, true) {
			if v, _ := c.number(n.kids[1]); v < 0 || v > 5 {
				c.error(n.at, "hist: bits %d must be 0..5", v)
			}
		}
	case Lhist:
		c.linear(n)
	}
	return t
}

func (c *checker) linear(n *node) {
	for i := 1; i < 4; i++ {
		if !c.arg(n, i, Integer, true) {
			return
		}
	}
	if !c.final {
		return
	}
	low, _ := c.number(n.kids[1])
	high, _ := c.number(n.kids[2])
	step, _ := c.number(n.kids[3])
	if step <= 0 {
		c.error(n.at, "lhist() step must be >= 1 (%d provided)", step)
	} else if b := int32((high - low) / step); b > 1000 {
		c.error(n.at, "lhist() too many buckets, must be <= 1000 (would need %d)", b)
	}
	if low < 0 {
		c.error(n.at, "lhist() min must be non-negative (provided min %d)", low)
	}
	if low > high {
		c.error(n.at, "lhist() min must be less than max (provided min %d and max %d)", low, high)
	}
	if high-low < step {
		c.error(n.at, "lhist() step is too large for the given range (provided step %d for range %d)", step, high-low)
	}
}

func (c *checker) mapFunction(n *node) *Type {
	switch n.text {
	case "delete":
		c.alone(n)
		c.deletion(n)
		return none
	case "has_key":
		if c.count(n, 2, 2) {
			m := n.kids[0]
			switch a := c.maps[m.text]; {
			case m.op != nMap:
				c.error(m.at, "has_key() expects the first argument to be a map")
			case len(m.kids) > 0:
				c.error(m.at, "has_key() expects the first argument to be a map. Not a map value expression.")
			case a != nil && a.key != nil && a.key.Kind == None:
				c.error(m.at, "has_key() only accepts maps that have keys. No scalar maps e.g. `@a = 1;`")
			case a != nil && a.key != nil:
				c.newKey(a, c.keyType(n.kids[1].typ, n.kids[1]), n.kids[1].at)
			}
		}
		return integer(1, false)
	case "clear", "zero":
		c.alone(n)
		if c.count(n, 1, 1) {
			if m := n.kids[0]; m.op != nMap {
				c.error(n.at, "%s() expects a map to be provided", n.text)
			} else if len(m.kids) > 0 {
				c.error(n.at, "The map passed to %s() should not be indexed by a key", n.text)
			}
		}
		return none
	case "len":
		if c.count(n, 1, 1) {
			switch m := n.kids[0]; {
			case m.op == nMap && len(m.kids) > 0:
				c.error(n.at, "The map passed to len() should not be indexed by a key")
			case m.op != nMap && !m.typ.isStack():
				c.error(n.at, "len() expects a map or stack to be provided")
			}
		}
		return int64T
	}
	c.alone(n)
	if !c.count(n, 1, 3) {
		return none
	}
	m := n.kids[0]
	switch {
	case m.op == nMap:
		c.warnPrint(n)
		if len(m.kids) > 0 {
			if len(n.kids) > 1 {
				c.error(n.at, "Single-value (i.e. indexed) map print cannot take additional arguments.")
			} else if m.typ.multiple() {
				c.error(n.at, "Map type %s cannot print the value of individual keys. You must print the whole map.", m.typ)
			}
		}
		for i := 1; i < len(n.kids) && c.final; i++ {
			c.arg(n, i, Integer, true)
		}
	case m.typ.Kind != None && m.typ.Kind != StackMode && m.typ.Kind != TimestampMode && !m.typ.Args:
		if len(n.kids) != 1 {
			c.error(n.at, "Non-map print() only takes 1 argument, %d found", len(n.kids))
		}
	case c.final:
		c.error(n.at, "%s type passed to print() is not printable", m.typ)
	}
	return none
}

const deleteError = "delete() expects a map for the first argument and a key for the second argument e.g. `delete(@my_map, 1);`"

func (c *checker) deletion(n *node) {
	if !c.count(n, 1, 2) {
		return
	}
	m := n.kids[0]
	if m.op != nMap {
		c.error(m.at, "%s", deleteError)
		return
	}
	a := c.maps[m.text]
	switch {
	case len(n.kids) == 1 && len(m.kids) > 0:
		n.kids = append(n.kids, m.kids[0])
		m.kids = nil
	case len(n.kids) == 1:
		if c.final && a != nil && a.key != nil && a.key.Kind != None {
			c.error(m.at, "%s", deleteError)
		}
	case len(m.kids) > 0:
		c.error(m.at, "delete() expects a map with no keys for the first argument")
	case a != nil && a.key != nil:
		c.newKey(a, c.keyType(n.kids[1].typ, n.kids[1]), n.kids[1].at)
	}
}

func (c *checker) strType(n *node) *Type {
	size := c.maxStr
	defer func() { c.positional = false }()
	if !c.count(n, 1, 2) {
		return withSpace(stringOf(size), script.KernelSpace)
	}
	a := n.kids[0]
	if !a.typ.isInt() && a.typ.Kind != Pointer {
		c.error(n.at, "str() expects an integer or a pointer type as first argument (%s provided)", a.typ)
	}
	if len(n.kids) == 2 && c.arg(n, 1, Integer, false) {
		if n.kids[1].op == nInt {
			switch v := int64(n.kids[1].num); {
			case v < 0:
				if c.final {
					c.error(n.at, "strcannot use negative length (%d)", v)
				}
			case v <= int64(size):
				size = int(v)
			default:
				c.warn(n.at, "length param (%d) is too long and will be shortened to %d bytes (see BPFTRACE_MAX_STRLEN)", v, size)
			}
		}
	}
	if c.positional {
		switch {
		case a.op == nParam:
			n.post = true // what is given is known beforehand
		case a.op == nBinary && (a.kids[0].op == nParam || a.kids[1].op == nParam):
			c.positionalOffset(a)
		default:
			c.error(n.at, "str() only accepts positional parameters directly or with a single constant offset added")
		}
	}
	return withSpace(stringOf(size), script.KernelSpace)
}

func (c *checker) positionalOffset(b *node) {
	p, off := b.kids[0], b.kids[1]
	if p.op != nParam {
		p, off = off, p
	}
	size := len(c.param(int(p.num)))
	if c.final && (off.op != nInt || b.text != "+" || off.negative || off.num > uint64(size)) {
		c.error(b.at.with(b.kids[1].at), "only addition of a single constant less or equal to the length of $%d (which is %d) is allowed inside str()", p.num, size)
	}
}

func (c *checker) bufType(n *node) *Type {
	t := &Type{Kind: Buffer, Size: c.maxStr - bufferHead, Space: script.KernelSpace}
	if !c.count(n, 1, 2) {
		return t
	}
	a := n.kids[0].typ
	if c.final && !a.isInt() && a.Kind != String && a.Kind != Pointer && a.Kind != Array {
		c.error(n.at, "buf() expects an integer, string, or array argument but saw %s", a.kind())
	}
	if len(n.kids) == 1 {
		if a.Kind == Array {
			t.Size = min(t.Size, a.Size)
		} else if c.final {
			c.error(n.at, "buf() expects a length argument for non-array type %s", a.kind())
		}
		return t
	}
	if c.final {
		c.arg(n, 1, Integer, false)
	}
	if b := n.kids[1]; b.typ.isInt() && b.literal() {
		switch v, ok := c.number(b); {
		case !ok:
			c.error(n.at, "buf: invalid length value")
		default:
			if v < 0 {
				c.error(n.at, "buf cannot use negative length (%d)", v)
			}
			// The tool keeps 32 bits of it.
			if int64(uint32(v)) > int64(t.Size) {
				c.warn(n.at, "buf() length is too long and will be shortened to %d bytes (see BPFTRACE_MAX_STRLEN)", c.maxStr)
			}
			t.Size = int(min(int64(t.Size), int64(uint32(v))))
		}
	}
	return t
}

func (c *checker) conversion(n *node) *Type {
	most := 1
	if n.text == "ntop" {
		most = 2
	}
	if n.text == "ntop" {
		if !c.count(n, 1, 2) {
			return none
		}
	} else if !c.count(n, 1, 1) {
		return none
	}
	a := n.kids[len(n.kids)-1].typ
	switch n.text {
	case "ksym", "usym":
		if !a.isInt() && a.Kind != Pointer {
			c.error(n.at, "%s() expects an integer or pointer argument", n.text)
		}
		if n.text == "usym" {
			return &Type{Kind: Usym, Size: 16}
		}
		return &Type{Kind: Ksym, Size: 8}
	case "strerror":
		c.arg(n, 0, Integer, false)
		return &Type{Kind: Strerror, Size: 8}
	case "bswap":
		if !a.isInt() {
			c.error(n.at, "bswap() only supports integer arguments (%s provided)", a.kind())
			return none
		}
		return integer(a.Size, false)
	case "kptr", "uptr":
		if !a.isInt() && a.Kind != Pointer {
			c.error(n.at, "%s() only supports integer or pointer arguments (%s provided)", n.text, a.kind())
			return none
		}
		if n.text == "uptr" {
			return withSpace(a, script.UserSpace)
		}
		return withSpace(a, script.KernelSpace)
	case "macaddr":
		bytes := a.Kind == Array || slices.Contains(byteArrays, a.Kind)
		if !a.isInt() && a.Kind != Pointer && !bytes {
			c.error(n.at, "macaddr() only supports array or pointer arguments (%s provided)", a.kind())
		}
		if bytes && a.stored() != 6 {
			c.error(n.at, "macaddr() argument must be 6 bytes in size")
		}
		if n.kids[0].op == nString {
			c.error(n.at, "macaddr() does not support literal string arguments")
		}
		return &Type{Kind: Mac, Size: 6}
	case "ntop":
		if len(n.kids) == most {
			c.arg(n, 0, Integer, false)
		}
		if !a.isInt() && a.Kind != String && a.Kind != Array {
			c.error(n.at, "ntop() expects an integer or array argument, got %s", a.kind())
		} else if !a.isInt() && a.Size != 4 && a.Size != 16 {
			c.error(n.at, "ntop() argument must be 4 or 16 bytes in size")
		}
		return &Type{Kind: Inet, Size: 24}
	}
	text := n.kids[0].text
	addr, err := netip.ParseAddr(text)
	switch {
	case n.kids[0].op != nString || !strings.ContainsAny(text, ".:"):
		c.error(n.at, "pton() expects an string argument of an IPv4/IPv6 address, got %s", text)
		return none
	case err != nil || addr.Zone() != "":
		c.error(n.at, "pton() expects a valid IPv4/IPv6 address, got %s", text)
		return none
	}
	size := 16
	if strings.Contains(text, ".") && !strings.Contains(text, ":") {
		size = 4
	}
	return &Type{Kind: Array, Elem: integer(1, false), N: size, Size: size, Space: script.KernelSpace, Own: true}
}

func (c *checker) stack(n *node) *Type {
	t := c.stackOf(n.text)
	if !c.count(n, 0, 2) {
		return t
	}
	limit := -1
	switch len(n.kids) {
	case 1:
		if n.kids[0].typ.Kind == StackMode {
			t.Name = n.kids[0].text
		} else {
			limit = 0
		}
	case 2:
		if c.arg(n, 0, StackMode, true) {
			t.Name = n.kids[0].text
		}
		limit = 1
	}
	if limit >= 0 && c.arg(n, limit, Integer, true) {
		v, _ := c.number(n.kids[limit])
		if uint64(v) > 1024 {
			c.error(n.at, "%s([int limit]): limit shouldn't exceed 1024, %d given", n.text, v)
			return t
		}
		t.N = int(v)
	}
	return t
}
