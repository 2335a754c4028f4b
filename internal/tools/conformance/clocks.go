package conformance

import (
	"bytes"
	"encoding/binary"
	"slices"

	"kprobelab/internal/tools/conformance/boottext"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// clockSources are the names of clocksources that a PC has.
var clockSources = []string{"tsc", "tsc-early", "hpet", "acpi_pm", "jiffies", "refined-jiffies", "kvm-clock", "pit"}

// sourceSize is the number of bytes of a struct clocksource in which its name is looked for.
const sourceSize = 256

// readClocks reads what a machine's memory says of its clocks. What an image has no symbol for stays unknown.
func readClocks(img *kimage.Image, memory func(x86.Range) ([]byte, error)) (*boottext.Clocks, error) {
	var failed error
	read := func(at x86.Addr, n int64) []byte {
		b, err := memory(x86.Range{Start: at, End: at.Add(n)})
		if err != nil || int64(len(b)) < n {
			failed = err
			return make([]byte, n)
		}
		return b
	}
	number := func(name string) uint32 {
		s := img.Lookup(name)
		if len(s) != 1 {
			return 0
		}
		return binary.LittleEndian.Uint32(read(s[0].Addr, 4))
	}
	c := &boottext.Clocks{Keys: map[string]int32{}, Unstable: number("tsc_unstable") != 0, Resolution: number("hrtimer_resolution")}
	for name, at := range boottext.ClockKeys(img) {
		c.Keys[name] = int32(binary.LittleEndian.Uint32(read(at, 4)))
	}
	text, err := TextOf(img)
	current := img.Lookup("curr_clocksource")
	if err != nil || len(current) != 1 {
		return c, failed
	}
	// The name's place in the structure has changed; it is the pointer to a name.
	source := x86.Addr(binary.LittleEndian.Uint64(read(current[0].Addr, 8)))
	if !inKernel(source, text) {
		return c, failed
	}
	for b := read(source, sourceSize); len(b) >= 8; b = b[8:] {
		at := x86.Addr(binary.LittleEndian.Uint64(b))
		if !inKernel(at, text) {
			continue
		}
		name, _, _ := bytes.Cut(read(at, 16), []byte{0})
		if slices.Contains(clockSources, string(name)) {
			c.Source = string(name)
			break
		}
	}
	return c, failed
}

// kernelSpan bounds how far a kernel's data reaches from its text on.
const kernelSpan = 64 << 20

func inKernel(at x86.Addr, text x86.Range) bool {
	return at >= text.Start && at < text.Start+kernelSpan
}
