package kprobelab

import (
	"time"

	"kprobelab/booted"
	"kprobelab/decoder"
	"kprobelab/internal/engine"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/machine"
	"kprobelab/profile"
	"kprobelab/tracing"
	"kprobelab/watch"
)

// Options are the choices of a Lab; the zero value of each is its default.
type Options struct {
	// Profile names the kernel whose rules hold ("6.1"; profile.All lists
	// them). Empty: the one that the image's facts choose.
	Profile string
	// Rules are a profile of the caller's own; with them, Profile is not used.
	Rules *profile.Config
	// Preemption says whether the kernel has CONFIG_PREEMPTION; with it, no probe is
	// boosted. nil leaves it to the profile.
	Preemption *bool
	// Config names a kernel .config, plain or gzip, that decides what would
	// otherwise be inferred. Empty: the image's own, if it is embedded.
	Config string
	// LiveText names a file whose text is laid over the image's, Symbols a
	// System.map or a copy of /proc/kallsyms that replaces its symbols.
	LiveText, Symbols string
	// Modules are files to load into module space (.ko or .o), in order.
	Modules []string
	// CPU is the processor that the boot-time text is made for
	// (kimage.Options.CPU), qemu64 by default. The machine emulates the
	// nearest that it can.
	CPU string

	// Reader reads the instructions for the checks of a registration and of
	// jump optimization. The default is decoder.X86asm.
	Reader decoder.Reader

	// Engine names the engine that executes the guest's code: "unicorn" or "interp". "" takes
	// $KPROBELAB_ENGINE; if that is not set, unicorn if this build has it, else interp.
	Engine string
	// CPUs is the number of CPUs, at most 64; 0 means 1.
	CPUs int
	// Seed decides every choice of the scheduler. On a booted kernel, another seed than 0 varies the turns of processors
	// and when timers fall.
	Seed int64
	// Budget is the number of instructions that a call may execute; 0 means 100 million.
	Budget uint64
	// Timeout is the real time that a call may take; 0 means no limit. A run that it ends may
	// end elsewhere when repeated.
	Timeout time.Duration
	// Slice is after how many instructions the scheduler may switch to another task: 1000
	// by default, counted by blocks, and 1 with EveryInstruction. The CPUs of a booted kernel
	// have slices of their own.
	Slice uint64
	// EveryInstruction lets the scheduler switch tasks after any instruction, or
	// after Slice of them, not after blocks only: functions of a few instructions overlap
	// on several CPUs so. It is several times slower.
	EveryInstruction bool
	// FreeHits lets no virtual time pass in a probe's own work, so that a probed run
	// of a booted kernel gets its timers' interrupts where the unprobed one does.
	FreeHits bool
	// TrapCost is the time that int3 and #DB take on the virtual clock, in nanoseconds; 0 means 100.
	TrapCost uint64
	// Optimize allows jump optimization, in kernels that have it; Settle lets
	// it happen. Without, every probe keeps its int3.
	Optimize bool
}

// Lab is an image on a machine with the kprobes subsystem on it. It is for one
// goroutine at a time.
type Lab struct {
	// Image is the code under test.
	Image *kimage.Image
	// Machine runs it.
	Machine *machine.Machine
	// Kprobes is the subsystem.
	Kprobes *kprobes.Kprobes
	// Watches are the watchpoints.
	Watches *watch.Set

	// booted is nil where the image is no dump of a booted kernel.
	booted *booted.Kernel
}

// Open opens the image at path (empty: the guest kernel) and makes a Lab of it,
// which the caller closes. nil options mean the defaults. It fails as OpenImage
// and New do, and with an ErrProfile where no profile has the name.
func Open(path string, o *Options) (*Lab, error) {
	io, err := o.image()
	if err != nil {
		return nil, err
	}
	img, err := OpenImage(path, io)
	if err != nil {
		return nil, err
	}
	return New(img, o)
}

// ErrProfile is a name that no profile has.
var ErrProfile = profile.ErrUnknown

