package script

import (
	"errors"
	"slices"
	"strings"

	"kprobelab/internal/debuginfo"
	"kprobelab/internal/script/attach"
	"kprobelab/internal/script/bpftrace"
	"kprobelab/internal/script/ways"
	"kprobelab/kimage"
)

// BpftraceOptions are Options, with further options for bpftrace.
type BpftraceOptions struct {
	Options
	// Unsafe allows what only --unsafe allows. JSON is the output's format. NoWarnings leaves out what looks wrong.
	Unsafe, JSON, NoWarnings bool
	// Language is the version of the language: 0.23 or 0.27. With "" a script is read as 0.23, and as 0.27 if only 0.27 accepts it.
	Language string
	// Env are variables of the environment, NAME=VALUE: bpftrace has settings in BPFTRACE_MAX_STRLEN and its like.
	Env []string
}

// Bpftrace reads a script of bpftrace's language, for an image. A script that bpftrace refuses is a *RefusedError; an
// error of a file with debugging information is that file's.
func Bpftrace(img *kimage.Image, text string, o *BpftraceOptions) (*Script, error) {
	if o == nil {
		o = &BpftraceOptions{}
	}
	k, err := bpftraceKernel(o.debuginfo(img), img)
	if err != nil {
		return nil, err
	}
	name := o.Name
	if name == "" {
		name = "stdin"
	}
	of := bpftrace.Options{Unsafe: o.Unsafe, Command: o.Command != "", JSON: o.JSON, NoWarnings: o.NoWarnings, Env: o.Env}
	if words := strings.Fields(o.Command); len(words) > 0 {
		of.Program = words[0]
	}
	b, err := read(name, text, o, of, k)
	var p *bpftrace.Problems
	switch {
	case errors.As(err, &p):
		return nil, &RefusedError{Text: p.Text(), short: "the script is not accepted"}
	case err != nil:
		return nil, err
	}
	said := Said{Attaching: b.Attaching(), Attached: b.Said(!o.NoWarnings)}
	if b.Quietly() {
		said.Attaching, said.Count = "", said.Attaching
	}
	s := &Script{
		img: img, made: attach.Script{Program: b.Program, Probes: b.Probes, Words: bpftrace.Words{}, First: b.Start},
		said:   said,
		failed: errors.New("the script ended with an error"), mostSkipped: 1<<64 - 1, command: o.Command != "",
	}
	s.made.Last, s.unprinted = b.PrintMaps, b.PrintNoMaps
	if !o.NoWarnings {
		s.said.Warnings = b.Warnings
	}
	if b.UserSymbols && of.Program != "" && k.Program != nil {
		s.program, _ = k.Program(of.Program) // without symbols its addresses are numbers
	}
	switch {
	case b.Attached == 0:
		s.refused = ErrNoProbe
	case b.Failed:
		s.refused = ErrUnattached
	}
	return s, nil
}

// BpftraceLanguage returns an error if no version of bpftrace's language has that name.
func BpftraceLanguage(version string) error {
	_, err := bpftrace.LanguageOf(version)
	return err
}

// read reads a script in the language of the options, or in the one that understands it.
func read(name, text string, o *BpftraceOptions, of bpftrace.Options, k *bpftrace.Kernel) (*bpftrace.Script, error) {
	in := func(l bpftrace.Language) (*bpftrace.Script, error) {
		given := of
		given.Language = l
		given.Args, given.Named = bpftrace.Parameters(o.Args, l)
		return bpftrace.Analyze(name, text, &given, k)
	}
	if o.Language != "" {
		l, err := bpftrace.LanguageOf(o.Language)
		if err != nil {
			return nil, err
		}
		return in(l)
	}
	b, err := in(bpftrace.Language23)
	var old, newer *bpftrace.Problems
	if !errors.As(err, &old) {
		return b, err
	}
	b, other := in(bpftrace.Language27)
	if errors.As(other, &newer) && (!old.Syntax() || newer.Syntax()) {
		return nil, err
	}
	return b, other
}

// BpftraceList returns the probes that a pattern matches as bpftrace -l lists them, with their parameters as -lv does, and
// bpftrace's warnings.
func BpftraceList(img *kimage.Image, pattern string, parameters bool, o *BpftraceOptions) (list, warnings string, err error) {
	if o == nil {
		o = &BpftraceOptions{}
	}
	k, err := bpftraceKernel(o.debuginfo(img), img)
	if err != nil {
		return "", "", err
	}
	list, warnings = bpftrace.List(pattern, parameters, k)
	return list, warnings, nil
}

// bpftraceKernel answers scripts about an image.
func bpftraceKernel(info *debuginfo.Info, img *kimage.Image) (*bpftrace.Kernel, error) {
	shared, types, err := kernelOf(info, img)
	if err != nil {
		return nil, err
	}
	b := &bpftrace.Kernel{Kernel: shared, Ways: ways.ForBpftrace(img)}
	b.Symbol = func(name string) (uint64, bool) {
		for _, s := range img.Lookup(name) {
			return uint64(s.Addr), true
		}
		return 0, false
	}
	if img.Core() != nil {
		b.CPUs = len(img.Core().CPUs())
		events := newEvents(types, img)
		b.Events, b.EventNames, b.Formats = events.named, events.names, events.formats
		if t, ok := img.Types().Struct("bpf_trace_run_ctx"); ok {
			_, b.FunctionsAtReturns = t.Member("is_uprobe")
		}
		if set := img.BTFSet("btf_allowlist_d_path"); set != nil {
			b.PathIn = func(function string) bool {
				id, ok := img.Types().FuncID(function)
				return ok && slices.Contains(set, id)
			}
		}
	}
	return b, nil
}
