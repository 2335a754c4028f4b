package bounded

// Images.
const (
	// ImageFile bounds the file that an image is read of, in bytes. What is read of it has the bound Image: the rest is debugging information.
	// Test: TestImagesThatAreTooLong
	ImageFile = 8 << 30
	// BesideImage bounds what a file beside an image unpacks to, in bytes: a map of symbols, a configuration, a dump of the text.
	// Test: TestImagesThatAreTooLong
	BesideImage = 256 << 20
	// Configuration bounds a configuration that is looked for beside an image, in bytes. Distributions' have 300 kB.
	// Test: TestConfigBeside
	Configuration = 4 << 20
	// PackageModules bounds the modules of a package, unpacked, in bytes. Debian's largest have half a gigabyte.
	// Test: TestImagesThatAreTooLong
	PackageModules = 4 << 30
	// ModuleSources bounds a folder from which a module is built, in bytes.
	// Test: TestModulesThatAreNotBuilt
	ModuleSources = 64 << 20
	// BuildOutput bounds what is kept of the output of a build, in bytes.
	// Test: TestModulesThatAreNotBuilt
	BuildOutput = 64 << 10
	// Wraps bounds how many files lie in each other: a unified image, the packed image in it, a bzImage, an ELF.
	// Test: TestContainersWrong
	Wraps = 5
	// UnpackWindow bounds the window or the dictionary of a packed stream, in bytes: what zstd takes without being told, and four times what kernels are packed with.
	// Test: TestWindowsOfStreams
	UnpackWindow = 128 << 20
	// Sections bounds the sections of an ELF file.
	// Test: TestImagesWithoutEnd
	Sections = 1 << 16
	// SymbolName bounds a symbol's name, in bytes: a damaged table of names is not searched to its end for each symbol. kallsyms has at most 512, compilers of other languages need more.
	// Test: TestImagesWithoutEnd
	SymbolName = 4096
	// Kallsyms bounds the symbols of kallsyms.
	// Test: TestKallsymsDamage
	Kallsyms = 4 << 20
	// KallsymsSearch bounds the names that are walked in search of the tables of kallsyms.
	// Test: TestKallsymsDamage
	KallsymsSearch = 64 << 20
	// KallsymsNames bounds the names of kallsyms, in bytes, all together.
	// Test: TestKallsymsDamage
	KallsymsNames = 64 << 20
	// BTFSet bounds the numbers of a set of BTF.
	// Test: TestImagesWithoutEnd
	BTFSet = 1 << 16
	// Tracepoints bounds the trace events that are read of a kernel.
	// Test: TestDumpsThatAskForMuch
	Tracepoints = 1 << 14
	// TracepointFields bounds the fields that are read of a trace event.
	// Test: TestDumpsThatAskForMuch
	TracepointFields = 256
	// SystemCalls bounds the entries of a kernel's table of system calls.
	// Test: TestImagesWithoutEnd
	SystemCalls = 4096
	// OrcEntries bounds the entries of a table of ORC.
	// Test: TestModulesWithoutEnd
	OrcEntries = 1 << 24
	// OrcModules bounds the modules whose tables of ORC are read.
	// Test: TestModulesWithoutEnd
	OrcModules = 4096
	// LossTasks bounds the tasks that are named for a cause of losses; later ones are counted together.
	// Test: TestLossesOfManyTasks
	LossTasks = 16
	// LossFrames bounds the functions of a stack that is shown for losses.
	// Test: TestLossesOfManyTasks
	LossFrames = 24
	// BPFLines bounds the lines of a BPF program that are counted.
	// Test: TestCoverage
	BPFLines = 1 << 16
	// LossFunctions bounds the functions of a multi-probe whose calls are counted: each takes the room for an observed instruction.
	// Test: TestLossesOfManyTasks
	LossFunctions = 256
	// StackFrames bounds the frames of a stack that is walked.
	// Test: TestATaskThatDoesNotRun
	StackFrames = 1024
	// TaskParents bounds how far a hit's process is from init.
	// Test: TestParentsWithoutEnd
	TaskParents = 16
)

