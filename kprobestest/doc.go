// Package kprobestest gives a go test a kernel to probe: a machine with the
// kprobes subsystem on the guest kernel inside this module, or on an image of
// the test's choice, without root.
//
//	func TestReadIsProbed(t *testing.T) {
//		m := kprobestest.New(t, nil)
//		hits := 0
//		m.Kprobe("vfs_read", func(*kprobes.Kprobe, *x86.PtRegs) int { hits++; return 0 }, nil)
//		fd := m.Call("sys_open", "/etc/hostname", 0, 0)
//		m.Call("sys_read", fd, make([]byte, 16), 16)
//		if hits != 1 {
//			t.Errorf("%d hits", hits)
//		}
//	}
//
// When the test ends, a leak check fails it if a probe is still registered, if a byte of text has
// changed, or if a hit went wrong. Trace records the hits in lines that repeat to the byte, for
// golden files.
//
// Probes are optimized as on a kernel and by the command run: before a call, the optimizer
// processes its queues, so that a probe which can be a jump is one, and the ip that its handler
// sets is ignored. Options.NoOptimize keeps every probe's int3; with Options.NoSettle the optimizer
// waits for Settle.
//
// The leak check prints the place where a leftover probe was registered. If a handler does
// something without effect, such as to return 1 and leave ip unchanged, the test's log says so.
//
// On the memory dump of a booted kernel (kprobelab boot makes one), a test has the
// kernel's files, tasks and system calls:
//
//	m := kprobestest.New(t, &kprobestest.Options{Image: "6.1.core"})
//	reads := 0
//	m.Kprobe("vfs_read", func(*kprobes.Kprobe, *x86.PtRegs) int { reads++; return 0 }, nil)
//	fd := m.SystemCall("openat", -100, "/etc/hostname", 0)
//	text := make([]byte, 32)
//	n := m.SystemCall("read", fd, text, len(text))
//	output, code := m.Exec("/bin/busybox", "cat", "/etc/hostname")
//
// The dump is opened once, and each test begins in the state of the dump: on the machine of an
// earlier test, only the pages that changed are put back, in a fraction of a millisecond. Jump
// labels and static calls, which such a kernel switches by itself, are not in the leak check.
//
// LoadBPF has such a kernel's own verifier load the programs of a BPF object and attach them, ExecHost runs a static program of the
// host there, such as a test of yours; probes beside them look from outside, and the next test has a fresh kernel:
//
//	m := kprobestest.New(t, &kprobestest.Options{Image: "6.1.core", Budget: bpf.Budget})
//	for _, p := range m.LoadBPF("tool.bpf.o", nil) { … } // p.Loads, p.Attaches, p.Why()
//
// A handler reads its function's arguments with regs.Arg, and memory that they point to with
// ReadString and ReadUint. Override makes a function return a value without running. The rules come
// from the image, from a profile by name, or from the caller (Options: Profile, Rules, Preemption).
// The scheduler may switch after every instruction (EveryInstruction), or every so many (Slice).
//
// A handler may end the test, as t.Fatal does. The interrupted call does not continue, and the
// machine runs nothing more.
//
// It must not know what is tested: it has no functions of its own to probe,
// and no opinion on what a probe should see.
//
// The package is the same in every build. Without the build tag unicorn, machines run on the
// engine in Go.
package kprobestest
