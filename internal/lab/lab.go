//go:build cgo && linux && amd64

package lab

import (
	"kprobelab/emu"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/profile"
	"kprobelab/x86"
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
	// Optimize runs the initcall that allows jump optimization, in kernels that
	// have it. Without, every probe keeps its int3.
	Optimize bool
	// Rules are the kernel's in place of the image's profile; nil for that.
	Rules *profile.Config
	// OnPoke, where set, is called after every change of n bytes of text by
	// the CPU that runs, OnSync after a CPU has come to see all changes.
	OnPoke func(at x86.Addr, n int)
	OnSync func(cpu int)
}

// Lab is an image on a machine with the kprobes subsystem on it.
type Lab struct {
	Image   *kimage.Image
	Machine *emu.Machine
	Kprobes *kprobes.Kprobes
}

// New makes a machine that runs the image, and the subsystem on it. Its
// processors are of the engine's model that is nearest to the one the image's
// text is made for. The caller closes it. nil options mean the defaults.
func New(img *kimage.Image, o *Options) (*Lab, error) {
	if o == nil {
		o = &Options{}
	}
	m, err := emu.New(img, &emu.Options{
		CPUs: o.CPUs, Seed: o.Seed, Budget: o.Budget, CPUModel: img.NearestCPU(emu.CPUModels()),
	})
	if err != nil {
		return nil, err
	}
	rules := o.Rules
	if rules == nil {
		rules = img.Profile()
	}
	l := &Lab{Image: img, Machine: m, Kprobes: kprobes.New(machine{m, o}, img, rules)}
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
type machine struct {
	*emu.Machine
	o *Options
}

var (
	_ kprobes.Machine = machine{}
	_ kprobes.Patcher = machine{}
)

// SetTraps implements kprobes.Machine.
func (m machine) SetTraps(t kprobes.Traps) { m.Machine.SetTraps(t) }

// PokeText implements kprobes.Machine: every CPU sees the change at once.
func (m machine) PokeText(at x86.Addr, b []byte) error {
	err := m.Machine.PokeText(at, b)
	if err == nil && m.o.OnPoke != nil {
		m.o.OnPoke(at, len(b))
	}
	if err == nil && m.o.OnSync != nil {
		for cpu := range m.NumCPU() {
			m.o.OnSync(cpu)
		}
	}
	return err
}

// PokeTextNoSync implements kprobes.Patcher.
func (m machine) PokeTextNoSync(at x86.Addr, b []byte) error {
	err := m.Machine.PokeTextNoSync(at, b)
	if err == nil && m.o.OnPoke != nil {
		m.o.OnPoke(at, len(b))
	}
	return err
}

// SyncCore implements kprobes.Patcher.
func (m machine) SyncCore(cpu int) {
	m.Machine.SyncCore(cpu)
	if m.o.OnSync != nil {
		m.o.OnSync(cpu)
	}
}
