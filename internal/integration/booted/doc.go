// Package booted tests what kprobelab boot does with real kernels, under QEMU.
package booted
