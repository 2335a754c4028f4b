package bpftrace

import (
	"fmt"
	"slices"
	"strings"

	"kprobelab/internal/ctype"
	"kprobelab/internal/script/host"
	"kprobelab/internal/source"
)

// List returns the probes that a pattern matches, one per line; if whole is set, the parameters
// of each follow below it. warnings holds bpftrace's warnings.
func List(pattern string, whole bool, k *Kernel) (list, warnings string) {
	if pattern == "" || pattern == "*" {
		pattern = "*:*"
	}
	var b strings.Builder
	p, at := &probe{}, 1
	for _, raw := range strings.Split(pattern, ",") {
		end := at + len(raw)
		p.points = append(p.points, &point{raw: strings.TrimSpace(raw), at: span{pos{1, at}, pos{1, end}}})
		at = end + 1
	}
	problems := &Problems{file: newFile("stdin", pattern)}
	c := &checker{o: &Options{}, k: k, t: &tree{probes: []*probe{p}}, problems: problems, listing: true, final: true}
	c.points()
	for _, pt := range p.points {
		if strings.HasPrefix(pt.provider, "k") {
			c.warnUntraceable(pt)
		}
		c.list(&b, pt, whole)
	}
	return b.String(), problems.text(problems.warnings)
}

// list writes what a point matches.
func (c *checker) list(b *strings.Builder, pt *point, whole bool) {
	switch pt.provider {
	case "kprobe", "kretprobe", "fentry", "fexit", "tracepoint", "rawtracepoint":
		if pt.provider[0] == 'f' && pt.target == "" {
			pt.target = "*"
		}
		for _, m := range c.matches(pt) {
			b.WriteString(pt.provider + ":" + m + "\n")
			if whole {
				b.WriteString(c.fields(pt, m))
			}
		}
	case "uprobe", "uretprobe":
		listProgram(b, pt.provider, pt.target+":"+pt.name, c.k)
	case "interval", "profile":
		for _, unit := range fitting(pt.target, []string{"hz", "ms", "s", "us"}) {
			b.WriteString(pt.provider + ":" + unit + ":\n")
		}
	}
}

// fields are the parameters of a function, or the fields of an event, a line each.
func (c *checker) fields(pt *point, matched string) (text string) {
	switch pt.provider {
	case "fentry", "fexit":
		_, name, _ := strings.Cut(matched, ":")
		if at := c.place(&host.Probe{Symbol: name}); at != nil {
			return parameters(at, pt.provider == "fexit")
		}
	case "tracepoint":
		for _, e := range c.k.Events(matched) {
			for _, f := range e.Fields {
				text += "    " + f.Text + "\n"
			}
		}
	}
	return text
}

// listProgram lists a program's functions, FILE:PATTERN.
func listProgram(b *strings.Builder, provider, pattern string, k *Kernel) {
	file, name, ok := strings.Cut(pattern, ":")
	p := (&checker{k: k}).targetOf(&point{target: file})
	if !ok || p == nil {
		return
	}
	var lines []string
	for _, f := range p.Functions {
		if match(name, f.Name) {
			lines = append(lines, provider+":"+p.File+":"+f.Name+"\n")
		}
	}
	slices.Sort(lines)
	b.WriteString(strings.Join(slices.Compact(lines), ""))
}

func parameters(at *source.Place, ret bool) string {
	text := ""
	vars, err := at.Variables()
	if err != nil {
		return ""
	}
	for _, v := range vars {
		if v.Parameter {
			text += fmt.Sprintf("    %s %s\n", spaced(v.Type), v.Name)
		}
	}
	if ret {
		if r := at.Returns(); r.Real().Kind != ctype.Void {
			text += fmt.Sprintf("    %s retval\n", spaced(r))
		}
	}
	return text
}

// spaced is a type with a blank before each star.
func spaced(t *ctype.Type) string {
	s := t.String()
	base := strings.TrimRight(s, "* ")
	return base + strings.Repeat(" *", strings.Count(s[len(base):], "*"))
}
