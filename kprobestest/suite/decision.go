package suite

import (
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

//go:embed decisions.json
var decisions []byte

// Decisions are the package's.
func Decisions() []Decision {
	var list []Decision
	if err := json.Unmarshal(decisions, &list); err != nil {
		panic("BUG: decisions.json: " + err.Error())
	}
	return list
}

// Decision is code, with the results of a kprobe at each byte of it.
type Decision struct {
	Name  string `json:"name"`
	About string `json:"about"`
	// Asm is the code as GNU as takes it, Text its bytes, Symbols where functions
	// begin in it.
	Asm     []string       `json:"asm"`
	Text    Hex            `json:"text"`
	Symbols map[string]int `json:"symbols"`
	// Call is the function to be called, with Args (System V ABI), and Result its return value,
	// probed or not.
	Call   string   `json:"call"`
	Args   []Number `json:"args"`
	Result Number   `json:"result"`
	// Answers are by release; each release is in one of them.
	Answers []Answer `json:"answers"`
}

// Answer holds the results of the kernels of some releases.
type Answer struct {
	Releases []string `json:"releases"`
	// Offsets has an element for each byte of the text, in order.
	Offsets []Offset `json:"offsets"`
}

// Offset is the result of a kprobe at one byte.
type Offset struct {
	// Errno is the name of register_kprobe's error, "" if the probe is accepted. The other fields
	// are set for accepted probes.
	Errno string `json:"errno,omitempty"`
	// At is the offset of the probe, if that differs from the requested one: after an ENDBR64.
	At int `json:"at,omitempty"`
	// Runs is the way in which a hit executes the instruction while there is no jump: "stepped" (a
	// copy, with a trap after it), "boosted" (a copy, with a jump after it), "emulated".
	Runs string `json:"runs,omitempty"`
	// Optimized: the probe gets its jump.
	Optimized bool `json:"optimized,omitempty"`
	// Hits is the number of hits of the probe in one call.
	Hits int `json:"hits,omitempty"`
	// Hazard says that the kernel accepts the probe, and that a hit of it goes wrong
	// (docs/hazards.md): the function is not called then.
	Hazard string `json:"hazard,omitempty"`
}

// Of returns the answer of a release, and whether there is one.
func (d *Decision) Of(release string) (Answer, bool) {
	for _, a := range d.Answers {
		if slices.Contains(a.Releases, release) {
			return a, true
		}
	}
	return Answer{}, false
}

// Hex is bytes, in JSON two hexadecimal digits each.
type Hex []byte

// MarshalText implements encoding.TextMarshaler.
func (h Hex) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hex) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

// Number is 64 bits, in JSON a text such as "0x2a", because many readers of JSON lose bits.
type Number uint64

// MarshalText implements encoding.TextMarshaler.
func (n Number) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%#x", uint64(n)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *Number) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(string(text), 0, 64)
	*n = Number(v)
	return err
}
