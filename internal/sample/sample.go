// Package sample writes the lines that the kernel's own sample modules
// (samples/kprobes) print, in the form that each release gives them (docs/spec 13),
// so that a reader recognizes them.
//
// It must not know the origin of a hit: it gets the values and returns a line.
package sample

import (
	"fmt"
	"strings"

	"kprobelab/profile"
	"kprobelab/x86"
)

// Lines writes the lines of one release's modules.
type Lines struct{ Style profile.SampleStyle }

// Planted is the kprobe module's line when it is loaded.
func (l Lines) Planted(at x86.Addr) string {
	return l.fn("kprobe_init") + fmt.Sprintf("Planted kprobe at %s", pointer(at))
}

// Failed is its line when register_kprobe has failed; ret is the negative errno.
func (l Lines) Failed(ret int) string {
	return l.fn("kprobe_init") + fmt.Sprintf("register_kprobe failed, returned %d", ret)
}

// Unregistered is its line when it is unloaded.
func (l Lines) Unregistered(at x86.Addr) string {
	return l.fn("kprobe_exit") + fmt.Sprintf("kprobe at %s unregistered", pointer(at))
}

// Pre is the pre handler's line; ip and flags are the frame's.
func (l Lines) Pre(symbol string, at x86.Addr, regs *x86.PtRegs) string {
	return l.handler("pre", symbol) +
		fmt.Sprintf("p->addr = 0x%s, ip = %x, flags = 0x%x", pointer(at), regs.IP, regs.Flags)
}

// Post is the post handler's line.
func (l Lines) Post(symbol string, at x86.Addr, regs *x86.PtRegs) string {
	return l.handler("post", symbol) + fmt.Sprintf("p->addr = 0x%s, flags = 0x%x", pointer(at), regs.Flags)
}

// Fault is the fault handler's line, in the releases that have one; trap is
// the exception's vector.
func (l Lines) Fault(at x86.Addr, trap int) string {
	return fmt.Sprintf("fault_handler: p->addr = 0x%s, trap #%d", pointer(at), trap)
}

// handler returns the beginning of a handler's line.
func (l Lines) handler(which, symbol string) string {
	switch l.Style {
	case profile.SampleFunc:
		return fmt.Sprintf("handler_%s: <%s> ", which, symbol)
	case profile.SampleSymbol:
		return fmt.Sprintf("<%s> %s_handler: ", symbol, which)
	default:
		return which + "_handler: "
	}
}

// fn is the prefix with the function's name that pr_fmt gives the kprobe
// sample from 5.15 on; the kretprobe sample has none in any release.
func (l Lines) fn(name string) string {
	if l.Style != profile.SampleFunc {
		return ""
	}
	return name + ": "
}

// PlantedReturn is the kretprobe module's line when it is loaded.
func (l Lines) PlantedReturn(symbol string, at x86.Addr) string {
	return fmt.Sprintf("Planted return probe at %s: %s", symbol, pointer(at))
}

// FailedReturn is its line when register_kretprobe has failed; ret is the
// negative errno.
func (l Lines) FailedReturn(ret int) string {
	return fmt.Sprintf("register_kretprobe failed, returned %d", ret)
}

// Returned is the return handler's line; ns is the virtual time since entry.
func (l Lines) Returned(symbol string, value uint64, ns int64) string {
	return fmt.Sprintf("%s returned %d and took %d ns to execute", symbol, value, ns)
}

// ReturnedOnly is the same without a time, for the releases in which nothing
// runs on entry that could take it (to 2.6.24).
func (l Lines) ReturnedOnly(symbol string, value uint64) string {
	return fmt.Sprintf("%s returned %d", symbol, value)
}

// UnregisteredReturn is its line when it is unloaded.
func (l Lines) UnregisteredReturn(at x86.Addr) string {
	return fmt.Sprintf("kretprobe at %s unregistered", pointer(at))
}

// Missed is its last line: how often no instance was free.
func (l Lines) Missed(n int, symbol string) string {
	return fmt.Sprintf("Missed probing %d instances of %s", n, symbol)
}

// PlantedJprobe is the jprobe module's line when it is loaded; handler is the
// guest function that runs with the probed one's arguments.
func (l Lines) PlantedJprobe(at, handler x86.Addr) string {
	return fmt.Sprintf("Planted jprobe at %s, handler addr %s", pointer(at), pointer(handler))
}

// FailedJprobe is its line when register_jprobe has failed; ret is the
// negative errno.
func (l Lines) FailedJprobe(ret int) string {
	return fmt.Sprintf("register_jprobe failed, returned %d", ret)
}

// UnregisteredJprobe is its line when it is unloaded.
func (l Lines) UnregisteredJprobe(at x86.Addr) string {
	return fmt.Sprintf("jprobe at %s unregistered", pointer(at))
}

// pointer is an address as %px prints it: 16 digits.
func pointer(a x86.Addr) string {
	s := strings.TrimPrefix(a.String(), "0x")
	return strings.Repeat("0", 16-len(s)) + s
}
