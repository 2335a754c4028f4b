package definition

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"kprobelab/errno"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Definition is a probe that belongs to an event.
type Definition struct {
	// Return makes it a return probe, with a pool of MaxActive instances (0
	// for the default).
	Return    bool
	MaxActive int
	// Group and Event name the event.
	Group, Event string
	// Symbol is a kallsyms name or "module:name"; Addr is given where it is
	// empty.
	Symbol string
	Addr   x86.Addr
	// Offset is the probe's distance from the symbol, in bytes.
	Offset uint32
	Args   []Arg
	// Size is the arguments' size in a record, in bytes.
	Size int
	// File is the probed file of a uprobe, which has neither Symbol nor Addr; FileOffset is
	// the probe's offset in it, Counter the offset of its reference counter, 0 for none.
	File                string
	FileOffset, Counter uint64
	// Line is the line that defines the event.
	Line Line
}

// DefaultGroup is the group of kprobe events that name no group.
const DefaultGroup = "kprobes"

const (
	// MaxName is the length limit of a group's or an event's name, in bytes; with the NUL it is MAX_EVENT_NAME_LEN.
	MaxName = 63
	// maxMaxActive bounds a return probe's pool (KRETPROBE_MAXACTIVE_MAX).
	maxMaxActive = 4096
)

// context is the state of the definition that is being read: its line, the kind of
// its place, and its function's prototype.
type context struct {
	c    *profile.Tracing
	line Line
	// entry: the place is a function's entry, and the probe is no return probe.
	// exit: it is a return probe, and its place is given by symbol.
	entry, exit bool
	// user: it is a uprobe.
	user     bool
	proto    Proto
	hasProto bool
	// findProto finds proto and hasProto; it is nil after its first call.
	findProto func() (Proto, bool)
	// asked: the prototype was looked up already.
	asked bool
	k     Kernel
	// noted is the error that this definition put into error_log already, nil for
	// none.
	noted *Error
}

// Parse reads a definition, in the kernel's order of checks (docs/spec 9.2).
// The error is an *Error. Its errno is
// ENOENT for a name that no symbol has, EADDRNOTAVAIL for one that several
// have, E2BIG for an event that is too big, ERANGE for a number that does not
// fit, EINVAL for the rest.
func Parse(l Line, k Kernel, c *profile.Tracing) (*Definition, error) {
	if len(l.Words) < 2 || !l.begins() {
		return nil, l.Refuse(0, 0, NotAProbe, errno.EINVAL)
	}
	d := &Definition{Return: l.Words[0][0] == 'r', Group: DefaultGroup, Line: l}
	x := &context{c: c, line: l, k: k}
	name, named, err := d.head(c)
	if err != nil {
		return nil, l.located(0, err)
	}
	if err := d.place(x, k); err != nil {
		return nil, l.located(1, err)
	}
	if named {
		err = d.names(c, name)
	}
	if err != nil {
		return nil, l.located(0, err)
	}
	if d.Event == "" {
		d.Event = d.automatic(c)
	}
	return d, x.arguments(d, k)
}

// located puts a refusal into its word.
func (l Line) located(word int, err error) error {
	var f *fault
	if errors.As(err, &f) {
		return l.Refuse(word, f.offset, f.id, f.errno)
	}
	return err
}

// after makes the noted error, if any, the Earlier of a refusal.
func (x *context) after(err error) error {
	var e *Error
	if errors.As(err, &e) {
		e.Earlier = x.noted
	}
	return err
}

// head reads the first word: the pool's size, and where the name begins.
func (d *Definition) head(c *profile.Tracing) (name string, named bool, err error) {
	rest := d.Line.Words[0][1:]
	number, name, named := strings.Cut(rest, ":")
	if !c.MaxActive {
		return name, named && number == "", nil
	}
	if !isDigit(first(rest)) {
		return name, named, nil
	}
	if !d.Return {
		return "", false, bad(1, MaxactNoKprobe)
	}
	n, err := kstrtouint(number)
	switch {
	case len(number) > MaxName || err != nil || n == 0:
		return "", false, bad(1, BadMaxact)
	case n > maxMaxActive:
		return "", false, bad(1, MaxactTooBig)
	}
	d.MaxActive = int(n)
	return name, named, nil
}

