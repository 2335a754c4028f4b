package infer

import (
	"fmt"
	"strconv"

	"kprobelab/errno"
	"kprobelab/kimage/evidence"
	"kprobelab/kimage/internal/opened"
	"kprobelab/profile"
)

// Fields of the profile that follow from other fields, or that a number in the image's data tells.

// onPreempt: a kernel that has both optimized probes and PREEMPTION optimizes with it. To 4.14 the
// two exclude each other in mainline; vendors and stable releases took the change over.
func (e *Evidence) onPreempt(c *profile.Config) {
	exists, preempt := e.facts.Find("Optimize.Exists"), e.facts.Find("Preemption")
	if exists.Value != "true" || preempt.Value != "true" {
		return
	}
	f, _ := evidence.Decided("Optimize.OnPreempt", []evidence.Witness{
		{Value: "true", Evidence: exists.Evidence + ", with PREEMPTION", From: exists.From}, evidence.ByRelease(c, "Optimize.OnPreempt"),
	})
	c.Optimize.OnPreempt = true
	e.facts.Add(f)
}

// timer takes HZ from the clock source that counts ticks, or the configuration.
func (e *Evidence) timer(c *profile.Config) {
	var witnesses []evidence.Witness
	if hz, why, ok := e.ticks(); ok {
		witnesses = append(witnesses, evidence.Witness{Value: strconv.Itoa(hz), Evidence: why, From: evidence.Coded})
	}
	if hz, err := strconv.Atoi(e.Config.Options["CONFIG_HZ"]); err == nil && hz > 0 {
		witnesses = append(witnesses, evidence.Witness{Value: strconv.Itoa(hz), Evidence: "CONFIG_HZ in " + e.Config.From, From: evidence.Configured})
	}
	f, ok := evidence.Decided("HZ", witnesses)
	if !ok {
		return
	}
	c.HZ, _ = strconv.Atoi(f.Value)
	e.facts.Add(f)
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
func (e *Evidence) ticks() (hz int, why string, ok bool) {
	const name = "clocksource_jiffies"
	at, found := e.img.SymbolAddr(name)
	b := e.img.Bytes(at, maxClock)
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
func lookUniqueFirst(e *Evidence) (on bool, why string, ok bool) {
	for _, name := range []string{"validate_probe_symbol", "validate_module_probe_symbol"} {
		if s := e.img.Partly(name); s != "" {
			return true, "symbol " + s, true
		}
	}
	for _, name := range []string{"__trace_kprobe_create", "trace_kprobe_create_internal", "trace_kprobe_create_cb", "trace_kprobe_create"} {
		for _, f := range []string{name, name + ".cold"} {
			if opened.Moves(e.img, f, -int64(errno.EADDRNOTAVAIL)) {
				return false, f + " returns -EADDRNOTAVAIL", true
			}
		}
	}
	return false, "", false
}
