package bpftrace

import (
	"fmt"
	"strconv"
	"strings"

	"kprobelab/internal/script"
	"kprobelab/internal/script/host"
)

// readProgram reads FILE:FUNCTION[+OFFSET], FILE:ADDRESS or FILE:LANGUAGE:FUNCTION. It returns the message
// for a mistake, "" for none.
func (pt *point) readProgram(parts []string) string {
	pt.target, pt.name = parts[1], parts[len(parts)-1]
	if len(parts) == 4 {
		pt.language = parts[2]
	}
	switch {
	case pt.provider == "usdt":
		return ""
	case strings.Contains(pt.name, "+"):
		if pt.provider == "uretprobe" {
			return "Offset not allowed"
		}
		return pt.withOffset()
	case pt.name != "" && pt.name[0] >= '0' && pt.name[0] <= '9':
		v, err := strconv.ParseUint(pt.name, 0, 64)
		if err != nil {
			return "Invalid address"
		}
		pt.name, pt.address = "", v
	}
	return ""
}

// checkProgram reports the mistakes in a probe of a program after readProgram.
func (c *checker) checkProgram(pt *point) {
	bad := func(format string, a ...any) { c.error(pt.at, format, a...) }
	switch {
	case pt.target == "":
		bad("%s should have a target", pt.provider)
	case pt.name == "" && pt.address == 0:
		bad("%s should be attached to a function and/or address", pt.provider)
	case pt.language == "cpp":
		bad("%s: names of C++ are not there", pt.provider)
	case pt.language != "":
		bad("unsupported language type: %s", pt.language)
	case c.k == nil || c.k.Program == nil:
		bad("%s: probes of programs need the dump of a booted kernel (-r)", pt.provider)
	case c.targetOf(pt) == nil:
		bad("uprobe target file '%s' does not exist or is not executable", pt.target)
	}
}

// searched are the folders of programs that are named without one.
var searched = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// targetOf is the file of a point, nil where there is none.
func (c *checker) targetOf(pt *point) *host.Program {
	if c.k == nil || c.k.Program == nil {
		return nil
	}
	files := []string{pt.target}
	if !strings.Contains(pt.target, "/") {
		files = nil
		for _, folder := range searched {
			files = append(files, folder+"/"+pt.target)
		}
	}
	for _, f := range files {
		if p, err := c.k.Program(f); err == nil {
			return p
		}
	}
	return nil
}

// program adds the places of a program.
func (c *checker) program(pt *point) {
	p := c.targetOf(pt)
	if p == nil || pt.language != "" {
		return
	}
	if pt.expansion = c.expansionOf(pt); !wild(pt.target) {
		pt.target = p.File
	}
	one := func(name, function string, in host.InProgram) {
		in.Program, in.Return, in.Target = p, pt.provider == "uretprobe", c.o.Command
		in.Hidden = in.Return && !c.k.FunctionsAtReturns
		pt.add(&host.Probe{Kind: host.User, Point: pt.provider + ":" + p.File + ":" + name, Function: function, InProgram: &in, Chain: host.ByRegisters}, p.File+":"+function)
	}
	found := false
	for _, f := range p.Functions {
		if pt.name == "" {
			if pt.address < f.Addr || pt.address-f.Addr >= max(f.Size, 1) {
				continue
			}
			at := pt.address - f.Addr
			one(fmt.Sprint(pt.address), f.Name, host.InProgram{Addr: pt.address, Offset: f.Offset + at, Bytes: firstBytes(&f, at)})
			return
		}
		if !match(pt.name, f.Name) {
			continue
		}
		at := uint64(pt.offset)
		if at != 0 && at >= f.Size {
			pt.refused = fmt.Sprintf("Offset outside the function bounds ('%s' size is %d)", f.Name, f.Size)
			return
		}
		name := f.Name
		if at != 0 {
			name = fmt.Sprintf("%s+%d", name, at)
		}
		found = true
		if one(name, f.Name, host.InProgram{Addr: f.Addr + at, Offset: f.Offset + at, Bytes: firstBytes(&f, at)}); !wild(pt.name) {
			return
		}
	}
	if pt.name == "" {
		// Without --unsafe the address is refused: an instruction need not begin there.
		offset, ok := uint64(0), false
		if c.o.Unsafe && p.Offset != nil {
			offset, ok = p.Offset(pt.address)
		}
		if !ok {
			pt.refused = fmt.Sprintf("Could not resolve address: %s:%#x", p.File, pt.address)
			return
		}
		one(fmt.Sprint(pt.address), "", host.InProgram{Addr: pt.address, Offset: offset})
		return
	}
	if !found && !wild(pt.name) {
		pt.unresolved = fmt.Sprintf("Could not resolve symbol: %s:%s", p.File, pt.name)
	}
}

