package stap

import (
	"path"
	"strings"

	"kprobelab/internal/script/host"
)

// processPoint resolves process("FILE").function("NAME"), its calls and returns. The places come from the program's
// symbols.
func (a *analysis) processPoint(p *probe, pt *point, c chain) int {
	first := pt.parts[0]
	if a.k == nil || a.k.Program == nil {
		a.fail(first.tok, "probes of programs (process) need the dump of a booted kernel (-r)")
	}
	if first.arg == nil || !first.arg.isText || len(pt.parts) < 2 || pt.parts[1].name != "function" {
		a.fail(first.tok, "of probes of programs there is process(\"FILE\").function(\"NAME\") with .call and .return alone")
	}
	file, what := unescape(first.arg.text), pt.parts[1]
	name := a.text(pt, what)
	if strings.ContainsAny(name, "@:+") {
		a.fail(what.tok, "%q: lines of programs are not there, only their functions by name", name)
	}
	v := a.variants(pt, 2)
	if v.inline || v.exported || v.nearest || v.absolute {
		a.mismatch(pt, pt.parts[2])
	}
	in, err := a.k.Program(file)
	if err != nil {
		a.problems = append(a.problems, semantic("while resolving probe point", first.tok))
		a.fail(first.tok, "cannot find executable '%s'", file)
	}
	found := 0
	for _, f := range in.Functions {
		if ok, _ := path.Match(name, f.Name); !ok {
			continue
		}
		one := point{parts: append([]*part{}, pt.parts...), optional: pt.optional}
		named := *what
		named.arg = &literal{isText: true, text: f.Name}
		one.parts[1] = &named
		pr := &Probe{Kind: User, Symbol: f.Name, Function: f.Name, Point: one.String(), MaxActive: v.maxActive, Chain: host.ByRegisters}
		pr.InProgram = &host.InProgram{Program: in, Addr: f.Addr, Offset: f.Offset, Bytes: f.Bytes, Return: v.ret}
		if c.alias == "" {
			c.written = pr.Point
		}
		a.add(p, c, what, pr)
		found++
	}
	if found == 0 {
		a.none(pt, what)
	}
	return found
}

// returns reports a probe of a function's return, of the kernel's or of a program's.
func returns(p *Probe) bool {
	return p != nil && (p.Kind == Return || p.InProgram != nil && p.InProgram.Return)
}

// userSymbolText prints an address of the running program as its symbol, or as a number if it has none.
func userSymbolText(s System, dst []byte, addr uint64) []byte {
	name, _, _, ok := s.UserSymbol(s.Task(PID), true, addr)
	if !ok {
		return hexText(dst, addr)
	}
	return append(dst, name...)
}
