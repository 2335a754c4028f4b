//go:build cgo && linux && amd64

package bench

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"

	"kprobelab/emu"
	"kprobelab/guestkernel"
	"kprobelab/internal/lab"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/profile"
	"kprobelab/x86"
)

// stand is a guest kernel with a loop in it, which calls one function.
type stand struct {
	*lab.Lab
	// target is what the loop calls, loop the loop itself, and behind where
	// the target returns to.
	target, loop, behind x86.Addr
}

// newStand makes one, with so many probes on functions that nobody calls.
func newStand(c *profile.Config, optimize bool, others int) (*stand, error) {
	o := &kimage.Options{Profile: c}
	if others > 0 {
		dir, err := os.MkdirTemp("", "kprobelab-bench-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		path, err := writeFiller(dir, others)
		if err != nil {
			return nil, err
		}
		o.Modules = []string{path}
	}
	img, err := kimage.FromBytes(lab.GuestKernel, guestkernel.ELF(), o)
	if err != nil {
		return nil, err
	}
	l, err := lab.New(img, &lab.Options{Budget: math.MaxUint64 / 2, Optimize: optimize})
	if err != nil {
		return nil, err
	}
	s := &stand{Lab: l}
	if err := s.fill(others); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
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

// added is the address of what the machine or the subsystem put into memory.
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
	at, err := s.Machine.AllocExec(emu.PageSize, name)
	if err != nil {
		return 0, err
	}
	return at, s.Machine.PokeText(at, code)
}

// loopCode calls a function rdi times, with 0 and 5.
var loopCode = []byte{
	0x53,             // push %rbx
	0x48, 0x89, 0xfb, // mov %rdi,%rbx
	0x31, 0xff, // 1: xor %edi,%edi
	0xbe, 5, 0, 0, 0, // mov $5,%esi
	0xe8, 0, 0, 0, 0, // call target
	0x48, 0xff, 0xcb, // dec %rbx
	0x75, 0xef, // jne 1b
	0x5b, // pop %rbx
	0xc3, // ret
}

// loopCall is where the call ends in the loop.
const loopCall = 16

// aim writes the loop that calls target.
func (s *stand) aim(target x86.Addr) (err error) {
	s.target = target
	if s.loop, err = s.code("bench_loop", loopCode); err != nil {
		return err
	}
	s.behind = s.loop.Add(loopCall)
	return s.Machine.PokeText(s.behind.Add(-4), rel32(s.behind, target))
}

// rel32 is the displacement from the end of an instruction to a target.
func rel32(end, target x86.Addr) []byte { return word32(uint32(target.Sub(end))) }

func word32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }

// calls makes the loop call its target n times.
func (s *stand) calls(n int) error {
	_, err := s.Machine.CallAddr(s.loop, uint64(n))
	return err
}
