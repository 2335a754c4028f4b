// Package contract has what a tool's userland does to its BPF object before it loads it: sizes of maps, constants, inner maps,
// programs that it can do without, and to what programs are attached.
//
// It must not know how an object is loaded, nor of YAML.
package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Contract completes an object.
type Contract struct {
	Maps map[string]Map `json:"maps,omitempty"`
	// Constants are values of variables by their names: constants (.rodata) above all, also others (.data, .bss). Each is written
	// as the variable's type says: a number, true or false, a text for an array of char, an array, an object for a structure, an
	// enumerator's name.
	Constants map[string]json.RawMessage `json:"constants,omitempty"`
	Programs  map[string]Program         `json:"programs,omitempty"`
}

// Map changes a map's definition. Zero values leave what the object says.
type Map struct {
	// Entries is max_entries; Key and Value are sizes in bytes.
	Entries uint32 `json:"entries,omitempty"`
	Key     uint32 `json:"key,omitempty"`
	Value   uint32 `json:"value,omitempty"`
	// Inner is the template of the maps in a map of maps.
	Inner *Inner `json:"inner,omitempty"`
	// Record is the object's type of the records in a ring buffer or a perf buffer, as "event" for struct event.
	Record string `json:"record,omitempty"`
}

// Inner is a map of the object, or a definition.
type Inner struct {
	Map string `json:"map,omitempty"`
	// Type is the kernel's word in small letters: hash, array, lru_hash and so on.
	Type    string `json:"type,omitempty"`
	Key     uint32 `json:"key,omitempty"`
	Value   uint32 `json:"value,omitempty"`
	Entries uint32 `json:"entries,omitempty"`
}

// Program says how a program is loaded.
type Program struct {
	// Optional: the tool goes on without it. A section that begins with ? is optional by itself.
	Optional bool `json:"optional,omitempty"`
	// Load is false for a program that the tool does not load, and true for one of a section with ? that it does.
	Load *bool `json:"load,omitempty"`
	// Attach takes the place of what follows the first slash of the section's name: a function, PATH:FUNCTION of a uprobe,
	// GROUP/NAME of a tracepoint, PATH:PROVIDER:NAME of a usdt.
	Attach string `json:"attach,omitempty"`
	// Of is the program of the object that has the function Attach, for freplace and for fentry and fexit on BPF programs.
	Of string `json:"of,omitempty"`
	// Flags names the flags of the load, as Flags has them.
	Flags []string `json:"flags,omitempty"`
}

// Flags are the flags of a load that a tool can set (libbpf: bpf_program__set_flags), by the kernel's names without BPF_F, in small letters.
var Flags = map[string]uint32{
	"strict_alignment":    1 << 0,
	"any_alignment":       1 << 1,
	"test_rnd_hi32":       1 << 2,
	"test_state_freq":     1 << 3,
	"sleepable":           1 << 4,
	"xdp_has_frags":       1 << 5,
	"test_reg_invariants": 1 << 7,
}

// Read reads a contract as JSON. A key that there is not is an error.
func Read(text []byte) (*Contract, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	c := &Contract{}
	if err := d.Decode(c); err != nil {
		return nil, fmt.Errorf("the contract: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("the contract: text after its end")
	}
	return c, nil
}
