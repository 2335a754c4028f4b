package script

import (
	"errors"

	"kprobelab/internal/debuginfo"
	language "kprobelab/internal/script"
	"kprobelab/internal/script/attach"
	"kprobelab/internal/script/host"
	"kprobelab/kimage"
)

// Options hold a script's name, arguments and program, and the files that describe the image's functions.
type Options struct {
	// Name is the script's file in messages, "" for the word that the tool has for none.
	Name string
	// Args are the script's arguments, $1 and what follows.
	Args []string
	// Debuginfo is a file with the image's DWARF, "" for the image's own file. Modules are the files of
	// modules with DWARF.
	Debuginfo string
	Modules   []string
	// Command is the program that will run meanwhile, as it is written after -c; "" for none.
	Command string
}

func (o *Options) debuginfo(img *kimage.Image) *debuginfo.Info {
	if o.Debuginfo != "" {
		return debuginfo.OfFile(img, o.Debuginfo)
	}
	return debuginfo.Of(img, o.Modules...)
}

// Script is a script that has been read for an image. It can be started more than once.
type Script struct {
	img *kimage.Image
	// made has the probes and the program.
	made attach.Script
	// unprinted ends the output of a dry run.
	unprinted func(*language.Thread)
	// said has the tool's messages about the script and its probes.
	said    Said
	refused error
	// failed is the error of a script that ends with one.
	failed error
	// mostErrors and mostSkipped bound the errors and the skipped hits; one more ends the script.
	mostErrors, mostSkipped uint64
	command                 bool
	// program is the file of Command, where its symbols are wanted and known.
	program *host.Program
}

// Said has the messages of a script's tool before the first handler runs.
type Said struct {
	// Warnings are of the script's text. Attaching goes to standard output; Attached goes to standard error, and says
	// what the kernel refused.
	Warnings, Attaching, Attached string
	// Count is the number of probes, for standard error; a language has it or Attaching.
	Count string
}

// The errors of a script that is accepted, and cannot run.
var (
	// ErrNoProbe: the kernel has nothing that the script's probes name.
	ErrNoProbe = errors.New("the script has no probe to attach")
	// ErrUnattached: the kernel refuses a probe, and the tool ends there.
	ErrUnattached = errors.New("the kernel refuses a probe of the script")
)

// RefusedError is the error of a script that is not accepted.
type RefusedError struct {
	// Text has the tool's messages, line by line.
	Text  string
	short string
}

// Error implements error: the tool's last line.
func (e *RefusedError) Error() string { return e.short }

// Said returns what the tool says before the script runs.
func (s *Script) Said() Said { return s.said }

// Attachable returns nil, or why the script ends before it begins: ErrNoProbe or ErrUnattached.
func (s *Script) Attachable() error { return s.refused }

// Waits reports whether a handler of the script runs only when something happens on a machine.
func (s *Script) Waits() bool {
	for _, p := range s.made.Probes {
		switch p.Kind {
		case host.Call, host.Return, host.Trace, host.Data, host.User:
			if p.Handler != nil {
				return true
			}
		}
	}
	return false
}
