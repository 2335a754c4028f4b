package boottext

import (
	"kprobelab/kimage"
	"kprobelab/x86"
)

// Clocks is the state of a running machine's clocks by its own memory.
type Clocks struct {
	// Keys holds the enable counts of the clocks' static keys, by the key's name.
	Keys map[string]int32
	// Source is the name of the clocksource. Unstable: the kernel has found the time-stamp counter so.
	Source   string
	Unstable bool
	// Resolution is hrtimer_resolution, in nanoseconds: 1 once a processor has switched to high resolution.
	Resolution uint32
}

// timeStampCounter is the clocksource of a machine whose time-stamp counter could be calibrated and is stable.
const timeStampCounter = "tsc"

// highResolution is hrtimer_resolution on a machine with timers of high resolution.
const highResolution = 1

// ClockKeys are the static keys that clocks decide, by name.
func ClockKeys(img *kimage.Image) map[string]x86.Addr {
	keys := map[string]x86.Addr{}
	for _, l := range img.JumpLabels() {
		key, named := img.SymbolAt(l.Key)
		if cause := causeOfKey(key.Name); named && (cause == causeClock || cause == causeTimers) {
			keys[key.Name] = l.Key
		}
	}
	return keys
}

// jmp8 is the opcode of jmp rel8.
const jmp8 = 0xeb

// shown reports whether the machine itself shows a cause: its own key has the value that the site's bytes follow from, and its clock is
// the one for which the kernel switches the key.
func (c *causes) shown(label *kimage.JumpLabel, key, cause string) bool {
	at := label.Addr.Sub(c.base)
	if c.clocks == nil || at < 0 || at >= int64(len(c.live)) {
		return false
	}
	count, read := c.clocks.Keys[key]
	jump := c.live[at] == x86.Jmp32 || c.live[at] == jmp8
	if !read || jump != ((count > 0) != label.Branch) {
		return false
	}
	if cause == causeTimers {
		return c.clocks.Resolution != 0 && c.clocks.Resolution != highResolution
	}
	return c.clocks.Unstable || c.clocks.Source != "" && c.clocks.Source != timeStampCounter
}
