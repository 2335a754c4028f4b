// Package process runs a program of Linux, and the processes that it makes, on a machine without a
// kernel: it loads an ELF file
// with its interpreter as execve does, and answers the system calls that a small program needs
// from a sandbox. Nothing of the host is reached: files are those that were given by name, what is
// written is kept up to a bound (files that it makes in /tmp, too), time is the machine's clock, random bytes come from a seed.
//
// It must not know probes: a Tracer is told of mappings and gets the traps first.
//
// Where it differs from a process of a kernel:
//   - Threads and processes take turns at traps and system calls; one that goes round without
//     either is not interrupted. Namespaces and traced children do not exist (ENOSYS).
//   - A run ends when all processes have ended, or when the first has and the others wait for ever.
//   - Signals are those that its processes send, and those of its own exceptions. Their frames
//     are those of a processor without XSAVE.
//   - The program runs in user mode, without descriptors: a load of a segment register, or a far jump or return, is
//     SIGSEGV whatever it loads.
//   - There is no vDSO, no ASLR, no socket and no terminal; a page past a file's end is zero, and a
//     mapping of a file that the program has made shows it as it was.
package process
