package bounded

// A stap script.
const (
	// StapNesting bounds how deep a stap script is nested.
	// Test: TestScriptsThatTakeForEver
	StapNesting = 500
	// StapCalls bounds how deep functions of a stap script may call each other (-D MAXNESTING).
	// Test: TestScripts
	StapCalls = 1000
	// StapString bounds a string of a stap script, in bytes (-D MAXSTRINGLEN).
	// Test: TestLimitsOfTheCommandLine
	StapString = 1 << 15
	// StapArray bounds the entries of an array of a stap script.
	// Test: TestArraysThatAreTooLarge
	StapArray = 1_000_000
	// StapMemory bounds the memory of a stap script's arrays, in bytes.
	// Test: TestArraysThatAreTooLarge
	StapMemory = 512 << 20
	// StapProblems bounds the errors about a stap script that are said.
	// Test: TestScriptsWithManyErrors
	StapProblems = 100
	// StapBraces bounds the probe points that braces make of one.
	// Test: TestScriptsThatTakeForEver
	StapBraces = 10_000
	// StapAliases bounds how deep aliases of probe points use each other.
	// Test: TestScriptsThatTakeForEver
	StapAliases = 20
	// StapPlaces bounds the places of one probe point: a pattern is many functions.
	// Test: TestScriptsThatTakeForEver
	StapPlaces = 1 << 16
	// StapWidth bounds a width or a precision of stap's printf.
	// Test: TestWidthsOfPrintf
	StapWidth = 1 << 20
	// StapRounds bounds how often the types of a stap script are inferred.
	// Test: TestScriptsThatTakeForEver
	StapRounds = 100
	// StapSaved bounds the values of the entry that a return probe keeps.
	// Test: TestValuesOfTheEntry
	StapSaved = 64
	// StapInserted bounds what arguments of the command line put into a stap script, in bytes, all together; each time counts as 256 at least.
	// Test: TestArgumentsThatAreLong
	StapInserted = 1 << 20
)

// A bpftrace script.
const (
	// BpftraceNesting bounds how deep a bpftrace script is nested.
	// Test: TestScriptsThatTakeForEver
	BpftraceNesting = 200
	// BpftracePasses bounds how often the types of a bpftrace script are inferred.
	// Test: TestScriptsThatTakeForEver
	BpftracePasses = 16
	// BpftraceUnrolled bounds the statements that unroll makes of a bpftrace script.
	// Test: TestScriptsThatTakeForEver
	BpftraceUnrolled = 1 << 16
	// BpftraceMacros bounds the macros of a bpftrace script that are expanded.
	// Test: TestScriptsThatTakeForEver
	BpftraceMacros = 1 << 12
	// BpftraceActions bounds the statements that a handler of a bpftrace script executes.
	// Test: TestBpftraceScripts
	BpftraceActions = 1 << 20
	// DefinitionFields bounds the fields of a type that a bpftrace script defines.
	// Test: TestDefinitionsThatAreTooLarge
	DefinitionFields = 4096
	// DefinitionSize bounds a type that a bpftrace script defines, in bytes, and the elements of its arrays.
	// Test: TestDefinitionsThatAreTooLarge
	DefinitionSize = 1 << 16
	// PathSteps bounds the folders of a path that a script asks for.
	// Test: TestPathsWithoutBeginning
	PathSteps = 1 << 11
	// ScriptFrame bounds the locals and the intermediate values of a function of a script.
	// Test: TestFramesThatAreTooLarge
	ScriptFrame = 1 << 12
	// ScriptEvents bounds the events that wait for the end of a handler.
	// Test: TestLaterKeepsTheOrder
	ScriptEvents = 1 << 14
	// ScriptEventText bounds the texts of such events, in bytes.
	// Test: TestLaterKeepsTheOrder
	ScriptEventText = 1 << 22
)
