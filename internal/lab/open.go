package lab

import (
	"kprobelab/guestkernel"
	"kprobelab/kimage"
)

// GuestKernel is the name of the guest kernel that is built into the program.
const GuestKernel = "guest kernel"

// Open opens the image at path as kimage.Open does; an empty path or "-" is
// the embedded guest kernel.
func Open(path string, o *kimage.Options) (*kimage.Image, error) {
	if path == "" || path == "-" {
		return kimage.FromBytes(GuestKernel, guestkernel.ELF(), o)
	}
	return kimage.Open(path, o)
}
