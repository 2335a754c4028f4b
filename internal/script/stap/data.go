package stap

import (
	"fmt"
	"slices"
)

// addresses marks the numbers of a point that stap prints as addresses.
func addresses(pt *point) {
	for _, q := range pt.parts {
		if (q.name == "data" || q.name == "function") && q.arg != nil && !q.arg.isText {
			q.arg.hex = true
		}
	}
}

// dataPoint resolves kernel.data(ADDRESS) or kernel.data("SYMBOL"), with .write or .rw. An address may have
// .length(N) before that; the length is 1 without it. As in stap, the symbol is looked up when the probe is set.
func (a *analysis) dataPoint(p *probe, pt *point, c chain, what *part) int {
	if what.arg == nil {
		a.mismatch(pt, what)
	}
	w := &Watched{Len: 1}
	shown := "kernel"
	rest := pt.parts[slices.Index(pt.parts, what)+1:]
	if what.arg.isText {
		w.Symbol = unescape(what.arg.text)
	} else {
		w.Addr = uint64(what.arg.number)
	}
	if w.Symbol != "" || w.Addr != 0 {
		shown += "." + (&point{parts: []*part{what}}).String()
	}
	if len(rest) > 0 && rest[0].name == "length" && !what.arg.isText {
		if rest[0].arg == nil || rest[0].arg.isText {
			a.mismatch(pt, rest[0])
		}
		w.Len = uint32(rest[0].arg.number)
		rest = rest[1:]
	}
	if len(rest) == 0 {
		a.problems = append(a.problems, semantic("while resolving probe point", pt.parts[0].tok))
		a.fail(pt.parts[len(pt.parts)-1].tok, "probe point truncated (follow: rw write)")
	}
	access := rest[0]
	if access.name != "rw" && access.name != "write" || access.arg != nil {
		a.mismatch(pt, access)
	}
	if len(rest) > 1 {
		a.problems = append(a.problems, semantic("while resolving probe point", pt.parts[0].tok))
		a.fail(rest[1].tok, "invalid suffix for probe")
	}
	w.Reads = access.name == "rw"
	pr := &Probe{Kind: Data, Watched: w, Point: fmt.Sprintf("%s.length(%d).%s", shown, w.Len, access.name)}
	if pt.optional {
		pr.Point += "?"
	}
	a.add(p, c, what, pr)
	return 1
}
