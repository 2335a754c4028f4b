package bench

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"

	"kprobelab"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/machine"
	"kprobelab/profile"
	"kprobelab/x86"
)

// stand is a guest kernel with a loop in it, which calls one function.
type stand struct {
	*kprobelab.Lab
	// target is the function that the loop calls, loop the loop's function, and next the return
	// address of the target.
	target, loop, next x86.Addr
	// system is the system call that is made in place of the loop's call; nil for none.
	system *systemCall
}

// systemCall is a system call of a program.
type systemCall struct {
	nr    uint64
	words []uint64
}

// standSpec describes the stand to make.
type standSpec struct {
	open func() (*kimage.Image, error)
	// rules replace the image's configuration; nil keeps it.
	rules    *profile.Config
	optimize bool
	// others is the number of probes to plant on the image's fillers.
	others int
	// budget is the number of instructions that a call may execute, the loop's call too.
	budget uint64
}

// unlimited is a budget that no run uses up.
const unlimited = math.MaxUint64 / 2

// guestKernel is a guest kernel with these rules, and so many other probes.
func guestKernel(c *profile.Config, optimize bool, others int) *standSpec {
	open := func(modules ...string) (*kimage.Image, error) {
		return kimage.FromBytes(kprobelab.GuestKernel, kprobelab.GuestELF(), &kimage.Options{Profile: c, Modules: modules})
	}
	return &standSpec{
		open:     func() (*kimage.Image, error) { return withFillers(open, fillers(others)) },
		optimize: optimize, others: others, budget: unlimited,
	}
}

func (o *standSpec) make() (*stand, error) {
	img, err := o.open()
	if err != nil {
		return nil, err
	}
	l, err := kprobelab.New(img, &kprobelab.Options{Budget: o.budget, Optimize: o.optimize, Rules: o.rules})
	if err != nil {
		return nil, err
	}
	s := &stand{Lab: l}
	if err := s.fill(o.others); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// withFillers opens an image with so many functions that are never called.
func withFillers(open func(modules ...string) (*kimage.Image, error), functions int) (*kimage.Image, error) {
	if functions == 0 {
		return open()
	}
	dir, err := os.MkdirTemp("", "kprobelab-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path, err := writeFiller(dir, functions)
	if err != nil {
		return nil, err
	}
	return open(path)
}

// fill plants the other probes.
func (s *stand) fill(n int) error {
	pre := func(*kprobes.Kprobe, *x86.PtRegs) int { return 0 }
	list := make([]kprobes.Kprobe, n)
	for i := range list {
		p := &list[i]
		at := s.Image.Lookup(fillerName(i / fillerProbes))
		if len(at) != 1 {
			return fmt.Errorf("%d symbols %s", len(at), fillerName(i/fillerProbes))
		}
		p.Addr, p.Offset, p.PreHandler = at[0].Addr, fillerOffsets[i%fillerProbes], pre
		if err := s.Kprobes.RegisterKprobe(p); err != nil {
			return err
		}
	}
	return s.Settle()
}

func (s *stand) symbol(name string) x86.Addr { return s.Image.Lookup(name)[0].Addr }

// added returns the address of a symbol that the machine or the subsystem has added.
func (s *stand) added(name string) x86.Addr {
	for _, sym := range s.Machine.Symbols() {
		if sym.Name == name {
			return sym.Addr
		}
	}
	return 0
}

// code puts guest code on a page of its own.
func (s *stand) code(name string, code []byte) (x86.Addr, error) {
	at, err := s.Machine.AllocExec(machine.PageSize, name)
	if err != nil {
		return 0, err
	}
	return at, s.Machine.PokeText(at, code)
}

// aim writes the loop that calls target with these words.
func (s *stand) aim(target x86.Addr, words []uint64) (err error) {
	s.target = target
	code, next := loopCode(words)
	if s.loop, err = s.code("bench_loop", code); err != nil {
		return err
	}
	s.next = s.loop.Add(int64(next))
	return s.Machine.PokeText(s.next.Add(-4), rel32(s.next, target))
}

// rel32 is the displacement from the end of an instruction to a target.
func rel32(end, target x86.Addr) []byte { return word32(uint32(target.Sub(end))) }

func word32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }

// aimAt sets the calls of the loop to a site's.
func (s *stand) aimAt(at *site) error {
	if at.system != nil {
		s.system = at.system
		return nil
	}
	return s.aim(at.fn, at.words)
}

// calls makes n calls: in a loop of guest code, or of a program.
func (s *stand) calls(n int) (err error) {
	if c := s.system; c != nil {
		_, err = s.Machine.SystemCalls(uint64(n), c.nr, c.words...)
		return err
	}
	_, err = s.Machine.CallAddr(s.loop, uint64(n))
	return err
}