// Memory dumps.
const (
	// DumpMemory bounds the physical memory of a dump, in bytes.
	// Test: TestHeadersThatAskForMuch
	DumpMemory = 64 << 30
	// DumpRanges bounds the separate ranges of a dump's memory.
	// Test: TestFramesThatAlternate
	DumpRanges = 1 << 16
	// DumpSegments bounds the segments of a dump: those of makedumpfile -E, which leaves a page out by ending a segment, reach a million.
	// Test: TestManySegments
	DumpSegments = 1 << 21
	// DumpNotes bounds a dump's notes, in bytes.
	// Test: TestHeadersThatAskForMuch
	DumpNotes = 64 << 20
	// DumpCPUs bounds the processors of a dump. It is the largest NR_CPUS.
	// Test: TestHeadersThatAskForMuch
	DumpCPUs = 8192
	// DumpInfo bounds VMCOREINFO, in bytes. The kernel's has one page.
	// Test: TestLongVMCoreInfo
	DumpInfo = 1 << 20
	// DumpPages bounds the pages that the bitmaps of a kdump file tell of: memory ends below 1 TiB.
	// Test: TestFramesThatAlternate
	DumpPages = 1 << 28
	// DumpTables bounds the page tables of a dump that are kept for the next look at them: 4 MiB.
	// Test: TestTablesOfAFileAreBounded
	DumpTables = 1024
	// DumpKernel bounds the kernel's mapping in a dump, in bytes, from its first to its last page.
	// Test: TestDumpsThatAskForMuch
	DumpKernel = 512 << 20
	// DumpModules bounds the modules that are read of a dump.
	// Test: TestDumpsWhoseModulesAskForMuch
	DumpModules = 4096
	// ModuleMemory bounds a part of a module in a dump, in bytes. All modules together have the bound Image.
	// Test: TestDumpsWhoseModulesAskForMuch
	ModuleMemory = 128 << 20
	// ModuleSymbols bounds the symbols of a module in a dump. All modules together have the bound Kallsyms.
	// Test: TestDumpsWhoseModulesAskForMuch
	ModuleSymbols = 1 << 20
	// DumpRead bounds what is read of a dump at once, in bytes, and the BTF of all its modules.
	// Test: TestDumpsWhoseListsDoNotEnd
	DumpRead = 64 << 20
	// DumpList bounds the elements of a list in a dump, and the records of all pages of ftrace.
	// Test: TestDumpsWhoseListsDoNotEnd
	DumpList = 1 << 20
	// DumpRecords bounds the records of a page of ftrace in a dump.
	// Test: TestDumpsWhoseListsDoNotEnd
	DumpRecords = 1 << 16
	// DumpPerCPU bounds the area of a processor's variables in a dump, in bytes.
	// Test: TestDumpsThatAskForMuch
	DumpPerCPU = 64 << 20
	// DumpTasks bounds the tasks of a dump.
	// Test: TestDumpsThatAskForMuch
	DumpTasks = 1 << 16
	// DumpTimers bounds the timers of a processor in a dump.
	// Test: TestDumpsWhoseListsDoNotEnd
	DumpTimers = 1 << 16
	// PrintkBits bounds the rings of the kernel's log: they have so many bits of numbers of records, and twice as many of positions.
	// Test: TestRingsThatAreTooLarge
	PrintkBits = 24
)

// Debugging information.
const (
	// SourceFile bounds a file with debugging information, in bytes. A kernel's has 0.6 GB.
	// Test: TestFilesOfDebuggingInformationThatAreTooLong
	SourceFile = 4 << 30
	// DebugSections bounds the sections with debugging information, unpacked, in bytes. A kernel's have 0.25 GB.
	// Test: TestFilesOfDebuggingInformationThatAreTooLong
	DebugSections = 1 << 30
	// InlinedNotes bounds what is noted of functions and of the places where they are inlined, in bytes. A kernel's have 150 MB.
	// Test: TestInlinedWithoutEnd
	InlinedNotes = 512 << 20
	// Units bounds the units of a file. A kernel has 3,000.
	// Test: TestEntriesWithoutEnd
	Units = 1 << 18
	// Abbreviations bounds the forms of a unit's entries. A kernel's units have hundreds.
	// Test: TestEntriesWithoutEnd
	Abbreviations = 1 << 16
	// AbbreviationTables bounds the tables of such forms, in bytes, all together. A kernel's have 10 MB.
	// Test: TestTablesOfAbbreviationsThatOverlap
	AbbreviationTables = 32 << 20
	// UnitEntries bounds the entries of a unit.
	// Test: TestEntriesWithoutEnd
	UnitEntries = 1 << 20
	// UnitDepth bounds how deep a unit's entries are nested.
	// Test: TestEntriesWithoutEnd
	UnitDepth = 256
	// EntriesRead bounds the entries that are read for one question.
	// Test: TestEntriesWithoutEnd
	EntriesRead = 1 << 26
	// References bounds how many references from entry to entry are followed.
	// Test: TestReferencesWithoutEnd
	References = 32
	// LocationSpans bounds the spans of a list of locations or ranges.
	// Test: TestExpressionsWithoutEnd
	LocationSpans = 1 << 14
	// Operations bounds the operations of an expression of DWARF.
	// Test: TestExpressionsWithoutEnd
	Operations = 1 << 10
	// FormulaNodes bounds the parts of a formula: copies on DWARF's stack double what an operation takes.
	// Test: TestExpressionsWithoutEnd
	FormulaNodes = 1 << 8
	// FrameStates bounds the states of registers that a program of frames remembers.
	// Test: TestExpressionsWithoutEnd
	FrameStates = 64
)
