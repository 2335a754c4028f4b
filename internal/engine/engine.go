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

// Engine is one of them.
type Engine struct {
	// Name is what --engine takes.
	Name string
	// New makes a machine on it.
	New func(src machine.Source, o *machine.Options) (*machine.Machine, error)
	// CPUModels are the processors that it emulates.
	CPUModels func() []string
	// Version names the engine and its version.
	Version func() string
}

// all are those of this build, the one that is taken by default first.
var all = []Engine{{"interp", interp.New, interp.CPUModels, interp.Engine}}

// Known are the engines that there are, in this build or not.
var Known = []string{"unicorn", "interp"}

// Names lists the engines of this build, the default first.
func Names() []string {
	list := make([]string, len(all))
	for i, e := range all {
		list[i] = e.Name
	}
	return list
}

// ErrMissing: an engine that there is, but not in this build.
var ErrMissing = errors.New("this build has no engine")

// chosen is what Use said.
var chosen string

// Use makes an engine the default of this process.
func Use(name string) error {
	_, err := Named(name)
	if err == nil {
		chosen = name
	}
	return err
}

// Named is the engine of that name. Without one, it is that of Use, that of
// $KPROBELAB_ENGINE, or else the first of this build.
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
