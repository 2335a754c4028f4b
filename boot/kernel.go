package boot

import (
	"errors"
	"fmt"
	"strings"

	"kprobelab/internal/mailbox"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// Kernel is a kernel image that can be booted.
type Kernel struct {
	// Name is the file's, Release the kernel's, as uname -r prints it.
	Name, Release string
	// BzImage has the bytes that QEMU boots.
	BzImage []byte
	// StopPoint is the function at which the booted kernel is stopped, gate the first of gateSymbols that the kernel
	// has, as they are linked.
	StopPoint, gate x86.Addr
	// text is the kernel's range, as it is linked.
	text x86.Range
}

// ErrKernel is an image without a feature that booting needs.
var ErrKernel = errors.New("this kernel cannot be booted here")

// ErrNoSymbols is an image whose symbols are not known.
var ErrNoSymbols = errors.New("no symbols")

// gateSymbols are the names of the first exception's entry, the newest first. Its address in the
// IDT gives the address to which KASLR has moved the kernel.
var gateSymbols = []string{"asm_exc_divide_error", "divide_error"}

// Open reads a vmlinuz or a unified kernel image. The error is kimage's, ErrNoSymbols or ErrKernel.
func Open(path string, o *kimage.Options) (*Kernel, error) {
	k := &Kernel{Name: path, Release: "of unknown release"}
	var err error
	if k.BzImage, err = kimage.ReadBootable(path); err != nil {
		return nil, err
	}
	img, err := kimage.Open(path, o)
	if err != nil {
		return nil, err
	}
	if words := strings.Fields(img.Banner()); len(words) > 2 {
		k.Release = words[2]
	}
	if len(img.Symbols()) == 0 {
		return nil, ErrNoSymbols
	}
	stop := img.SystemCallFunction(mailbox.StopCall)
	if k.StopPoint = first(img, stop); k.StopPoint == 0 {
		return nil, fmt.Errorf("%w: it has no %s, where a booted kernel is stopped", ErrKernel, stop)
	}
	k.gate = first(img, gateSymbols...)
	if from, to := first(img, "_text"), first(img, "_end"); from != 0 && to != 0 {
		k.text = x86.Range{Start: from, End: to}
	}
	return k, nil
}

// first is the address of the first of the symbols that the image has, 0 without any.
func first(img *kimage.Image, names ...string) x86.Addr {
	for _, name := range names {
		if s := img.Lookup(name); len(s) > 0 {
			return s[0].Addr
		}
	}
	return 0
}
