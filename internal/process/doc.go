// Package process runs a Linux program, and the processes that it starts, on a machine without a
// kernel. It loads an ELF file and its interpreter as execve does, and answers the system calls
// that a small program needs from a sandbox. The program reaches nothing of the host: it sees the
// files that the caller passed by name, its output and the files that it makes in /tmp are kept in
// memory up to a bound, time is the machine's clock, and random bytes come from a seed.
//
// The package must not know probes: a Tracer receives the mappings, and the traps first.
//
// Differences from a process of a kernel:
//   - Threads and processes take turns at traps and system calls. A loop without either is not
//     interrupted. Namespaces and traced children do not exist (ENOSYS).
//   - A run ends when all processes have ended, or when the first has ended and the others would
//     wait for ever.
//   - Signals come only from its own processes and its own exceptions. A signal frame is that of a
//     processor without XSAVE.
//   - The program runs in user mode, without descriptor tables: loading a segment register, a far
//     jump and a far return are SIGSEGV, whatever the selector.
//   - There is no vDSO, no ASLR, no socket and no terminal. A page past a file's end is zero. A
//     mapping of a file that the program has made keeps the file's content at mmap.
package process
