//go:build cgo && linux && amd64

package lab

import (
	"strings"

	"kprobelab/emu"
	"kprobelab/kimage"
	"kprobelab/kprobes"
)

// Options are the choices of a Lab; the zero value of each is the machine's
// default.
type Options struct {
	// CPUs is how many there are.
	CPUs int
	// Seed decides every choice of the scheduler.
	Seed int64
	// Budget is how many instructions a call may execute.
	Budget uint64
	// CPU is the processor model, "MODEL[,+feature][,-feature]" as in
	// kimage.Options; the features are the boot-time text's affair.
	CPU string
	// Optimize runs the initcall that allows jump optimization, in kernels that
	// have it. Without, every probe keeps its int3.
	Optimize bool
}

// Lab is an image on a machine with the kprobes subsystem on it.
type Lab struct {
	Image   *kimage.Image
	Machine *emu.Machine
	Kprobes *kprobes.Kprobes
}

// New makes a machine that runs the image, and the subsystem on it, with the
// image's profile. The caller closes it. nil options mean the defaults.
func New(img *kimage.Image, o *Options) (*Lab, error) {
	if o == nil {
		o = &Options{}
	}
	model, _, _ := strings.Cut(o.CPU, ",")
	m, err := emu.New(img, &emu.Options{CPUs: o.CPUs, Seed: o.Seed, Budget: o.Budget, CPUModel: model})
	if err != nil {
		return nil, err
	}
	l := &Lab{Image: img, Machine: m, Kprobes: kprobes.New(machine{m}, img, img.Profile())}
	if o.Optimize {
		if err := l.Kprobes.InitOptprobes(); err != nil {
			m.Close()
			return nil, err
		}
	}
	return l, nil
}

// Close frees the machine.
func (l *Lab) Close() { l.Machine.Close() }

// machine is emu's Machine as kprobes wants it: each declares the traps'
// interface for itself, and Go takes the two for different parameters.
type machine struct{ *emu.Machine }

var (
	_ kprobes.Machine = machine{}
	_ kprobes.Patcher = machine{}
)

// SetTraps implements kprobes.Machine.
func (m machine) SetTraps(t kprobes.Traps) { m.Machine.SetTraps(t) }
