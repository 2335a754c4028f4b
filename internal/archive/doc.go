// Package archive keeps kernels as small files: what report.Check asks of an
// image, answered beforehand and packed. A check of hundreds of kernels reads
// these files and needs no image.
//
// It must not know how a verdict is come to, nor what a probe is: package report
// answers, and this package keeps the answers.
//
// A file is
//
//	magic    8 bytes, "kpblpack"
//	version  uint32, little-endian as all numbers here
//	length   uint32, of the header
//	CRC-32C  uint32, of the header
//	header   JSON: which kernel this is, and the sections
//	sections one after another, each a zstd frame, as the header lists them
//
// The header has each section's packed and unpacked length and the CRC-32C of its
// packed bytes. A section is unpacked when it is needed:
//
//	kernel   JSON: the profile, the facts, the verdicts by number, the areas
//	names    the symbols' names, a zero after each
//	addrs    their addresses: the distance from the one before
//	sizes    0 where the symbol ends at the next one, else the size plus 1
//	kinds    nm's letters
//	marks    a byte for each symbol: how its code begins, whether it has an ftrace site
//	entries  a byte for each symbol in text: the number of the verdict at its entry
//	types    the kernel's BTF, without what no probe asks for
//	text.N   the verdicts of the N-th half megabyte of text
//
// A file with entries only has no types and no text.N.
//
// An area is the kernel, or a module that was loaded when the file was made. The
// texts of the areas, one after another, are cut into pieces of half a megabyte.
// A piece is a list of the addresses whose verdict is not number 0 ("not at an
// instruction boundary"): a byte each, with the distance from the one before in
// its lower and the verdict's number in its upper half, and more bytes where one
// does not fit.
package archive
