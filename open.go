package kprobelab

import (
	_ "embed"
	"strings"

	"kprobelab/kimage"
)

// GuestKernel is the name of the image of the guest kernel.
const GuestKernel = "guest kernel"

var (
	//go:embed testdata/guest.elf
	guestELF []byte
	//go:embed testdata/demo.ko
	guestModule []byte
	//go:embed testdata/compiler.txt
	guestCompiler string
)

// GuestELF is the guest kernel: an executable ELF64 image with the sections and
// symbols of a vmlinux of Linux 6.1, text at 0xffffffff81000000. testdata/README.md
// lists its functions by what they are for. Callers must not change the bytes.
func GuestELF() []byte { return guestELF }

// GuestModule is the guest kernel's module demo: a relocatable ELF64 object with
// a .modinfo section, as insmod takes it. Callers must not change the bytes.
func GuestModule() []byte { return guestModule }

// GuestCompiler names the compiler that built both, as `gcc --version` prints it
// on its first line. Another version may make other bytes of the same sources.
func GuestCompiler() string { return strings.TrimSpace(guestCompiler) }

// OpenImage opens the image at path as kimage.Open does; an empty path or "-" is
// the guest kernel. The image's own functions are
// asked about its behaviour (kimage.Options.Measure), and their answers kept in
// the user's cache folder; $KPROBELAB_CACHE names another, or is "off".
func OpenImage(path string, o *kimage.Options) (*kimage.Image, error) {
	if path == "" || path == "-" {
		return ImageOf(GuestKernel, GuestELF(), o)
	}
	return kimage.Open(path, asked(o))
}

// ImageOf is OpenImage for the bytes of an image.
func ImageOf(name string, b []byte, o *kimage.Options) (*kimage.Image, error) {
	return kimage.FromBytes(name, b, asked(o))
}

// asked are the options with which an image's own functions are asked.
func asked(o *kimage.Options) *kimage.Options {
	with := kimage.Options{}
	if o != nil {
		with = *o
	}
	if with.Measure == nil {
		with.Measure = measure
	}
	return &with
}
