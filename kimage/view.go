package kimage

import (
	"strings"

	"kprobelab/decoder"
	"kprobelab/x86"
)

// View gives code to every analysis: the bytes at an address, the symbol that
// covers it, and the entries of the kernel's tables about it.
//
// An Image is a View of its own text. The kprobes subsystem supplies one over
// live memory that gives back what stood under its int3s and jumps (docs/spec
// 1.5.1). Nothing else reads patched text, so bytes from a View are always
// the original ones.
//
// All methods are safe for concurrent use as long as nobody patches text.
type View interface {
	// CodeAt copies the original bytes from addr on into b and returns how
	// many: fewer than len(b) where mapped memory ends, 0 where addr is not
	// mapped.
	CodeAt(addr x86.Addr, b []byte) int

	// SymbolAt is kallsyms' answer for an address: the symbol that covers it.
	SymbolAt(addr x86.Addr) (Symbol, bool)
	// Lookup is kallsyms' answer for a name: every symbol with it, in the
	// table's order; "module:name" asks in one module.
	Lookup(name string) []Symbol

	// InText reports whether the address is core kernel text (_stext to
	// _etext, and init text while it exists) or in a module's text.
	InText(addr x86.Addr) bool
	// InEntryText reports whether it lies in the entry text section, or in text that
	// the kernel treats like it.
	InEntryText(addr x86.Addr) bool
	// InInit reports whether it lies in init text (freed after boot), and of
	// which module ("" for the kernel image).
	InInit(addr x86.Addr) (module string, ok bool)

	// Blacklisted returns the element of the kprobes blacklist that holds
	// the address (docs/spec 1.9).
	Blacklisted(addr x86.Addr) (x86.Range, bool)
	// ExceptionEntry returns the fixup address of the exception-table entry
	// for an instruction at exactly addr.
	ExceptionEntry(addr x86.Addr) (fixup x86.Addr, ok bool)
	// BugEntry reports whether addr is the ud2 of a BUG or WARN.
	BugEntry(addr x86.Addr) bool
	// CFITrap reports whether addr is the ud2 of a check of an indirect call (kCFI).
	CFITrap(addr x86.Addr) bool
	// SiteAt returns the patch site of that kind that covers addr.
	SiteAt(kind SiteKind, addr x86.Addr) (Site, bool)
	// SiteIn returns the first patch site of that kind that overlaps r.
	SiteIn(kind SiteKind, r x86.Range) (Site, bool)
	// IndirectThunks is the section of retpoline thunks, start to end.
	IndirectThunks() x86.Range

	// Reader reads the instructions of the code (Walker): their lengths,
	// branches and targets.
	Reader() decoder.Reader
	// Processor returns the processor for which the text was made.
	Processor() Processor
}

// Processor decodes the instruction at the start of b as a processor executes it. The
// error is a decoder.ErrUnknown if it has no such instruction, also if it lacks an
// extension. decoder.Processor has all extensions.
type Processor interface {
	Decode(b []byte) (decoder.Inst, error)
}

// ReadBy is a View whose instructions another Reader reads.
func ReadBy(v View, r decoder.Reader) View { return readBy{v, r} }

type readBy struct {
	View
	r decoder.Reader
}

// Reader is the other Reader.
func (v readBy) Reader() decoder.Reader { return v.r }

// Symbol is one line of kallsyms.
type Symbol struct {
	Name string
	Addr x86.Addr
	// Size is the distance to the next symbol with a higher address, as
	// kallsyms computes it, in bytes.
	Size uint64
	// Type is nm's letter: T, t, D, …
	Type byte
	// Module is the owning module's name, "" for the kernel image.
	Module string
}

// IsFunction reports whether nm's letter is one of code.
func (s *Symbol) IsFunction() bool { return strings.IndexByte("tTwW", s.Type) >= 0 }

// SiteKind is a kind of place in text that the kernel itself patches.
type SiteKind int

// The kinds of patch site.
const (
	// SiteFtrace is a function's 5-byte fentry site.
	SiteFtrace SiteKind = iota
	// SiteJumpLabel is a static branch of 2 or 5 bytes.
	SiteJumpLabel
	// SiteStaticCall is an inline static call or tail call of 5 bytes.
	SiteStaticCall
	// SiteSMPLock is a lock prefix that SMP alternatives may patch.
	SiteSMPLock
	// SiteAlternative is text replaced for the CPU at boot.
	SiteAlternative
	// SiteParavirt is a paravirt call site (to 6.6).
	SiteParavirt
	// SiteReturn is a return that boot rewrites (return thunks).
	SiteReturn
	// SiteRetpoline is an indirect branch that boot rewrites.
	SiteRetpoline
	// NumSiteKinds is the number of kinds.
	NumSiteKinds
)

// Site is one patch site.
type Site struct {
	Addr x86.Addr
	// Len is its length in bytes.
	Len int
}

// Segment is a piece of the image as a machine maps it.
type Segment struct {
	Name string
	Addr x86.Addr
	// Data begins the piece; the rest, up to Size, is zero.
	Data []byte
	// Size in bytes, at least len(Data).
	Size uint64
	// Write and Exec are the page protections beside read.
	Write, Exec bool
}

// PerCPU is the template of the per-CPU area.
type PerCPU struct {
	// Start is the link-time address of its first byte, as symbols of
	// per-CPU variables count (0 in SMP kernels to 6.14).
	Start x86.Addr
	// Data is the template's content.
	Data []byte
	// Size in bytes, at least len(Data).
	Size uint64
}
