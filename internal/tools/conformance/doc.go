// Package conformance asks real kernels: it boots a kernel image under QEMU's
// software emulation, lets that kernel register probes, and compares what it
// said with what the project computes for the same image and processor.
//
// It must not know how any answer is computed: it calls report for the
// project's answers, and the package guest is what runs in the kernel.
package conformance