// place reads the second word.
func (d *Definition) place(x *context, k Kernel) error {
	text := d.Line.Words[1]
	if v, err := kstrtoull(text, 0); err == nil {
		d.Addr = x86.Addr(v)
		return nil
	}
	if colon := strings.LastIndexByte(text, ':'); colon >= 0 && strings.Contains(text, "/") {
		// A uprobe's: a file and an offset, which a digit begins.
		if !isDigit(first(text[colon+1:])) {
			return bad(0, NotAProbe)
		}
		return bad(0, NotLogged)
	}
	if i := strings.IndexByte(text, '%'); i >= 0 && x.c.ReturnSuffix {
		if text[i:] != "%return" {
			return bad(i, BadAddrSuffix)
		}
		text, d.Return = text[:i], true
	}
	off, err := d.split(text)
	if err != nil || off < 0 || off > math.MaxUint32 {
		return bad(0, BadProbeAddr)
	}
	d.Offset = uint32(off)
	if d.Symbol == "" {
		return &fault{BadProbeAddr, errno.ENOENT, 0}
	}
	return d.symbol(x, k)
}

// split separates the symbol and the offset.
func (d *Definition) split(text string) (int64, error) {
	i := strings.IndexAny(text, "+-")
	if i < 0 {
		d.Symbol = text
		return 0, nil
	}
	d.Symbol = text[:i]
	return kstrtoll(text[i:], 0)
}

// symbol asks the kernel about the place.
func (d *Definition) symbol(x *context, k Kernel) error {
	if x.c.UniqueFirst {
		if err := d.unique(x, k); err != nil {
			return err
		}
	}
	err := k.Entry(d.Symbol, int64(d.Offset))
	x.exit = d.Return
	x.entry = err == nil && !d.Return
	if d.Return && errors.Is(err, errno.EINVAL) {
		return bad(0, BadRetprobe)
	}
	if x.c.UniqueSymbols && !x.c.UniqueFirst {
		if err := d.unique(x, k); err != nil {
			return err
		}
	}
	if x.c.BTFArgs && !x.c.NoBTFArgs {
		x.findProto = func() (Proto, bool) { return k.Proto(d.Symbol) }
	}
	return nil
}

// prototyped reports whether BTF knows the function; its prototype is in x.proto then. BTF
// is asked when an argument asks for it, for reading it takes long.
func (x *context) prototyped() bool {
	if x.findProto != nil {
		x.proto, x.hasProto = x.findProto()
		x.findProto = nil
	}
	return x.hasProto
}

// unique refuses a name that no symbol or several have.
func (d *Definition) unique(x *context, k Kernel) error {
	if strings.Contains(d.Symbol, ":") && !x.c.UniqueFirst {
		return nil
	}
	n, loaded := k.Count(d.Symbol)
	f := bad(0, BadProbeAddr)
	switch {
	case !loaded || n == 1:
		return nil
	case n > 1 && x.c.UniqueFirst:
		f.id = NonUniqSymbol
	case n > 1:
		f.id, f.errno = NonUniqSymbol, errno.EADDRNOTAVAIL
	case !x.c.UniqueFirst:
		f.errno = errno.ENOENT
	}
	return f
}

