// Package kprobelab is the front door: it opens a kernel image and gives a
// machine that runs the image's functions, with the kprobes subsystem and the
// tracing files on it. It needs no root, no kernel and no module.
//
//	lab, err := kprobelab.Open("/boot/vmlinuz-6.1.0-56-cloud-amd64", nil)
//	if err != nil {
//		return err
//	}
//	defer lab.Close()
//	probe, err := lab.Kprobe("kfree+0x13", func(p *kprobes.Kprobe, regs *x86.PtRegs) int {
//		fmt.Printf("kfree(%#x)\n", regs.DI)
//		return 0
//	}, nil)
//
// An empty path opens the guest kernel, a small kernel of this project's own
// that is part of the program. What a Lab does repeats to the byte: time is
// virtual, and Options.Seed decides every choice of the scheduler.
//
// The parts are packages of their own, for whoever needs more of one:
//
//   - kimage opens images: symbols, sections, tables, the text as boot leaves it.
//   - kprobes is the subsystem: probes, return probes, aggregates, the optimizer's lists.
//   - machine is the guest: memory, CPUs, tasks, the virtual clock; emu and interp
//     execute its code.
//   - tracing has kprobe events and the files of tracefs.
//   - optimizer says whether a probe can become a jump, and why not.
//   - decoder reads instructions, as the processor and as the kernel's decoder.
//   - profile says how each kernel behaves.
//   - boot boots a kernel under QEMU, and saves the memory that a Lab opens.
//   - script runs scripts of SystemTap and of bpftrace.
//   - kprobestest is for a go test: the same machine, and a leak check.
//
// It must not know how any of these work: it puts them together. Guest code runs on
// Unicorn in a build with cgo on linux/amd64, and on the engine in Go elsewhere
// (Options.Engine).
package kprobelab
