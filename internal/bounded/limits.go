package bounded

// The limits of the program: how much of a thing is taken from a file, a script or a guest. The doc of a limit says what it
// bounds; its last line, "Test:", names the test that holds it. The table in SECURITY.md is made of both:
//
//	go test ./internal/bounded -update

// Files.
const (
	// Image bounds an image's bytes: what is read of its file, what it unpacks to, what it occupies in memory.
	// Test: TestBombs
	Image = 1 << 30
	// UnpackRatio bounds how many times its packed size a stream unpacks to.
	// Test: TestBombs
	UnpackRatio = 100
	// DumpHeld bounds the bytes of a dump that are kept unpacked in memory, all its forms together. The rest is unpacked on a disk.
	// Test: TestDumpsThatTakeMemory
	DumpHeld = 1 << 30
	// DumpOnDisk bounds the bytes of a dump that are unpacked on a disk, in the folder for temporary files.
	// Test: TestADumpTakesNoMoreOfTheDisk
	DumpOnDisk = 16 << 30
	// Lines bounds the rows of a unit's table of lines (DWARF).
	// Test: TestLinesWithoutEnd
	Lines = 1 << 20
)

// What is said.
const (
	// ErrorLine bounds a line of an error, in bytes; the middle of a longer one is left out.
	// Test: TestErrorLinesAreShort
	ErrorLine = 4096
)

// Types of C.
const (
	// TypeDepth bounds the levels of a type that are followed: chains of typedefs and qualifiers, and types inside of types. It is the kernel's limit for BTF (MAX_RESOLVE_DEPTH).
	// Test: TestTypesThatLeadToThemselves
	TypeDepth = 32
	// TypeParts bounds the parts of a type that one question visits.
	// Test: TestTypesThatTakeForEver
	TypeParts = 1 << 14
	// TypeText bounds the parts of a type that its text has.
	// Test: TestTypesThatTakeForEver
	TypeText = 1 << 6
	// ValueParts bounds the parts of a structure or an array that are printed of one value.
	// Test: TestValuesThatTakeForEver
	ValueParts = 1 << 14
	// Params bounds the parameters of a function of BTF; one with more has no prototype.
	// Test: TestManyParameters
	Params = 1 << 10
	// Variables bounds the variables in scope at one place of a source.
	// Test: TestManyParameters
	Variables = 1 << 12
	// Types bounds the types of a kernel's or a module's BTF. It is the kernel's limit (BTF_MAX_TYPE).
	// Test: TestBTFThatIsDamaged
	Types = 1<<20 - 1
	// TypeName bounds a type's name, in bytes. The kernel's limit is KSYM_NAME_LEN (512); a longer name is none.
	// Test: TestBTFThatIsDamaged
	TypeName = 4096
)

// Scripts.
const (
	// TupleValues bounds the values of a bpftrace tuple, with the values of the tuples in it. The tool of today accepts as many: they take 64 KB.
	// Test: TestTuplesThatDouble
	TupleValues = 1 << 13
	// Terms bounds the terms of an expression that operators of one strength join, in a script of either language.
	// Test: TestScriptsThatTakeForEver
	Terms = 10_000
	// Tokens bounds the words that macros make of a script.
	// Test: TestScriptsThatTakeForEver
	Tokens = 1 << 18
	// Macros bounds how deep macros of a stap script use each other.
	// Test: TestScriptsThatTakeForEver
	Macros = 100
	// ProblemText bounds the messages about a script, in bytes: no message begins after so many. Each shows a line of the script, which may be long.
	// Test: TestMessagesAreBounded
	ProblemText = 1 << 20
	// ProbePoints bounds the probe points of a stap script, the points of its aliases and all places among them.
	// Test: TestScriptsThatTakeForEver
	ProbePoints = 20_000
)

// Output.
const (
	// Output bounds what a run or a script prints, in bytes, unless --max-output says otherwise. It counts what is printed, control characters in the form that they are shown in.
	// Test: TestOutputIsBounded
	Output = 64 << 20
	// Listing bounds what a command prints that lists or explains, in bytes, unless --max-output says otherwise.
	// Test: TestOutputIsBounded
	Listing = 1 << 30
)
