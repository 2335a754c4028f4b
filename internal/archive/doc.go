// Package archive keeps kernels as small files: the answers that report.Check needs
// from an image are computed in advance and packed. A check of hundreds of kernels
// reads these files and needs no image.
//
// It must not know how a verdict is found, nor what a probe is: package report answers,
// and this package keeps the answers.
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
//	kernel   JSON: the profile, the facts, the verdicts by number, the lists of what BPF programs may be where
//	areas    JSON: where the text of the kernel and of each loaded module lies, tracepoints
//	names    the symbols' names, a zero after each
//	addrs    their addresses: the distance from the one before
//	sizes    0 where the symbol ends at the next one, else the size plus 1
//	kinds    nm's letters
//	marks    a byte for each symbol: how its code begins, whether it has an ftrace site, and whether errors may be injected
//	entries  a byte for each symbol in text: the number of the verdict at its entry
//	hazards  JSON: the accepted points at which a probe does harm, and what happens there
//	types.*  the columns of package ctypes: functions with their numbers in BTF, types
//	text.N   the verdicts of the N-th half megabyte of text
//	inlined  with DWARF: functions, and the functions that contain their code
//
// The sections from areas to text.N are there again, with "package." before the name,
// for the modules of the kernel's package that are not loaded. A file with entries only
// has no text.N, the hazards of entries, and of the types only the functions' numbers. A
// file without the section hazards is an older one: it is not known what goes wrong.
//
// A file of version 3 is a difference from another one of its folder, which the header
// names. A section with from_crc32c in the header is unpacked with that file's section as the
// dictionary (for a piece of text: that piece and its neighbours); the number is the
// CRC-32C of the dictionary. The other sections stand alone.
//
// An area is the kernel or a module. The texts of the areas, by ascending address, are
// cut into pieces of half a megabyte. A piece is a list of the addresses whose verdict is
// not number 0 ("not at an instruction boundary"): a byte each, with the distance from the
// one before in its lower and the verdict's number in its upper half, and more bytes where
// one does not fit.
package archive
