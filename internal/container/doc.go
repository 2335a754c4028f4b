// Package container unpacks a kernel's ELF from a bzImage, a unified kernel image, an EFI zboot image, or a compressed
// file. Each may lie in another one.
//
// It must not read the ELF's content, nor open files.
package container
