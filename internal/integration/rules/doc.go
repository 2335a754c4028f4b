// Package rules tests the rules of the kprobes subsystem on the real machine,
// with the guest kernel, in the releases that have them: jprobes, the kernel's
// own unit tests, modules, and many tasks on two CPUs. What needs no machine is
// tested beside the code, in kprobes and probepoint.
//
// It exports nothing and must not be imported.
package rules
