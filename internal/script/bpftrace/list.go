package bpftrace

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"kprobelab/internal/source"
)

// List are the probes that a pattern matches, a line each; whole has their parameters below.
func List(pattern string, whole bool, k *Kernel) string {
	provider, rest, ok := strings.Cut(pattern, ":")
	if !ok {
		provider, rest = "*", pattern
		if rest == "" {
			rest = "*"
		}
	}
	if long, ok := aliases[provider]; ok {
		provider = long
	}
	var b strings.Builder
	for _, p := range []string{"fentry", "fexit", "kprobe", "kretprobe", "rawtracepoint", "tracepoint"} {
		if !match(provider, p) {
			continue
		}
		switch p {
		case "rawtracepoint":
			listRaw(&b, rest, whole, k)
		case "tracepoint":
			listEvents(&b, rest, whole, k)
		default:
			listFunctions(&b, p, rest, whole, k)
		}
	}
	for _, p := range []string{"uprobe", "uretprobe"} {
		if match(provider, p) && ok {
			listProgram(&b, p, rest, k)
		}
	}
	if match(provider, "interval") && ok {
		b.WriteString("interval:hz:\ninterval:ms:\ninterval:s:\ninterval:us:\n")
	}
	if match(provider, "profile") && ok {
		b.WriteString("profile:hz:\nprofile:ms:\nprofile:s:\nprofile:us:\n")
	}
	return b.String()
}

func listFunctions(b *strings.Builder, provider, pattern string, whole bool, k *Kernel) {
	module := "*"
	if m, f, ok := strings.Cut(pattern, ":"); ok {
		module, pattern = m, f
	}
	if k.Functions == nil {
		return
	}
	c := &checker{k: k}
	var lines []string
	seen := map[string]bool{}
	for _, f := range k.Functions(pattern) {
		in := f.Module
		if in == "" {
			in = "vmlinux"
		}
		if ok, _ := path.Match(module, in); !ok || seen[in+f.Name] {
			continue
		}
		seen[in+f.Name] = true
		line := provider + ":" + f.Name + "\n"
		if provider[0] == 'f' {
			line = provider + ":" + in + ":" + f.Name + "\n"
			pt := &point{provider: provider, name: f.Name, target: in}
			c.resolve(pt)
			if len(pt.probes) == 0 {
				continue
			}
			at := c.place(pt.probes[0])
			if at == nil {
				continue
			}
			if whole {
				line += parameters(at, provider == "fexit")
			}
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	b.WriteString(strings.Join(lines, ""))
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
		if r := at.Returns(); r.Real().Kind != source.Void {
			text += fmt.Sprintf("    %s retval\n", spaced(r))
		}
	}
	return text
}

// spaced is a type with a blank before each star.
func spaced(t *source.Type) string {
	s := t.String()
	base := strings.TrimRight(s, "* ")
	return base + strings.Repeat(" *", strings.Count(s[len(base):], "*"))
}

func listRaw(b *strings.Builder, pattern string, whole bool, k *Kernel) {
	if k.Tracepoints == nil {
		return
	}
	var lines []string
	for _, t := range k.Tracepoints(pattern) {
		line := "rawtracepoint:" + t.Name + "\n"
		if whole {
			for _, p := range t.Params {
				line += fmt.Sprintf("    %s %s\n", spaced(p.Type), p.Name)
			}
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	b.WriteString(strings.Join(lines, ""))
}

func listEvents(b *strings.Builder, pattern string, whole bool, k *Kernel) {
	if k.Events == nil {
		return
	}
	if !strings.Contains(pattern, ":") {
		pattern = "*:" + pattern
	}
	var lines []string
	for _, e := range k.Events(pattern) {
		line := "tracepoint:" + e.Name + "\n"
		if whole {
			for _, f := range e.Fields {
				line += "    " + f.Text + "\n"
			}
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	b.WriteString(strings.Join(lines, ""))
}
