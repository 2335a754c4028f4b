package script

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kprobelab/internal/script/attach"
	"kprobelab/internal/script/stap"
	"kprobelab/kimage"
)

// StapOptions are Options, with further options for stap.
type StapOptions struct {
	Options
	// Guru allows what only -g allows.
	Guru bool
	// Limits are the values of -D, by the names of StapLimits; Globals the values of -G.
	Limits  map[string]uint64
	Globals map[string]string
}

// StapLimits are the names of the limits that a script can be given.
var StapLimits = []string{"MAXACTION", "MAXACTION_INTERRUPTIBLE", "MAXNESTING", "MAXSTRINGLEN", "MAXMAPENTRIES", "MAXERRORS", "MAXSKIPPED"}

// SetLimit sets a limit as -D does, NAME=NUMBER.
func (o *StapOptions) SetLimit(text string) error {
	name, value, ok := strings.Cut(text, "=")
	v, err := strconv.ParseUint(value, 0, 31)
	switch {
	case !ok || err != nil:
		return fmt.Errorf("%q: want NAME=NUMBER", text)
	case !slices.Contains(StapLimits, name):
		return fmt.Errorf("%s: there is no such limit, only %s", name, strings.Join(StapLimits, ", "))
	}
	if o.Limits == nil {
		o.Limits = map[string]uint64{}
	}
	o.Limits[name] = v
	return nil
}

// SetGlobal gives a global variable another beginning as -G does, NAME=VALUE.
func (o *StapOptions) SetGlobal(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return fmt.Errorf("%q: want NAME=VALUE", text)
	}
	if o.Globals == nil {
		o.Globals = map[string]string{}
	}
	o.Globals[name] = value
	return nil
}

// Stap reads a script of SystemTap's language, for an image. A script that stap refuses is a *RefusedError; an error of a
// file with debugging information is that file's.
func Stap(img *kimage.Image, text string, o *StapOptions) (*Script, error) {
	a, o, err := analyzed(img, text, o, func(*stap.Options) {})
	if err != nil {
		return nil, err
	}
	return &Script{
		img: img, made: attach.Script{Program: a.Program, Probes: a.Probes, Words: stap.Words{}, Backwards: true},
		failed: passFailed(5), command: o.Command != "",
		mostErrors: limit(o.Limits, "MAXERRORS", 0), mostSkipped: limit(o.Limits, "MAXSKIPPED", 100),
	}, nil
}

// StapTree returns a script as stap -p1 prints it, StapTypes as -p2 does: its globals, functions and probes with their types.
func StapTree(img *kimage.Image, text string, o *StapOptions) (string, error) {
	_, name, s := o.of(img)
	tree, err := stap.Parse(name, text, s)
	return tree, refusedByStap(err)
}

// StapTypes returns a script as stap -p2 prints it: its globals, functions and probes with their types.
func StapTypes(img *kimage.Image, text string, o *StapOptions) (string, error) {
	a, _, err := analyzed(img, text, o, func(s *stap.Options) { s.Types = true })
	if err != nil {
		return "", err
	}
	return a.Dump(), nil
}

// StapList returns the probes of a point as stap -l lists them, with their variables as -L does.
func StapList(img *kimage.Image, point string, variables bool, o *StapOptions) (string, error) {
	a, _, err := analyzed(img, "probe "+point+" {}", o, func(s *stap.Options) { s.List = true })
	if err != nil {
		return "", err
	}
	return a.List(variables), nil
}

func (o *StapOptions) of(img *kimage.Image) (*StapOptions, string, *stap.Options) {
	if o == nil {
		o = &StapOptions{}
	}
	name := o.Name
	if name == "" {
		name = "<input>"
	}
	return o, name, &stap.Options{Args: o.Args, Guru: o.Guru, Limits: o.Limits, Globals: o.Globals, Release: release(img)}
}

func analyzed(img *kimage.Image, text string, o *StapOptions, set func(*stap.Options)) (*stap.Script, *StapOptions, error) {
	o, name, s := o.of(img)
	set(s)
	k, err := stapKernel(o.debuginfo(img), img)
	if err != nil {
		return nil, nil, err
	}
	a, err := stap.Analyze(name, text, s, k)
	return a, o, refusedByStap(err)
}

func limit(limits map[string]uint64, name string, otherwise uint64) uint64 {
	if v, ok := limits[name]; ok {
		return v
	}
	return otherwise
}

// passFailed is the end of a script that failed in that pass, in stap's words.
type passFailed int

func (p passFailed) Error() string {
	return fmt.Sprintf("Pass %d: %s failed.", int(p), map[passFailed]string{1: "parse", 2: "analysis", 3: "translation", 5: "run"}[p])
}

// refusedByStap is the error of a script in which stap has found something wrong.
func refusedByStap(err error) error {
	var p stap.Problems
	if !errors.As(err, &p) {
		return err
	}
	pass := passFailed(2)
	switch {
	case p.Parsing():
		pass = 1
	case p.Translating():
		pass = 3
	}
	return &RefusedError{Text: p.Text(), short: pass.Error()}
}

// release is the kernel's release as its banner has it, or the modelled one.
func release(img *kimage.Image) string {
	words := strings.Fields(img.Banner())
	if len(words) > 2 && words[0] == "Linux" && words[1] == "version" {
		return words[2]
	}
	return img.Profile().Name
}
