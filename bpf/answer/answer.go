// Package answer has a kernel's answers about the programs of a BPF object, as the loader in the guest writes them.
//
// It must not know how programs are loaded, nor of which kernels an answer is.
package answer

// Line is a line of the loader's output. The first has the names of all programs, or the error of an object that could not be
// read. Each of the others has the answer about one program.
type Line struct {
	Error   string   `json:"error,omitempty"`
	Names   []string `json:"names,omitempty"`
	Program *Program `json:"program,omitempty"`
}

// Program is a kernel's answer to a program.
type Program struct {
	Name    string `json:"name"`
	Section string `json:"section"`
	// Loads: the kernel's verifier has taken it. If not, Error says why, and Errno is its number by name, "" if it was not
	// the kernel that refused.
	Loads bool   `json:"loads"`
	Error string `json:"error,omitempty"`
	Errno string `json:"errno,omitempty"`
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
