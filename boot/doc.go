// Package boot boots a kernel image under QEMU's emulation, without root and without KVM, with an init of its own
// (testdata/init), up to the stop point. There its memory can be saved, for a Lab, and init loads modules and runs programs.
//
//	k, err := boot.Open("/boot/vmlinuz-6.1.0-56-cloud-amd64", nil)
//	...
//	o := &boot.Options{QEMU: "/usr/bin/qemu-system-x86_64", Kernel: k, CPU: kimage.DefaultCPU, CPUs: 1, Megabytes: 128, Limit: time.Minute}
//	err = boot.Boot(ctx, o, func(g *boot.Guest) error {
//		_, err := g.Save(&boot.Dump{File: "kernel.core", Format: boot.Zstd})
//		return err
//	})
//
// It must not know the use of a dump.
package boot
