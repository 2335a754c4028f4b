package kimage

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"kprobelab/errno"
	"kprobelab/profile"
)

// Fields of the profile that follow from other fields, or that a number in the image's data tells.

// onPreempt: a kernel that has both optimized probes and PREEMPTION optimizes with it. To 4.14 the
// two exclude each other in mainline; vendors and stable releases took the change over.
func (e *evidence) onPreempt(c *profile.Config) {
	exists, preempt := e.img.Fact("Optimize.Exists"), e.img.Fact("Preemption")
	if exists.Value != "true" || preempt.Value != "true" {
		return
	}
	f, _ := decidedFact("Optimize.OnPreempt", []Witness{
		{Value: "true", Evidence: exists.Evidence + ", with PREEMPTION", From: exists.From}, dated(c, "Optimize.OnPreempt"),
	})
	c.Optimize.OnPreempt = true
	e.img.facts = append(e.img.facts, f)
}

// timer takes HZ from the clock source that counts ticks, or the configuration.
func (e *evidence) timer(c *profile.Config) {
	var witnesses []Witness
	if hz, why, ok := e.ticks(); ok {
		witnesses = append(witnesses, Witness{Value: strconv.Itoa(hz), Evidence: why, From: Coded})
	}
	if hz, err := strconv.Atoi(e.config["CONFIG_HZ"]); err == nil && hz > 0 {
		witnesses = append(witnesses, Witness{Value: strconv.Itoa(hz), Evidence: "CONFIG_HZ in " + e.configFrom, From: Configured})
	}
	f, ok := decidedFact("HZ", witnesses)
	if !ok {
		return
	}
	c.HZ, _ = strconv.Atoi(f.Value)
	e.img.facts = append(e.img.facts, f)
}

// The clock source of ticks has the nanoseconds of a tick, shifted left by 8, after a mask of 32
// bits (kernel/time/jiffies.c).
const (
	nsecPerSec   = 1_000_000_000
	jiffiesShift = 8
	maxClock     = 64
)

// possibleHZ are the values that CONFIG_HZ can have on x86.
var possibleHZ = []int{100, 250, 300, 1000}

// ticks reads HZ from clocksource_jiffies.
func (e *evidence) ticks() (hz int, why string, ok bool) {
	const name = "clocksource_jiffies"
	at, found := e.img.symbolAddr(name)
	b := e.img.bytes(at, maxClock)
	if !found || b == nil {
		return 0, "", false
	}
	for off := 0; off+16 <= len(b); off += 4 {
		if le.Uint64(b[off:]) != 0xffffffff {
			continue
		}
		for _, hz := range possibleHZ {
			if mult := uint32(nsecPerSec / hz << jiffiesShift); le.Uint32(b[off+8:]) == mult && le.Uint32(b[off+12:]) == jiffiesShift {
				return hz, fmt.Sprintf("the multiplier of %s is %#x", name, mult), true
			}
		}
	}
	return 0, "", false
}

// lookUniqueFirst tells whether a function of its own counts the symbols of a name, before the
// place is checked, so that several give EINVAL; or whether they are counted at the end, where the
// errno of an ambiguous name is returned.
func lookUniqueFirst(e *evidence) (on bool, why string, ok bool) {
	for _, name := range []string{"validate_probe_symbol", "validate_module_probe_symbol"} {
		if s := e.img.partly(name); s != "" {
			return true, "symbol " + s, true
		}
	}
	for _, name := range []string{"__trace_kprobe_create", "trace_kprobe_create_internal", "trace_kprobe_create_cb", "trace_kprobe_create"} {
		for _, f := range []string{name, name + ".cold"} {
			if e.img.Moves(f, -int64(errno.EADDRNOTAVAIL)) {
				return false, f + " returns -EADDRNOTAVAIL", true
			}
		}
	}
	return false, "", false
}

// partly is the name of a function that a compiler may have renamed, "" if there is none.
func (img *Image) partly(name string) string {
	if _, ok := img.symbolAddr(name); ok {
		return name
	}
	for _, s := range img.Symbols() {
		if rest, ok := strings.CutPrefix(s.Name, name); ok && s.Module == "" && strings.HasPrefix(rest, ".") {
			return s.Name
		}
	}
	return ""
}

// nopTable finds the kernel's own no-operations of 1 to 8 bytes and more, one after the other in its
// data, and reads how many there are. The instruction of n bytes is n bytes long, and the next one follows.
func (img *Image) nopTable() (forms [][]byte, where string) {
	first := bytes.Join(nopl[1:9], nil)
	for _, s := range img.sections {
		if s.Exec || s.Module != "" {
			continue
		}
		i := bytes.Index(s.Data, first)
		if i < 0 {
			continue
		}
		forms = append([][]byte{}, nopl[:9]...)
		rest := s.Data[i+len(first):]
		for n := len(forms); len(rest) >= n && isLongNop(rest[:n]); n++ {
			forms = append(forms, bytes.Clone(rest[:n]))
			rest = rest[n:]
		}
		return forms, s.Name
	}
	return nil, ""
}