// firstBytes returns the first bytes of a function if at, the distance from its beginning, is 0. It returns zeros for
// other places.
func firstBytes(f *host.ProgramSymbol, at uint64) (b [4]byte) {
	if at == 0 {
		b = f.Bytes
	}
	return b
}

// ofProgram reports whether the probe's points are all in programs.
func (c *checker) ofProgram() bool {
	for _, pt := range c.probe.points {
		if pt.provider != "uprobe" && pt.provider != "uretprobe" {
			return false
		}
	}
	return len(c.probe.points) > 0
}

// symbolIn is a file's symbol of a name.
func symbolIn(p *host.Program, name string) (s host.ProgramSymbol, ok bool) {
	if p == nil {
		return s, false
	}
	for _, list := range [...][]host.ProgramSymbol{p.Functions, p.Variables} {
		for _, s := range list {
			if s.Name == name {
				return s, true
			}
		}
	}
	return s, false
}

// symbolLetters are the characters that a symbol's name has for uaddr().
const symbolLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./_-"

// uaddr checks uaddr(SYMBOL): it points to as many bytes as the symbol has.
func (c *checker) uaddr(n *node) *Type {
	size, bytes := uint64(0), 8
	name := n.kids[0].text
	if strings.Trim(name, symbolLetters) != "" || name == "" {
		c.error(n.at, "uaddr() expects a string that is a valid symbol (^[a-zA-Z0-9./_-]+$) as input (\"%s\" provided)", name)
		return none
	}
	for i, pt := range c.probe.points {
		var s host.ProgramSymbol
		ok := false
		if pt.provider == "uprobe" || pt.provider == "uretprobe" {
			s, ok = symbolIn(c.targetOf(pt), name)
		}
		if !ok {
			c.error(n.at, "Could not resolve symbol: %s:%s", pt.target, name)
		}
		if i > 0 && s.Size != size {
			c.error(n.at, "Symbol size mismatch between probes. Symbol '%s' has size %d for probe '%s' but size %d for probe '%s'", n.kids[0].text, size, c.probe.points[0].raw, s.Size, pt.raw)
		}
		size = s.Size
	}
	if size == 1 || size == 2 || size == 4 {
		bytes = int(size)
	}
	return &Type{Kind: Pointer, Size: 8, Space: script.UserSpace, Elem: integer(bytes, true)}
}

// userFunction is func in a program: the symbol of the probe's address.
func userFunction() script.Expr { return call(userSymbolCode, call(builtinWords["func"])) }

// userSymbol is an address of a program in words, with the offset where it is asked for: its symbol as
// long as the program is there.
func userSymbol(th *script.Thread, pid int64, addr uint64, offset, file bool, dst []byte) []byte {
	name, in, at, ok := "", "[unknown]", uint64(0), false
	if s, is := th.Context.(host.System); is {
		name, in, at, ok = s.UserSymbol(pid&^seenByProbe, pid&seenByProbe != 0, addr)
	}
	switch {
	case !ok:
		dst = hexText(addr, dst)
		in = "[unknown]"
	case offset:
		dst = strconv.AppendUint(append(append(dst, name...), '+'), at, 10)
	default:
		dst = append(dst, name...)
	}
	if file {
		dst = append(append(append(dst, " ("...), in...), ')')
	}
	return dst
}

// seenByProbe marks the process of an address or a stack that a probe of a program has seen.
const seenByProbe = 1 << 40

// processOf is the process of an address or a stack.
func processOf(s host.System) uint64 {
	pid := uint64(s.Task(host.PID))
	if p := s.Probe(); p != nil && p.InProgram != nil {
		pid |= seenByProbe
	}
	return pid
}
