package report

import (
	"fmt"
	"strings"

	"kprobelab/internal/spelling"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/x86"
)

// refusal adds to the rule that refuses what a person asks next.
func (x *explainer) refusal(r probepoint.Request) {
	e := x.e
	switch e.RegisterReason {
	case rule.UnknownSymbol:
		if near := x.nearName(r.Symbol); near != "" {
			e.RegisterWhy += fmt.Sprintf("; did you mean %s?", near)
		}
	case rule.NotText:
		e.RegisterWhy += x.noText(e.Addr.Addr)
	case rule.Blacklisted:
		e.RegisterWhy += x.listedAs()
	}
}

// nearName returns the existing symbol with the most similar name, "" if there is none.
func (x *explainer) nearName(name string) string {
	return spelling.Nearest(func(yield func(string) bool) {
		for i := range x.Symbols {
			if !yield(x.Symbols[i].Name) {
				return
			}
		}
	}, name)
}

// noText describes an address that is not in text.
func (x *explainer) noText(at x86.Addr) string {
	if _, init := x.View.InInit(at); init || x.e.Symbol == "" {
		return ""
	}
	return ": " + x.e.Symbol + " is data"
}

// listedAs says how the code came onto the blacklist. A clone is on it if the original function is.
func (x *explainer) listedAs() string {
	if x.BlacklistedAs == nil {
		return ""
	}
	if by := x.BlacklistedAs(x.at); by != nil {
		return "; " + ways(by)
	}
	name, _, _ := strings.Cut(x.sym.Name, ".")
	for _, s := range x.View.Lookup(name) {
		if by := x.BlacklistedAs(s.Addr); by != nil {
			return fmt.Sprintf("; a clone of %s, which is %s", name, ways(by))
		}
	}
	return ""
}

func ways(by []kimage.BlacklistedBy) string {
	var list []string
	for _, b := range by {
		list = append(list, b.String())
	}
	return strings.Join(list, ", ")
}
