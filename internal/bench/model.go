package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
)

// Hardware holds a processor's times for the parts of a hit, in microseconds. A modelled figure is
// the sum of the parts' counts times these.
type Hardware struct {
	Name string `json:"name"`
	// Trap is an int3 with the kernel's way to the handler and back; Step the
	// second trap of a hit that steps.
	Trap float64 `json:"trap_us"`
	Step float64 `json:"step_us"`
	// Detour is a passage of the detour buffer with its call; the way to the function tracer's
	// handler is assumed to cost the same.
	Detour float64 `json:"detour_us"`
	// Trampoline is a return through the return trampoline, with its part of the entry.
	Trampoline float64 `json:"trampoline_us"`
}

// Published are the processors of the documentation's tables. Each has six
// figures and four costs: k is a trap and a step, b a trap, o a detour, and
// each return probe its entry and a trampoline.
var published = []Hardware{
	{Name: "x86-64", Trap: 0.43, Step: 0.56, Detour: 0.06, Trampoline: 0.25},
	{Name: "i386", Trap: 0.33, Step: 0.47, Detour: 0.05, Trampoline: 0.285},
}

// HardwareNames lists the built-in processors: "x86-64" and "i386", the two of the kernel
// documentation's tables (a Xeon of 2008, in each mode).
func HardwareNames() []string {
	var names []string
	for _, h := range published {
		names = append(names, h.Name)
	}
	return names
}

// ErrNoHardware is a name that is neither a built-in processor's nor a file's.
var ErrNoHardware = errors.New("there is no processor and no file")

// FindHardware returns a built-in processor, or the one that a file describes.
func FindHardware(name string) (Hardware, error) {
	if h, ok := NamedHardware(name); ok {
		return h, nil
	}
	text, err := bounded.ReadFile(name, bounded.BenchFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Hardware{}, fmt.Errorf("%w %q: there are %s", ErrNoHardware, name, strings.Join(HardwareNames(), ", "))
	}
	if err != nil {
		return Hardware{}, err
	}
	return ParseHardware(text)
}

// NamedHardware returns a built-in processor, and whether there is one.
func NamedHardware(name string) (Hardware, bool) {
	i := slices.IndexFunc(published, func(h Hardware) bool { return h.Name == name })
	if i < 0 {
		return Hardware{}, false
	}
	return published[i], true
}

// ParseHardware reads a processor from JSON: an object with name, trap_us,
// step_us, detour_us and trampoline_us. Unknown or negative fields are EINVAL.
func ParseHardware(text []byte) (Hardware, error) {
	var h Hardware
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil {
		return h, fmt.Errorf("hardware profile: %w: %w", err, errno.EINVAL)
	}
	for _, c := range []float64{h.Trap, h.Step, h.Detour, h.Trampoline} {
		if c < 0 {
			return h, fmt.Errorf("hardware profile: a cost of %g us: %w", c, errno.EINVAL)
		}
	}
	if h.Name == "" {
		return h, fmt.Errorf("hardware profile: it has no name: %w", errno.EINVAL)
	}
	return h, nil
}

// Cost returns the time of a hit with these parts, in microseconds.
func (h *Hardware) Cost(p Parts) float64 {
	return p.Traps*h.Trap + p.Steps*h.Step + (p.Detours+p.Tracers)*h.Detour + p.Trampolines*h.Trampoline
}
