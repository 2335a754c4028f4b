package bpftrace

import (
	"kprobelab/internal/script"
	"kprobelab/internal/script/host"
)

// Script is a script that has been understood.
type Script struct {
	Program *script.Program
	Probes  []*host.Probe
	// Attachment describes how the probes were attached to the kernel.
	Attachment
	// Warnings is the text of bpftrace's warnings about the script, "" for none.
	Warnings string
	// UserSymbols: the script prints addresses of programs, and needs the programs' symbols.
	UserSymbols bool

	maps    []*mapInfo
	longest []*Type
	json    bool
	newest  bool
	noMaps  bool
	maxStr  int
	trailer string
	// started is the time at which the script began, random the state of rand.
	started, random *script.Var
}

// Analyze reads a script and resolves it on a kernel, which may be nil. The error is *Problems.
func Analyze(name, text string, o *Options, k *Kernel) (*Script, error) {
	f := newFile(name, text)
	c := &checker{o: o, k: k, problems: &Problems{file: f}}
	if c.surround(); c.errors() > 0 {
		return nil, c.problems
	}
	t, problems := parse(f, nil, o.Language)
	if len(problems.list) > 0 {
		return nil, problems
	}
	lines, bad := preprocess(t.definitions, k != nil && k.Source != nil)
	if macros := lines.expansions(); len(macros) > 0 {
		// Only a script that can be read without macros is read with them.
		if t, problems = parse(f, macros, o.Language); len(problems.list) > 0 {
			return nil, problems
		}
	}
	c.t, c.problems, c.lines = t, problems, lines
	if o.Language.newest() {
		expandMacros(t, prelude(), problems)
		c.declareMaps()
		c.imported()
	}
	if bad != nil {
		c.problems.list = append(c.problems.list, &Problem{Message: "definitions: " + bad.Error(), free: true})
	}
	if c.errors() == 0 {
		c.check()
	}
	if len(problems.list) > 0 {
		return nil, problems
	}
	s := &Script{
		json: o.JSON, newest: o.Language.newest(), maxStr: c.maxStr, trailer: "..", noMaps: c.config["print_maps_on_exit"] == "0",
		started: &script.Var{Name: "elapsed", Type: script.Int}, random: &script.Var{Name: "rand", Type: script.Int, Number: 0x2545f4914f6cdd1d},
	}
	if v, ok := c.config["str_trunc_trailer"]; ok {
		s.trailer = v
	}
	s.Program = &script.Program{Vars: []*script.Var{s.started, s.random}}
	if s.Attachment = c.attachment(); len(problems.list) > 0 {
		return nil, problems
	}
	g := &generator{c: c, s: s, program: s.Program, arrays: map[string]*script.Array{}, infos: map[string]*mapInfo{}, full: map[string]string{}}
	g.generate()
	if len(problems.list) > 0 {
		return nil, problems
	}
	s.Warnings = problems.text(problems.warnings)
	return s, nil
}

// Start is called before the first handler runs.
func (s *Script) Start(t *script.Thread, now uint64) {
	t.SetNumber(s.started, int64(now))
	for _, m := range s.maps {
		if m.single() && !s.newest {
			t.Put(m.array, 0)
		}
	}
}
