// Package vmcore reads and writes memory dumps of x86-64 machines: the ranges and
// content of physical memory, the registers of each CPU, the kernel's VMCOREINFO, and
// the translation of virtual addresses by the machine's own page tables.
//
// It must not know what runs in the machine: of symbols, tasks and modules, of
// probes and of emulation.
//
// A dump is an ELF core file as /proc/vmcore, QEMU's dump-guest-memory and virsh
// dump --memory-only write it, or a file of makedumpfile's (kdump-compressed), also in
// its flattened form; either plain or as one zstd or gzip stream.
package vmcore
