// Package runs has interleavings of kprobes and text patching as data, for other implementations of
// the mechanism: the steps of a few CPUs in their order, the written bytes, the fetched bytes, and
// the end state.
//
// It must not know how an implementation works. The cases are in runs.json, and docs/suite.md
// describes an adapter's work.
package runs

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
)

//go:embed runs.json
var data []byte

// Case is one run: a scenario, the kernel that it is for, and its steps.
type Case struct {
	// Name is the scenario's, Profile the kernel's (docs/releases.md).
	Name    string `json:"name"`
	Profile string `json:"profile"`
	// Code is the text in hex, from offset 0 on; Functions has the offset of each function.
	Code      string         `json:"code"`
	Functions map[string]int `json:"functions"`
	Probes    []Probe        `json:"probes"`
	Sites     []Site         `json:"sites,omitempty"`
	// Setup was done before, by one CPU; Columns are the actions of each CPU then.
	Setup   []string `json:"setup,omitempty"`
	Columns []Column `json:"columns"`
	// Steps is the order in which they do it.
	Steps []Step `json:"steps"`
	End   End    `json:"end"`
}

// Probe is a probe with a pre handler, at an offset of a function.
type Probe struct {
	Name     string `json:"name"`
	Function string `json:"function"`
	Offset   int    `json:"offset"`
	// Post: it has a post handler too. Disabled: it is registered so.
	Post     bool `json:"post,omitempty"`
	Disabled bool `json:"disabled,omitempty"`
}

// Site is five bytes that another part of the kernel patches: a no-operation, or
// a jump to the offset To of the function.
type Site struct {
	Name     string `json:"name"`
	Function string `json:"function"`
	Offset   int    `json:"offset"`
	To       int    `json:"to"`
}

// Column is a CPU, or an interrupt of one (cpu0.irq, cpu0.nmi), with its actions.
type Column struct {
	Name    string   `json:"name"`
	Actions []string `json:"actions"`
}

// Step is a step that another CPU can notice, or that depends on one.
type Step struct {
	// Lane is the lane of the step: a column, a CPU that acknowledges, or the worker.
	Lane string `json:"lane"`
	Kind string `json:"kind"`
	// At is FUNCTION+N, or a place in the slots.
	At string `json:"at,omitempty"`
	// Bytes, in hex, are the bytes that a store writes, or a fetch reads.
	Bytes string `json:"bytes,omitempty"`
}

// End is the state when all steps are taken, before the probes are removed.
type End struct {
	Verdict string `json:"verdict"`
	// Code is the text in hex.
	Code string `json:"code"`
	// Hits and Missed are by the probe's name.
	Hits   map[string]int `json:"hits"`
	Missed map[string]int `json:"missed"`
}

// Cases are all cases.
func Cases() ([]Case, error) {
	var list []Case
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("runs: %w", err)
	}
	return list, nil
}

// Implementation is an adapter's interface: Run takes a case's steps in their order, and returns
// the end state. A step that cannot be taken is an error.
type Implementation interface {
	Run(c *Case) (End, error)
}

// Difference is a case that an implementation ends otherwise.
type Difference struct {
	Case      *Case
	Got, Want End
	// Err is the implementation's error, nil if it has none.
	Err error
}

// Error describes the difference.
func (d *Difference) Error() string {
	if d.Err != nil {
		return fmt.Sprintf("%s on %s: %v", d.Case.Name, d.Case.Profile, d.Err)
	}
	return fmt.Sprintf("%s on %s ends with %+v, not %+v", d.Case.Name, d.Case.Profile, d.Got, d.Want)
}

// Check runs all cases.
func Check(i Implementation) ([]Difference, error) {
	list, err := Cases()
	if err != nil {
		return nil, err
	}
	var bad []Difference
	for n := range list {
		c := &list[n]
		got, err := i.Run(c)
		if err != nil || !reflect.DeepEqual(got, c.End) {
			bad = append(bad, Difference{c, got, c.End, err})
		}
	}
	return bad, nil
}
