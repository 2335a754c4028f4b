// Package qemu boots a kernel image under QEMU's software emulation with an
// initramfs of our own making, and speaks with it: frames from its init arrive
// through QEMU's debug port, its memory is read through QEMU's monitor.
//
// It must not know init's actions, nor what its frames mean. Package frame defines the form of a
// frame, package wire is init's sender.
package qemu
