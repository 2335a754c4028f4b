// Package qemu boots a kernel image under QEMU's software emulation with an
// initramfs of our own making, and speaks with it: frames from its init arrive
// through QEMU's debug port, its memory is read through QEMU's monitor.
//
// It must not know what the init does, or what its frames mean. The package
// frame is their form, the package wire what init sends them with.
package qemu
