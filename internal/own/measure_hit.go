package own

import (
	"bytes"
	"encoding/binary"

	"kprobelab/machine"
	"kprobelab/x86"
)

// probeSize is more than struct kprobe has in any release.
const probeSize = 512

// hit calls the functions that run when a probe is hit.
func (m *measuring) hit() error {
	f, err := m.newFrame()
	if err != nil {
		return err
	}
	defer f.regs.Free()
	defer f.probe.Free()
	for _, ask := range []func(*measuring, *frame) error{(*measuring).vanished, (*measuring).jle, (*measuring).call} {
		if err := ask(m, f); err != nil && !isNotThere(err) {
			return err
		}
	}
	return nil
}

// frame holds the arguments of a kernel's handler.
type frame struct {
	m           *machine.Machine
	regs, probe *machine.Buf
}

func (m *measuring) newFrame() (*frame, error) {
	regs, err := m.m.NewBuf(x86.PtRegsSize)
	if err != nil {
		return nil, err
	}
	probe, err := m.m.NewBuf(probeSize)
	return &frame{m.m, regs, probe}, err
}

// Offsets in pt_regs of the registers that are set and read here.
const (
	regsIP, regsCS, regsFlags, regsSP = 128, 136, 144, 152
)

// set writes the registers, and fills the probe with one byte. So fields are set whose
// offsets are unknown: the copy's size, its rel32 and its kind all consist of that byte.
func (f *frame) set(ip, sp x86.Addr, flags uint64, fill byte) error {
	b := make([]byte, x86.PtRegsSize)
	binary.LittleEndian.PutUint64(b[regsIP:], uint64(ip))
	binary.LittleEndian.PutUint64(b[regsCS:], x86.KernelCS)
	binary.LittleEndian.PutUint64(b[regsFlags:], flags)
	binary.LittleEndian.PutUint64(b[regsSP:], uint64(sp))
	if _, err := f.regs.Write(b); err != nil {
		return err
	}
	_, err := f.probe.Write(bytes.Repeat([]byte{fill}, probeSize))
	return err
}

func (f *frame) ip() x86.Addr {
	return x86.Addr(binary.LittleEndian.Uint64(f.regs.Bytes()[regsIP:]))
}

// vanished hands the int3 handler a hit where neither a probe nor an int3 is.
func (m *measuring) vanished(f *frame) error {
	if m.scratch == nil {
		return ErrNotThere
	}
	if err := m.write(nil, nil); err != nil {
		return err
	}
	if err := f.set(m.Addr+1, 0, 0x46, 0); err != nil {
		return err
	}
	on, err := m.truth("kprobe_int3_handler", uint64(f.regs.Addr))
	if err == nil && on == (f.ip() == m.Addr) {
		m.say("Step.VanishedInt3", on, "kprobe_int3_handler of an address with a nop")
	}
	return err
}

// Flags of the conditions (SDM Vol. 1, "EFLAGS Register").
const (
	flagZF = 1 << 6
	flagSF = 1 << 7
)

// jle emulates a jle (condition 14) whose operands are equal: less, or less and
// equal at once, are the cases to compare with.
func (m *measuring) jle(f *frame) error {
	const condition = 14
	var went [3]x86.Addr
	for i, flags := range []uint64{0, flagZF, flagZF | flagSF} {
		if err := f.set(0x1000, 0, flags, condition); err != nil {
			return err
		}
		if _, err := m.Call("kprobe_emulate_jcc", uint64(f.probe.Addr), uint64(f.regs.Addr)); err != nil {
			return err
		}
		went[i] = f.ip()
	}
	if not, equal, both := went[0], went[1], went[2]; not != both && (equal == not || equal == both) {
		m.say("Step.JLENeedsBoth", equal == not, "kprobe_emulate_jcc of jle with equal operands")
	}
	return nil
}

// call emulates a call whose length is 14, and looks at the return address.
func (m *measuring) call(f *frame) error {
	const at, length = 0x1000, 14
	stack, err := m.m.NewBuf(64)
	if err != nil {
		return err
	}
	defer stack.Free()
	if err := f.set(at+1, stack.Addr+64, 0, length); err != nil {
		return err
	}
	if _, err := m.Call("kprobe_emulate_call", uint64(f.probe.Addr), uint64(f.regs.Addr)); err != nil {
		return err
	}
	switch binary.LittleEndian.Uint64(stack.Bytes()[56:]) {
	case at + 5:
		m.say("Step.CallReturnsPast5", true, "kprobe_emulate_call of a call of %d bytes", length)
	case at + length:
		m.say("Step.CallReturnsPast5", false, "kprobe_emulate_call of a call of %d bytes", length)
	}
	return nil
}
