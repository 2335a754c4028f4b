// Package conformance asks real kernels: it boots a kernel image under QEMU's
// software emulation, lets that kernel register probes, and compares what it
// said with what the project computes for the same image and processor.
//
// It must not know how any answer is computed: report computes the project's
// answers, and the program guest asks in the kernel.
package conformance

//go:generate go run ./program table -data ../../../docs/measured/conformance.jsonl -page ../../../docs/measured/conformance.md
