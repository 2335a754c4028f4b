package answer

import "encoding/json"

// Run has the output of an object's programs while a workload ran.
type Run struct {
	Command string `json:"command"`
	// Exit is the workload's exit code, Output its output.
	Exit   int    `json:"exit"`
	Output string `json:"output,omitempty"`
	// Attached are the programs that stayed attached, in the order of their names.
	Attached []string `json:"attached"`
	// Events are records and lines in the order in which they were read. Dropped counts those for which there was no room here.
	Events  []Event    `json:"events"`
	Dropped int        `json:"dropped,omitempty"`
	Maps    []Contents `json:"maps"`
	// Error says why the run did not come to its end.
	Error string `json:"error,omitempty"`
}

// Event is a record of a ring buffer or a perf buffer, or a line of bpf_printk.
type Event struct {
	// Map is the buffer, CPU a perf buffer's processor. Value is the record by its type, or in hex. Lost counts records that
	// the kernel had no room for.
	Map   string          `json:"map,omitempty"`
	CPU   int             `json:"cpu,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
	Lost  uint64          `json:"lost,omitempty"`
	// Printed is the text of bpf_printk, Line the whole line of trace_pipe.
	Printed string `json:"printed,omitempty"`
	Line    string `json:"line,omitempty"`
}

// Contents are the entries of a map at the end.
type Contents struct {
	Map  string `json:"map"`
	Type string `json:"type"`
	// Entries has the entries other than zero; Zero counts the entries of an array that are zero, More the entries without room.
	Entries []Entry `json:"entries"`
	Zero    int     `json:"zero,omitempty"`
	More    int     `json:"more,omitempty"`
	Error   string  `json:"error,omitempty"`
}

// Entry is an entry of a map. Values has a value for each processor, for a map per CPU.
type Entry struct {
	Key    json.RawMessage   `json:"key,omitempty"`
	Value  json.RawMessage   `json:"value,omitempty"`
	Values []json.RawMessage `json:"values,omitempty"`
}
