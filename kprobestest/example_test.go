package kprobestest_test

import (
	"fmt"
	"testing"

	"kprobelab/kprobes"
	"kprobelab/kprobestest"
	"kprobelab/watch"
	"kprobelab/x86"
)

// A test that probes a function of the guest kernel. In a test of yours t is
// the *testing.T, and kprobestest.Open takes a real kernel's image.
func Example() {
	test := func(t testing.TB) {
		m := kprobestest.New(t, nil)

		m.Kprobe("snprintf", func(p *kprobes.Kprobe, regs *x86.PtRegs) int {
			fmt.Printf("%s: size = %d\n", p.SymbolName, regs.SI)
			return 0
		}, nil)
		m.Kretprobe("crc32_le", nil, func(_ *kprobes.Instance, regs *x86.PtRegs) int {
			fmt.Printf("crc32_le returned %#x\n", uint32(regs.AX))
			return 0
		})

		buf := make([]byte, 64)
		n := m.Call("snprintf", buf, len(buf), "%s has %d things", "abc", 42)
		fmt.Printf("%s\n", buf[:n])
		m.Call("crc32_le", 0xffffffff, "123456789", 9)
	}
	runTest(test)
	// Output:
	// snprintf: size = 64
	// abc has 42 things
	// crc32_le returned 0x340bc6d9
}

// The test of the package's doc.
func ExampleMachine_Kprobe() {
	runTest(func(t testing.TB) {
		m := kprobestest.New(t, nil)
		hits := 0
		m.Kprobe("vfs_read", func(*kprobes.Kprobe, *x86.PtRegs) int { hits++; return 0 }, nil)
		fd := m.Call("sys_open", "/etc/hostname", 0, 0)
		m.Call("sys_read", fd, make([]byte, 16), 16)
		fmt.Println(hits)
	})
	// Output:
	// 1
}

// A watchpoint reports the writer of a variable, and the value: ip is at the next instruction.
func ExampleMachine_Watch() {
	runTest(func(t testing.TB) {
		m := kprobestest.New(t, nil)
		m.Watch("last_pid:4:w", func(_ *watch.Watchpoint, h *watch.Hit, regs *x86.PtRegs) {
			fmt.Printf("%s: %d -> %d\n", m.Emu().Symbolize(x86.Addr(regs.IP)), h.Old, h.New)
		})
		m.Call("sys_fork")
	})
	// Output:
	// alloc_pid+0x12/0x20: 100 -> 101
}

// A refused probe comes with the kernel's errno and the rule that refused.
func ExampleMachine_Kprobes() {
	runTest(func(t testing.TB) {
		m := kprobestest.New(t, nil)
		for _, p := range []kprobes.Kprobe{
			{SymbolName: "nosuch"}, {SymbolName: "gcd", Offset: 6}, {SymbolName: "nokprobe_function"},
		} {
			fmt.Println(m.Kprobes().RegisterKprobe(&p))
		}
	})
	// Output:
	// probe nosuch: no such symbol (ENOENT)
	// probe gcd+0x6: not at an instruction boundary (EILSEQ)
	// probe nokprobe_function: blacklisted: kprobes itself may run this code (EINVAL)
}

// A trace has a line for every step of every hit; Golden keeps it in a file.
func ExampleMachine_Trace() {
	runTest(func(t testing.TB) {
		m := kprobestest.New(t, &kprobestest.Options{NoOptimize: true}) // else it is a jump
		tr := m.Trace()
		m.Kprobe("gcd+0x5", nil, nil)
		m.Call("gcd", 12, 18)
		fmt.Print(tr)
	})
	// Output:
	// 102ns cpu0 task0 gcd+0x5: trap
	// 102ns cpu0 task0 gcd+0x5: step at kprobe_insn_page
	// 204ns cpu0 task0 gcd+0x5: stepped
	// 204ns cpu0 task0 gcd+0x5: resume at gcd+0x8
}

// runTest takes the place of the testing package, which gives a test its t.
func runTest(test func(t testing.TB)) {
	for _, line := range (&recorder{}).run(test) {
		fmt.Println(line)
	}
}