// image returns the options of the image; nil if o is nil.
func (o *Options) image() (*kimage.Options, error) {
	if o == nil {
		return nil, nil
	}
	rules := o.Rules
	if rules == nil && o.Profile != "" {
		var err error
		if rules, err = profile.Find(o.Profile); err != nil {
			return nil, err
		}
	}
	return &kimage.Options{
		Profile: rules, Config: o.Config, LiveText: o.LiveText, SystemMap: o.Symbols,
		Modules: o.Modules, CPU: o.CPU, Reader: o.Reader,
	}, nil
}

// New makes a machine that runs the image, and the subsystem on it. Its
// processors are of the engine's model that is nearest to the one the image's
// text is made for. The caller closes it. nil options mean the defaults; options for opening an image are ignored, except Rules and
// Preemption.
func New(img *kimage.Image, o *Options) (*Lab, error) {
	if o == nil {
		o = &Options{}
	}
	m, err := engine.ForImage(o.Engine, img, machine.Options{
		CPUs: o.CPUs, Seed: o.Seed, Budget: o.Budget, Timeout: o.Timeout, Slice: o.Slice, EveryInstruction: o.EveryInstruction,
		TrapCost: o.TrapCost, FreeHits: o.FreeHits,
	})
	if err != nil {
		return nil, err
	}
	l, err := on(m, img, o)
	if err != nil {
		m.Close()
	}
	return l, err
}

// Renew brings the machine back to a snapshot, and the Lab with it: it has a subsystem of its
// own, without a probe. The Lab's earlier probes, watchpoints and booted kernel must not be used any more. Only the
// options Rules, Preemption and Optimize count, which belong to the subsystem.
func (l *Lab) Renew(s *machine.Snapshot, o *Options) error {
	if err := l.Machine.Renew(s); err != nil {
		return err
	}
	if o == nil {
		o = &Options{}
	}
	fresh, err := on(l.Machine, l.Image, o)
	if err != nil {
		return err
	}
	*l = *fresh
	return nil
}

// on puts the subsystem on a machine.
func on(m *machine.Machine, img *kimage.Image, o *Options) (*Lab, error) {
	rules := o.Rules
	if rules == nil {
		rules = img.Profile()
	}
	if o.Preemption != nil {
		changed := *rules
		changed.Preemption = *o.Preemption
		rules = &changed
	}
	l := &Lab{Image: img, Machine: m, Kprobes: kprobes.New(m, img, rules), Watches: watch.NewSet(m)}
	if img.Core() != nil {
		var err error
		if l.booted, err = booted.New(img, m, l.Kprobes); err != nil {
			return nil, err
		}
	}
	if o.Optimize {
		if err := l.Kprobes.InitOptprobes(); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Booted is the booted kernel whose dump the image is; booted.ErrNotBooted where it is none.
func (l *Lab) Booted() (*booted.Kernel, error) {
	if l.booted == nil {
		return nil, booted.ErrNotBooted
	}
	return l.booted, nil
}

// Close frees the machine. Probes need not be unregistered before. The error is machine.ErrInUse where a handler
// calls it.
func (l *Lab) Close() error { return l.Machine.Close() }

// Call calls a function of the image and returns rax. An argument is an integer,
// a string, a []byte (copied in, and back after the call), an *machine.Buf or an
// x86.Addr. The error is the machine's (*machine.Fault, *machine.BudgetError) or the error
// of a hit that failed.
func (l *Lab) Call(name string, args ...any) (uint64, error) {
	v, err := l.Machine.Call(name, args...)
	if hit := l.Kprobes.ClearErr(); err == nil {
		err = hit
	}
	return v, err
}

// Tracing puts the tracing subsystem on the Lab: kprobe events, and the files of
// tracefs. The caller closes it, before the Lab. Where the options have no
// Source, it is the image.
func (l *Lab) Tracing(o *tracing.Options) (*tracing.Tracing, error) {
	if err := l.Machine.Closed(); err != nil {
		return nil, err
	}
	with := tracing.Options{}
	if o != nil {
		with = *o
	}
	if with.Source == nil {
		with.Source = l.Image
	}
	if with.Task == nil && l.booted != nil {
		with.Task = l.booted.Names()
		_, named := l.Image.TaskLayout()
		with.NoTasks = !named
	}
	return tracing.New(l.Kprobes, l.Machine, &with)
}
