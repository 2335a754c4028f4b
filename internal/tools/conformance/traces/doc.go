// Package traces compares two files trace of the same program on the same booted kernel: one
// that the kernel wrote itself, under QEMU, and one of kprobelab run (make
// conformance-trace).
//
//	traces OURS KERNELS
//
// Lines are compared but for CPU and time. Where two differ, rules may say why that is
// no fault: each is a sentence, and the lines that need it are counted. What no rule
// covers is printed, and the exit code is 1.
package traces
