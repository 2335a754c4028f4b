package probepoint

import (
	"strconv"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Request is the requested place of a probe: a symbol or an address, not both, and an offset in
// bytes that is added to either.
type Request struct {
	// Symbol is a kallsyms name, or "module:name"; empty means not given.
	Symbol string
	// Addr is an address; 0 means not given.
	Addr x86.Addr
	// Offset in bytes from the symbol or the address.
	Offset uint32
}

// String names the request as "symbol+0xoffset" or by its address.
func (r Request) String() string {
	if r.Symbol != "" {
		return withOffset(r.Symbol, uint64(r.Offset))
	}
	return withOffset(r.Addr.String(), uint64(r.Offset))
}

// Point is a resolved request.
type Point struct {
	// Addr is the address of the breakpoint.
	Addr x86.Addr
	// Symbol covers the address. If no symbol does, its Name is empty; kernels before 5.18 still
	// accept the address then.
	Symbol kimage.Symbol
	// Offset of the address in the symbol, in bytes.
	Offset uint64
	// Entry is true at a function's entry, which return probes require (KPROBE_FLAG_ON_FUNC_ENTRY).
	Entry bool
	// Ftrace is set by Check where the probe would run from the function
	// tracer: KPROBE_FLAG_FTRACE.
	Ftrace bool
}

// String names the point as "symbol+0xoffset" or by its address.
func (p *Point) String() string {
	if p.Symbol.Name == "" {
		return p.Addr.String()
	}
	return withOffset(p.Symbol.Name, p.Offset)
}

func withOffset(name string, off uint64) string {
	if off == 0 {
		return name
	}
	return name + "+0x" + strconv.FormatUint(off, 16)
}

// Names is the part of a View that Resolve reads.
type Names interface {
	Lookup(name string) []kimage.Symbol
	SymbolAt(addr x86.Addr) (kimage.Symbol, bool)
	// CodeAt reads code; Resolve reads the first four bytes of a symbol only.
	CodeAt(addr x86.Addr, b []byte) int
}

// Resolve finds the address of a request as register_kprobe does (docs/spec 1.2).
// A name with several addresses resolves to the first, as in kallsyms.
// Errors are *Refusal: EINVAL where the request names no or two places, or
// its function cannot be read, ENOENT where nothing is there.
func Resolve(v Names, r Request, c *profile.Config) (Point, error) {
	if !c.Built.Kprobes {
		return Point{}, noKprobes(r, c)
	}
	base, err := lookup(v, r, c)
	if err != nil {
		return Point{}, err
	}
	addr := base.Add(int64(r.Offset))
	if addr == 0 {
		return Point{}, Refuse(rule.NoPlace, 0, r.String())
	}
	sym, ok := v.SymbolAt(addr)
	if !ok {
		if c.Resolve.NeedsSymbol {
			return Point{}, Refuse(rule.NoSymbol, addr, r.String())
		}
		if no := -addr; no < maxErrno && c.Resolve.SymbolNames {
			// The kernel takes such an address for an error (IS_ERR).
			return Point{}, RefuseAs(errno.Errno(no), rule.NoSymbol, addr, r.String())
		}
		return Point{Addr: addr}, nil
	}
	return atEntry(v, Point{Addr: addr, Symbol: sym, Offset: uint64(addr.Sub(sym.Addr))}, c)
}

// noKprobes returns the refusal by a module's register_kprobe in a kernel that is built without kprobes.
func noKprobes(r Request, c *profile.Config) *Refusal {
	no := errno.ENOSYS
	if c.Built.StubEOPNOTSUPP {
		no = errno.EOPNOTSUPP
	}
	return RefuseAs(no, rule.NoKprobes, r.Addr, r.String())
}

// maxErrno is above every error number (MAX_ERRNO is 4095).
const maxErrno = 4096

// lookup returns the address to which the offset is added.
func lookup(v Names, r Request, c *profile.Config) (x86.Addr, error) {
	switch {
	case r.Symbol != "" && r.Addr != 0:
		return 0, Refuse(rule.TwoPlaces, r.Addr, r.String())
	case r.Symbol == "" && r.Addr == 0:
		return 0, Refuse(rule.NoPlace, 0, r.String())
	case r.Symbol == "":
		return r.Addr, nil
	case !c.Resolve.SymbolNames:
		return 0, refuseName(v, r)
	}
	found := v.Lookup(r.Symbol)
	switch {
	case len(found) == 0 && c.Resolve.UnknownEINVAL:
		return 0, RefuseAs(errno.EINVAL, rule.UnknownSymbol, 0, r.String())
	case len(found) == 0:
		return 0, Refuse(rule.UnknownSymbol, 0, r.String())
	}
	return found[0].Addr, nil
}

// refuseName refuses a name where the kernel takes addresses only, and says
// which to give: a module of that time looked it up itself.
func refuseName(v Names, r Request) *Refusal {
	refusal := Refuse(rule.SymbolNames, 0, r.String())
	if found := v.Lookup(r.Symbol); len(found) > 0 {
		refusal.Addr = found[0].Addr.Add(int64(r.Offset))
		refusal.Why += "; it is at " + refusal.Addr.String()
	}
	return refusal
}

// endbrSize is the length of every form of ENDBR in bytes.
const endbrSize = 4

// atEntry applies the entry rule (arch_adjust_kprobe_addr, 5.18): with an
// ENDBR both offset 0 and 4 mean the entry, and the probe is placed at 4.
func atEntry(v Names, p Point, c *profile.Config) (Point, error) {
	p.Entry = p.Offset == 0
	if !c.Resolve.SkipENDBR {
		return p, nil
	}
	var first [endbrSize]byte
	if v.CodeAt(p.Symbol.Addr, first[:]) < endbrSize {
		return p, Refuse(rule.Unreadable, p.Addr, p.String())
	}
	if isENDBR(first, c) && (p.Offset == 0 || p.Offset == endbrSize) {
		p.Entry = true
		p.Offset = endbrSize
		p.Addr = p.Symbol.Addr.Add(endbrSize)
	}
	return p, nil
}

// isENDBR knows ENDBR64, ENDBR32, and the nop that the kernel writes over an
// ENDBR that no indirect branch needs (docs/spec 1.2, step 5).
func isENDBR(b [endbrSize]byte, c *profile.Config) bool {
	switch b {
	case [endbrSize]byte{0xf3, 0x0f, 0x1e, 0xfa},
		[endbrSize]byte{0xf3, 0x0f, 0x1e, 0xfb}:
		return true
	case [endbrSize]byte{0x66, 0x0f, 0x1f, 0x00}:
		return !c.Resolve.NoplPoison
	case [endbrSize]byte{0x0f, 0x1f, 0x40, 0xd6}:
		return c.Resolve.NoplPoison
	}
	return false
}
