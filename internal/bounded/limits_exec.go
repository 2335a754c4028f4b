package bounded

// Files of the host for a program on a booted kernel.
const (
	// GuestBytes bounds the files that a booted guest gets at run time, in bytes, all together.
	// Test: TestSetsThatAreTooLarge
	GuestBytes = 2 << 30
	// GuestPath bounds a path of a guest and where a link leads, in bytes (PATH_MAX).
	// Test: TestSetsThatAreTooLarge
	GuestPath = 4095
	// GuestLinks bounds the links that are followed for one path (the kernel's MAXSYMLINKS).
	// Test: TestLinksWithoutEnd
	GuestLinks = 40
	// GuestOut bounds the files that are taken out of a booted guest at once, in bytes.
	// Test: TestFilesThatAreNotTakenOut
	GuestOut = 256 << 20
	// GuestDepth bounds how deep folders that are taken out of a booted guest lie in each other.
	// Test: TestFilesThatAreNotTakenOut
	GuestDepth = 64
	// AskedNames bounds the remembered paths that the programs of a session named.
	// Test: TestPathsThatProgramsName
	AskedNames = 1 << 14
	// WantedFiles bounds the files that a program looked for in vain and that are named.
	// Test: TestWantedFiles
	WantedFiles = 40
	// GuestProbes bounds the kprobes that are read of a booted kernel's table.
	// Test: TestTablesOfProbesWithoutEnd
	GuestProbes = 1 << 16
	// GuestText bounds a booted kernel's text that is compared, in bytes.
	// Test: TestTablesOfProbesWithoutEnd
	GuestText = 256 << 20
	// ChangedPlaces bounds the places of text that are named as changed by a module.
	// Test: TestTablesOfProbesWithoutEnd
	ChangedPlaces = 64
	// ModuleAllocations bounds the pieces of memory of a module that are remembered.
	// Test: TestMemoryOfModules
	ModuleAllocations = 1 << 16
	// FreedBytes bounds what is watched of a piece of memory that a module gave back, in bytes.
	// Test: TestMemoryOfModules
	FreedBytes = 4096
	// TroubleLines bounds the lines that are shown of the log of a kernel in trouble.
	// Test: TestTroubleWithoutEnd
	TroubleLines = 240
	// BPFAnswer bounds what the loader of BPF programs answers, in bytes: its logs above all.
	// Test: TestAnswersWithoutEnd
	BPFAnswer = 64 << 20
	// BPFLog bounds the verifier's log of one program, in bytes; the middle of a longer one is left out.
	// Test: TestLogsThatAreLong
	BPFLog = 1 << 20
	// BPFLogged bounds the verified instructions of a program whose log is asked for: the log of a million does not fit into a guest's memory.
	// Test: TestProgramsAtTheVerifiersLimit
	BPFLogged = 100_000
	// BPFPlaces bounds the symbols of an object whose lines in C are looked up.
	// Test: TestPlacesOfPrograms
	BPFPlaces = 1 << 14
	// BPFObject bounds an object of BPF programs, in bytes.
	// Test: TestFilesThatAreTooLong
	BPFObject = 64 << 20
	// BPFContract bounds a file that completes a BPF object, in bytes.
	// Test: TestContractsThatAreNone
	BPFContract = 1 << 20
	// BPFNested bounds the types that are followed from one type of a BPF object, each inside of the one before.
	// Test: TestTypesThatLeadToThemselves
	BPFNested = 32
	// BPFRecords bounds the records and lines that are kept of a run of a BPF object's programs.
	// Test: TestRunsWithoutEnd
	BPFRecords = 100_000
	// BPFEntries bounds the entries that are read of a BPF map.
	// Test: TestRunsWithoutEnd
	BPFEntries = 1 << 16
	// BPFOutput bounds what is kept of a workload's output beside a BPF object's programs, in bytes.
	// Test: TestRunsWithoutEnd
	BPFOutput = 1 << 20
	// BPFInstructions bounds the instructions of a BPF program that a kernel is asked about: all kernels refuse more.
	// Test: TestObjectsOfBadWill
	BPFInstructions = 1_000_000
	// BPFStack bounds the stack of the loader of BPF programs, in bytes: types of a damaged object may lead into each other.
	// Test: TestDamagedObjects
	BPFStack = 16 << 20
	// BPFSentence bounds the reason why an object cannot be read, in bytes.
	// Test: TestSentencesThatAreLong
	BPFSentence = 500
	// BPFTypes bounds a file of BTF that CO-RE relocates against, in bytes. An ELF file of a kernel may have it.
	// Test: TestTypesThatAreNone
	BPFTypes = 1 << 30
	// Libraries bounds the libraries of a program.
	// Test: TestProgramsThatNeedMuch
	Libraries = 4096
	// DynamicSection bounds the dynamic section of a program or a library, in bytes.
	// Test: TestProgramsThatNeedMuch
	DynamicSection = 1 << 20
	// DynamicStrings bounds the strings of a dynamic section, in bytes. Large C++ libraries have 30 MB.
	// Test: TestProgramsThatNeedMuch
	DynamicStrings = 256 << 20
	// LibraryCache bounds ld.so's cache, in bytes.
	// Test: TestLibraryCache
	LibraryCache = 64 << 20
	// ReadyLine bounds the line of a program's output that is looked through for what says that it is ready, in bytes.
	// Test: TestReadyLinesWithoutEnd
	ReadyLine = 64 << 10
	// MatrixKernels bounds the kernels of one matrix.
	// Test: TestKernelsThatMakeNoMatrix
	MatrixKernels = 64
	// MatrixDiff bounds the differences that are shown between two kernels' outputs, in bytes, for standard output and standard error each.
	// Test: TestDifferencesWithoutEnd
	MatrixDiff = 1 << 20
	// MatrixRepeats bounds the repeats of a run.
	// Test: TestRepeatsThatAreNone
	MatrixRepeats = 100_000
)
