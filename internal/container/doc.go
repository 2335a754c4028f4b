// Package container takes a kernel's ELF out of what it is shipped in: a bzImage, a unified kernel image, an EFI zboot
// image, and the formats of compression; each may be in another one.
//
// It must not know what the ELF says, nor files.
package container
