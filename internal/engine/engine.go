// Package engine knows the engines that this build has: Unicorn (emu) with the build tag unicorn, on
// Linux/amd64 with cgo, and the one in Go (interp) everywhere.
//
// It must not know what runs on them.
package engine

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"kprobelab/errno"
	"kprobelab/interp"
	"kprobelab/kimage"
	"kprobelab/machine"
)

// Engine executes the code of guests.
type Engine struct {
	// Name is a value of --engine.
	Name string
	// New makes a machine on it.
	New func(src machine.Source, o *machine.Options) (*machine.Machine, error)
	// CPUModels lists the processors that it emulates.
	CPUModels func() []string
	// Version names the engine and its version.
	Version func() string
}

// all lists the engines of this build, the default first.
var all = []Engine{{"interp", interp.New, interp.CPUModels, interp.Engine}}

// Known lists all engines, of this build or not.
var Known = []string{"unicorn", "interp"}

// Names lists the engines of this build, the default first.
func Names() []string {
	list := make([]string, len(all))
	for i, e := range all {
		list[i] = e.Name
	}
	return list
}

// ErrMissing: the engine exists, but is not in this build.
var ErrMissing = errors.New("this build has no engine")

// chosen is the name that Use was given.
var chosen string

// Use makes an engine the default of this process.
func Use(name string) error {
	_, err := Named(name)
	if err == nil {
		chosen = name
	}
	return err
}

// Named returns the engine of that name. For "" it takes the name that Use was given, then
// $KPROBELAB_ENGINE, then the first engine of this build.
func Named(name string) (*Engine, error) {
	name = cmp.Or(name, chosen, os.Getenv("KPROBELAB_ENGINE"))
	if name == "" {
		return &all[0], nil
	}
	for i := range all {
		if all[i].Name == name {
			return &all[i], nil
		}
	}
	if name == "unicorn" {
		return nil, fmt.Errorf("%w %s, which needs Linux/amd64, cgo and the build tag unicorn; it has %s", ErrMissing, name, strings.Join(Names(), ", "))
	}
	return nil, fmt.Errorf("engine %q is not one of %s: %w", name, strings.Join(Known, ", "), errno.EINVAL)
}

// New makes a machine on the engine of that name.
func New(name string, src machine.Source, o *machine.Options) (*machine.Machine, error) {
	e, err := Named(name)
	if err != nil {
		return nil, err
	}
	return e.New(src, o)
}

// ForImage is New for an image: the machine's processors are of the model that is
// nearest to the one the image's text is made for.
func ForImage(name string, img *kimage.Image, o machine.Options) (*machine.Machine, error) {
	e, err := Named(name)
	if err != nil {
		return nil, err
	}
	o.CPUModel = img.NearestCPU(e.CPUModels())
	return e.New(img, &o)
}

// Version names the default engine and its version.
func Version() string {
	e, err := Named("")
	if err != nil {
		return err.Error()
	}
	return e.Version()
}
