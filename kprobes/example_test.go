package kprobes_test

import (
	"fmt"
	"strings"

	"kprobelab/kprobes"
	"kprobelab/profile"
	"kprobelab/x86"
)

// A kprobe with a pre and a post handler, on a machine of the tests' own; the
// kprobestest package has a real one.
func Example() {
	c, _ := profile.Named("6.1")
	m := bareWorld(c)
	k := m.k

	p := &kprobes.Kprobe{
		SymbolName: "steady",
		PreHandler: func(p *kprobes.Kprobe, regs *x86.PtRegs) int {
			fmt.Printf("pre:  ip is %d past the probed address, di = %d\n", regs.IP-uint64(p.Addr), regs.DI)
			return 0
		},
		PostHandler: func(p *kprobes.Kprobe, regs *x86.PtRegs, _ uint64) {
			fmt.Printf("post: ip is %d past it, at the next instruction\n", regs.IP-uint64(p.Addr))
		},
	}
	if err := k.RegisterKprobe(p); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.TrimSpace(k.List()))
	m.call(p.Addr, 41)
	k.UnregisterKprobe(p)

	fmt.Println(k.RegisterKprobe(&kprobes.Kprobe{SymbolName: "steady", Offset: 1}))
	// Output:
	// ffffffff81000010  k  steady+0x0
	// pre:  ip is 1 past the probed address, di = 41
	// post: ip is 4 past it, at the next instruction
	// probe steady+0x1: not at an instruction boundary (EILSEQ)
}

// A kretprobe: the return value, and a replaced one.
func ExampleKprobes_RegisterKretprobe() {
	c, _ := profile.Named("6.1")
	m := bareWorld(c)

	rp := &kprobes.Kretprobe{
		KP:        kprobes.Kprobe{SymbolName: "leaf"},
		MaxActive: 1,
		Handler: func(_ *kprobes.Instance, regs *x86.PtRegs) int {
			fmt.Println("leaf returns", regs.AX)
			regs.AX = 100
			return 0
		},
	}
	if err := m.k.RegisterKretprobe(rp); err != nil {
		fmt.Println(err)
		return
	}
	ax, _ := m.call(rp.KP.Addr, 41)
	fmt.Println("the caller gets", ax)
	m.k.UnregisterKretprobe(rp)
	// Output:
	// leaf returns 42
	// the caller gets 100
}
