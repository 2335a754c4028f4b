package vmcore

import (
	"bytes"
	"strconv"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// Info is the kernel's VMCOREINFO, its notes for programs that read a dump
// (Documentation/admin-guide/kdump/vmcoreinfo.rst), such as "SYMBOL(init_uts_ns)" or "OSRELEASE".
type Info map[string]string

// Symbol returns the address of a symbol; 0 if the note does not have the name.
func (i Info) Symbol(name string) x86.Addr { return x86.Addr(i.number("SYMBOL("+name+")", 16)) }

// Number is a number, which the kernel writes in base 10.
func (i Info) Number(name string) (int64, bool) {
	v, err := strconv.ParseInt(i["NUMBER("+name+")"], 10, 64)
	return v, err == nil
}

// KernelOffset returns the distance in bytes by which KASLR moved the kernel's text.
func (i Info) KernelOffset() uint64 { return i.number("KERNELOFFSET", 16) }

func (i Info) number(key string, base int) uint64 {
	v, _ := strconv.ParseUint(i[key], base, 64)
	return v
}

func parseInfo(b []byte) Info {
	info := Info{}
	for line := range strings.Lines(string(bytes.TrimRight(b, "\x00"))) {
		if key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok {
			info[key] = value
		}
	}
	return info
}

// VMCoreInfo returns the kernel's VMCOREINFO, from the dump's note, or else from the
// machine's memory, where a kernel that can crash into another one keeps that note
// ready; nil if neither has it. The first call may read all of memory.
func (c *Core) VMCoreInfo() Info {
	b := c.RawVMCoreInfo()
	if b == nil {
		return nil
	}
	return parseInfo(b)
}

// RawVMCoreInfo is the text of VMCoreInfo.
func (c *Core) RawVMCoreInfo() []byte {
	c.searched.Do(func() {
		if c.note == nil {
			c.note = c.findInfo()
		}
	})
	return c.note
}

// infoName begins the page with the kernel's vmcoreinfo_note (kernel/vmcore_info.c):
// the sizes of its name, the type and the name stand around the text's size.
var infoName = []byte("VMCOREINFO\x00")

// findInfo looks at the start of every page.
func (c *Core) findInfo() []byte {
	var head [24]byte
	for _, r := range c.ram {
		for phys := r.Phys; phys < r.End(); phys += PageSize {
			if c.ReadPhys(phys, head[:]) != nil || le.Uint32(head[:]) != uint32(len(infoName)) || !bytes.HasPrefix(head[12:], infoName) {
				continue
			}
			b := make([]byte, min(le.Uint32(head[4:]), bounded.DumpInfo))
			if c.ReadPhys(phys+24, b) == nil && bytes.HasPrefix(b, []byte("OSRELEASE=")) {
				return b
			}
		}
	}
	return nil
}
