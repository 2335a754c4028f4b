// Package answer has a kernel's answers about the programs of a BPF object, as the loader in the guest writes them.
//
// It must not know how programs are loaded, nor which kernel gave an answer.
package answer

// Line is a line of the loader's output. The first has the names of all programs, or the error of an object that could not be
// read. Each of the others has the answer about one field or one program.
type Line struct {
	Error string `json:"error,omitempty"`
	// Contract: the error is the contract's, not the object's.
	Contract bool     `json:"contract,omitempty"`
	Names    []string `json:"names,omitempty"`
	Field    *Field   `json:"field,omitempty"`
	Program  *Program `json:"program,omitempty"`
	// Ready: the programs of a run are attached. They fill Event and Contents; Run has the rest.
	Ready    bool      `json:"ready,omitempty"`
	Event    *Event    `json:"event,omitempty"`
	Contents *Contents `json:"contents,omitempty"`
	Run      *Run      `json:"run,omitempty"`
}

// Object has a kernel's answers about an object.
type Object struct {
	Programs []Program `json:"programs"`
	// Fields are the fields, types and enumerators that CO-RE's records name.
	Fields []Field `json:"fields,omitempty"`
	// Run has the results of the workload, nil without one.
	Run *Run `json:"run,omitempty"`
}

// Program is a kernel's answer to a program.
type Program struct {
	Name    string `json:"name"`
	Section string `json:"section"`
	// Optional: the tool goes on without it, by the ? of its section or by a contract.
	Optional bool `json:"optional,omitempty"`
	// Loads: the kernel's verifier has taken it. If not, Error says why, and Errno is its number by name, "" if it was not
	// the kernel that refused.
	Loads bool   `json:"loads"`
	Error string `json:"error,omitempty"`
	Errno string `json:"errno,omitempty"`
	// Unasked: the loader cannot load programs of this kind, for the reason in Error; Loads is false then.
	Unasked bool `json:"unasked,omitempty"`
	// Attaches: the kernel has attached it as its section says; nil if that was not asked, for the reason in AttachError.
	Attaches    *bool  `json:"attaches"`
	AttachError string `json:"attachError,omitempty"`
	// Instructions is the size of the program; Verified and States are the verifier's figures of its work, 0 if it did not tell.
	Instructions int `json:"instructions"`
	Verified     int `json:"verified,omitempty"`
	States       int `json:"states,omitempty"`
	// Blame is the place of the instruction that the verifier's log ends with, nil if the program loads or the log names none.
	Blame *Place `json:"blame,omitempty"`
	// Log is the verifier's log.
	Log string `json:"log,omitempty"`
}

// Place is an instruction. .BTF.ext may have its line of source.
type Place struct {
	Instruction int    `json:"instruction"`
	File        string `json:"file,omitempty"`
	Line        int    `json:"line,omitempty"`
	Text        string `json:"text,omitempty"`
}

// What CO-RE has found.
const (
	Present   = "present"
	OtherType = "another type"
	Absent    = "absent"
)

// Field has CO-RE's result for a field, a type or an enumerator of an object, by a kernel's types.
type Field struct {
	Name string `json:"name"`
	// Kind is field, type or enumerator.
	Kind string `json:"kind"`
	// Found is Present, OtherType or Absent; "" if the kernel's types cannot be read, for the reason in Error.
	Found string `json:"found"`
	Error string `json:"error,omitempty"`
	// Offset locates a field in bytes, and Bit the bits after it. Size is the size of the field or type in bytes.
	Offset *int `json:"offset,omitempty"`
	Bit    int  `json:"bit,omitempty"`
	Size   int  `json:"size,omitempty"`
	// Value is the value of an enumerator.
	Value *int64 `json:"value,omitempty"`
	// Type is the kernel's, Wanted the object's.
	Type   string `json:"type,omitempty"`
	Wanted string `json:"wanted,omitempty"`
	// Relocated: CO-RE takes the kernel's field although it may be of another type.
	Relocated bool `json:"relocated,omitempty"`
	// Guarded: each program that reads it asks first whether it is there (bpf_core_field_exists and the like).
	Guarded bool `json:"guarded,omitempty"`
	// Programs name it, first at Place.
	Programs []string `json:"programs"`
	Place    *Place   `json:"place,omitempty"`
}
