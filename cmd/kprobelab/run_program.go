package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/debuginfo"
	"kprobelab/internal/perfprobe"
	"kprobelab/internal/report"
	"kprobelab/internal/source"
	"kprobelab/internal/tracing/definition"
	"kprobelab/profile"
)

// ofProgram looks whether probes without calls are meant for a program: IMAGE is one then. What is said of
// it in the words of the source becomes definitions of uprobes; a kernel's probes are refused.
func (p *plan) ofProgram(c *cli.Command) error {
	asked := p.user.asked(p)
	if !asked && len(p.jobs)+len(p.tasks) > 0 || len(p.probes)+len(p.events)+len(p.watches) == 0 || c.Args().Len() == 0 {
		return nil
	}
	f, err := programFile(c.Args().First())
	for _, line := range p.events {
		if asked && err != nil && !isUserEvent(line) {
			return usagef("%q: want p[:[GRP/]EVENT] PATH:OFFSET; a place in the words of the source is looked for in the program: %w", line, err)
		}
	}
	if err != nil {
		return nil // a kernel's image, or the reader of images says what it is
	}
	switch {
	case asked:
	case len(p.probes) > 0:
		return usagef("--kprobe and --kretprobe are for kernels, and %s is a program: give --uprobe or --uretprobe %s:%s",
			c.Args().First(), withSlash(c.Args().First()), p.probes[0].String())
	case len(p.watches) > 0 && len(p.events) == 0:
		return usagef("%s is a program: give --program to run it", c.Args().First())
	}
	w := &perfprobe.Writer{File: f, Features: debuginfo.Features(programRules(c))}
	var lines []string
	for _, line := range p.events {
		list, err := p.user.definitions(w, line)
		if err != nil {
			return err
		}
		lines = append(lines, list...)
	}
	p.events = lines
	return nil
}

// programRules returns the rules of the kernel that --kernel names, or the rules of the default kernel.
func programRules(c *cli.Command) *profile.Config {
	if rules, ok := profile.Named(c.String("kernel")); ok {
		return rules
	}
	rules, _ := profile.Named(profile.Default)
	return rules
}

// programFile is a program or a library, with its debugging information if it has some.
func programFile(path string) (*source.File, error) {
	f, err := source.Open(path)
	if err == nil && f.Program() == "" {
		return nil, source.ErrNone
	}
	if err != nil {
		return source.OfProgram(path)
	}
	return f, nil
}

func withSlash(path string) string {
	if strings.Contains(path, "/") {
		return path
	}
	return "./" + path
}

// definitions returns the uprobe definitions for a line about a program: the line itself if it is a definition,
// otherwise the definitions of the probe that the line describes in the syntax of perf probe.
func (u *userPlan) definitions(w *perfprobe.Writer, line string) ([]string, error) {
	words := definition.Words(line)
	switch {
	case len(words) == 0:
		return nil, usagef("-e needs a definition, such as 'p:name %s:0x1234'", w.File.Program())
	case definition.IsUser(words):
		return []string{line}, nil
	case report.IsDefinition(words):
		return nil, notAUprobe(w.File, words)
	case definition.Other(words) != "":
		return nil, usagef("%q: %s are of kernels, and %s is a program: a uprobe is defined as p[:[GRP/]EVENT] PATH:OFFSET", line, definition.Other(words), w.File.Program())
	}
	p, err := perfprobe.Parse(line)
	if err != nil {
		return nil, usagef("%w (a definition of uprobe_events begins with p: or r:)", err)
	}
	list, err := w.Define(p)
	if err != nil {
		return nil, sourceError(fmt.Errorf("%s: %w", line, err))
	}
	var out []string
	for _, d := range list {
		out = append(out, d.Text())
	}
	return out, nil
}

// notAUprobe says why a definition is none of a uprobe's, and what it could be.
func notAUprobe(f *source.File, words []string) error {
	if len(words) < 2 {
		return usagef("%q: want p[:[GRP/]EVENT] PATH:OFFSET", strings.Join(words, " "))
	}
	file, place, has := cutLast(words[1], ":")
	if !has {
		file, place = "", words[1]
	}
	symbol, _, _ := strings.Cut(place, "+")
	symbol, _, _ = strings.Cut(symbol, "%")
	list := f.Symbols(symbol)
	i := slices.IndexFunc(list, func(s source.Symbol) bool { return s.Func })
	switch {
	case i >= 0:
		if at, ok := f.FileOffset(list[i].Start); ok {
			return usagef("%q: a uprobe is defined by its offset in the file, not by a symbol: %s:0x%x for %s", words[1], f.Program(), at, symbol)
		}
	case has && !strings.Contains(file, "/"):
		return usagef("%q: the path of a uprobe's file has a slash: ./%s", words[1], words[1])
	}
	return usagef("%q: %s is a program, and a uprobe is defined as PATH:OFFSET", words[1], f.Program())
}