// names reads [group/][event] (traceprobe_parse_event_name).
func (d *Definition) names(c *profile.Tracing, text string) error {
	offs := strings.IndexByte(d.Line.Words[0], ':') + 1
	i := strings.IndexByte(text, '/')
	if i < 0 && c.AutoNames {
		i = strings.IndexByte(text, '.')
	}
	if i >= 0 {
		group := text[:i]
		switch {
		case group == "":
			return bad(offs, NoGroupName)
		case len(group) > MaxName:
			return bad(offs, GroupTooLong)
		case !isName(group, c.GroupHyphen):
			return bad(offs, BadGroupName)
		}
		d.Group = group
		offs += i + 1
		text = text[i+1:]
	}
	switch {
	case text == "" && i >= 0 && c.AutoNames:
		return nil
	case text == "":
		return bad(offs, NoEventName)
	case len(text) > MaxName+1 || len(text) == MaxName+1 && !c.LongEventName:
		return bad(offs, EventTooLong)
	case !isName(text, false):
		return bad(offs, BadEventName)
	}
	d.Event = text
	return nil
}

// IsName reports a C identifier, as an event's name has to be.
func IsName(s string) bool { return isName(s, false) }

// isName reports a C identifier; a group's name may have hyphens too.
func isName(s string, hyphen bool) bool {
	for i := range len(s) {
		c := s[i]
		if isLetter(c) || c == '_' || hyphen && c == '-' || i > 0 && isDigit(c) {
			continue
		}
		return false
	}
	return s != ""
}

// automatic returns the name of an event that has none. For a probe at an address
// the kernel puts a hashed pointer into the name; here it is the address.
func (d *Definition) automatic(c *profile.Tracing) string {
	kind := "p"
	if d.Return {
		kind = "r"
	}
	name := fmt.Sprintf("%s_%s_%d", kind, d.Symbol, d.Offset)
	if d.Symbol == "" {
		name = fmt.Sprintf("%s_0x%016x", kind, uint64(d.Addr))
	}
	b := []byte(name[:min(len(name), MaxName)])
	for i := range b {
		if i > 0 && (b[i] == ':' || b[i] == '.' || b[i] == '*' && c.SanitizeStar) {
			b[i] = '_'
		}
	}
	return string(b)
}

// arguments reads the words that follow the place.
func (x *context) arguments(d *Definition, k Kernel) error {
	args := x.line.Words[2:]
	if x.c.BTFArgs {
		var err error
		if args, err = x.expand(args); err != nil {
			return err
		}
	}
	if len(args) > MaxArgs {
		if x.c.CountArgs {
			id := NotLogged
			if x.c.CountArgsLogged {
				id = TooManyArgs
			}
			return x.line.Refuse(2, 0, id, errno.E2BIG)
		}
		args = args[:MaxArgs]
	}
	if x.c.BTFArgs {
		args = x.expandNames(k, args)
	}
	p := &parser{context: x}
	for i, a := range args {
		if err := p.field(d, a); err != nil {
			// With expanded words the index is still that of the kernel's list.
			return x.after(x.line.located(i+2, err))
		}
	}
	return nil
}

// Place is the probed place as it is read back (docs/spec 9.7).
func (d *Definition) Place() string {
	switch {
	case d.File != "" && d.Counter != 0:
		return fmt.Sprintf("%s:0x%0*x(0x%x)", d.File, pointerDigits, d.FileOffset, d.Counter)
	case d.File != "":
		return fmt.Sprintf("%s:0x%0*x", d.File, pointerDigits, d.FileOffset)
	case d.Symbol == "":
		return fmt.Sprintf("0x%016x", uint64(d.Addr))
	case d.Offset != 0:
		return d.Symbol + "+" + strconv.FormatUint(uint64(d.Offset), 10)
	}
	return d.Symbol
}

// String is the line of kprobe_events. maxActive follows the r of a return
// probe where it is not 0: the kernel prints what registration filled in.
func (d *Definition) String(maxActive int) string {
	var b strings.Builder
	b.WriteByte("pr"[boolIndex(d.Return)])
	if d.Return && maxActive != 0 {
		b.WriteString(strconv.Itoa(maxActive))
	}
	fmt.Fprintf(&b, ":%s/%s %s", d.Group, d.Event, d.Place())
	for i := range d.Args {
		fmt.Fprintf(&b, " %s=%s", d.Args[i].Name, d.Args[i].Text)
	}
	return b.String()
}

func boolIndex(b bool) int {
	if b {
		return 1
	}
	return 0
}
