// Package guestkernel is a small kernel of our own to run and probe: real
// x86-64 kernel code, built from the sources in src/ and embedded as a file,
// for whoever has no kernel image at hand, and for tests that need a function
// of a certain shape.
//
// It must not know who loads or runs it: it hands out bytes. README.md in its
// folder lists the functions by what they are for.
package guestkernel

import (
	_ "embed"
	"strings"
)

//go:embed testdata/guest.elf
var elf []byte

//go:embed testdata/demo.ko
var module []byte

//go:embed testdata/compiler.txt
var compiler string

// ELF returns the guest kernel: an executable ELF64 image with the sections
// and symbols of a vmlinux of Linux 6.1, text at 0xffffffff81000000. Callers
// must not change the bytes.
func ELF() []byte { return elf }

// Module returns the module demo: a relocatable ELF64 object with a .modinfo
// section, as insmod takes it. Callers must not change the bytes.
func Module() []byte { return module }

// Compiler names the compiler that built both, as `gcc --version` prints it
// on its first line. Another version may make other bytes of the same sources.
func Compiler() string { return strings.TrimSpace(compiler) }
