// Package kernels fetches kernels, their debugging symbols and modules, QEMU and other programs from Debian's archive, takes packages
// of any vendor, and keeps them in the user's cache folder. It needs no root, no apt and no dpkg: indexes are checked by
// their signatures, packages by the indexes, and are unpacked in the process.
//
//	s, err := kernels.Open(&kernels.Options{})
//	...
//	k, err := s.Fetch(ctx, "6.12")
//	...
//	qemu, err := s.QEMU(ctx)
//
// It must not know the use of a kernel.
package kernels
