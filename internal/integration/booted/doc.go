// Package booted tests kprobelab boot on real kernels, under QEMU.
package booted
