//go:build unicorn && cgo && linux && amd64

package emu_test

import (
	"fmt"

	"kprobelab"
	"kprobelab/emu"
	"kprobelab/kimage"
	"kprobelab/machine"
	"kprobelab/x86"
)

// printer resumes after each int3 and prints its address.
type printer struct{ m *machine.Machine }

func (p printer) Int3(regs *x86.PtRegs) bool {
	fmt.Println("int3 at", p.m.Symbolize(x86.Addr(regs.IP-1)), "with di =", regs.DI)
	return true
}
func (printer) Debug(*x86.PtRegs) bool      { return false }
func (printer) Fault(*x86.PtRegs, int) bool { return false }
func (printer) TaskExit(int)                {}

func Example() {
	img, err := kimage.FromBytes("guest.elf", kprobelab.GuestELF(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := emu.New(img, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	sum, err := m.Call("worker", 4)
	fmt.Println(sum, err)
	_, err = m.Call("fault_null_read")
	fmt.Println(err != nil)

	// A breakpoint on a ret: the machine hands it over, and goes on after it.
	page, err := m.AllocExec(machine.PageSize, "my_page")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := m.PokeText(page, []byte{0xcc, 0xc3}); err != nil {
		fmt.Println(err)
		return
	}
	m.SetTraps(printer{m})
	_, err = m.CallAddr(page, 42)
	fmt.Println(err)
	// Output:
	// 12 <nil>
	// true
	// int3 at my_page+0x0/0x1000 with di = 42
	// <nil>
}
