package bounded

// Numbers of the command line.
const (
	// CPUs bounds the processors of a machine.
	// Test: TestNumbersThatAreTooLarge
	CPUs = 64
	// SampleTasks bounds the tasks that sample draws.
	// Test: TestNumbersThatAreTooLarge
	SampleTasks = 100
	// SampleCalls bounds the calls that sample draws for a task.
	// Test: TestNumbersThatAreTooLarge
	SampleCalls = 1000
	// SampleActive bounds the instances of a return probe that sample draws.
	// Test: TestNumbersThatAreTooLarge
	SampleActive = 4096
	// CheckPoints bounds the points that selfcheck draws.
	// Test: TestNumbersThatAreTooLarge
	CheckPoints = 10_000_000
	// BenchRounds bounds the rounds of bench.
	// Test: TestNumbersThatAreTooLarge
	BenchRounds = 10_000
	// BenchHits bounds the hits of a round of bench.
	// Test: TestNumbersThatAreTooLarge
	BenchHits = 10_000_000
	// BenchOthers bounds the probes beside the measured one of bench.
	// Test: TestNumbersThatAreTooLarge
	BenchOthers = 100_000
	// BootCPUs bounds the processors of a booted guest.
	// Test: TestNumbersThatAreTooLarge
	BootCPUs = 64
	// BootMemory bounds the memory of a booted guest, in MiB.
	// Test: TestNumbersThatAreTooLarge
	BootMemory = 16 << 10
	// CallArguments bounds the arguments of a call: they lie on the guest's stack.
	// Test: TestBindErrors
	CallArguments = 64
	// CallBuffer bounds a buffer that an argument asks for, in bytes.
	// Test: TestBuffersThatAreTooLarge
	CallBuffer = 16 << 20
	// SyscallBuffers bounds the buffers of a system call, in bytes.
	// Test: TestBuffersOfASystemCallThatAreTooLarge
	SyscallBuffers = 64 << 20
	// TasksPassing bounds how often other tasks come by a place where one is waited for.
	// Test: TestATaskThatDoesNotCome
	TasksPassing = 10_000
)

// Machines.
const (
	// Windows bounds the windows of memory beside the image.
	// Test: TestMemoryOfAProgramIsBounded
	Windows = 128
	// GuestRegion bounds a piece of a guest's memory, in bytes.
	// Test: TestPiecesOfMemoryThatAreTooLarge
	GuestRegion = 1 << 31
	// GuestWritten bounds the memory that a booted kernel writes to, in bytes: a dump may be of a machine with more than the host has.
	// Test: TestAGuestThatWritesAllItsMemory
	GuestWritten = 4 << 30
	// Watchpoints bounds the watched places of a machine.
	// Test: TestRefused
	Watchpoints = 1 << 16
	// TranslatedCode bounds the instructions of a processor that are kept translated. Past it all are dropped.
	// Test: TestTranslatedCodeIsBounded
	TranslatedCode = 1 << 19
	// ReturnInstances bounds the instances of a return probe.
	// Test: TestKretprobeRegistration
	ReturnInstances = 1 << 20
	// ReturnData bounds the data of all instances of a return probe, in bytes.
	// Test: TestKretprobeRegistration
	ReturnData = 256 << 20
	// RingSize bounds a processor's ring buffer, in bytes.
	// Test: TestSizes
	RingSize = 1 << 30
	// TracingMemory bounds the trace buffers, events and texts that are being read of a kernel's tracing, in bytes, all together, unless Options say otherwise.
	// Test: TestMemoryUnlessTold
	TracingMemory = 512 << 20
	// SavedNames bounds the names of tasks that tracing remembers.
	// Test: TestNamesOfManyTasks
	SavedNames = 32768
	// UserTrace bounds the text of a trace of a program, in bytes.
	// Test: TestTracesThatAreTooLong
	UserTrace = 64 << 20
	// MountBudget bounds the instructions of one use of a booted kernel's file in a mount, unless --budget says otherwise. The use that traces all functions takes a thousand million.
	// Test: TestMountsHaveABudget
	MountBudget = 20_000_000_000
	// MountBytes bounds what is written into the folders of a mount that keep files, in bytes.
	// Test: TestFull
	MountBytes = 16 << 20
	// MountEntries bounds the files and folders that are made in a mount.
	// Test: TestFull
	MountEntries = 4096
	// MountProcesses bounds the ended processes that a mount remembers.
	// Test: TestProcessesThatComeToAMount
	MountProcesses = 1 << 16
	// MountInstances bounds the instances of a booted kernel's tracefs that are looked through.
	// Test: TestOpenFilesOfABootedKernelAreBounded
	MountInstances = 1024
	// FrameName bounds a name in what a booted guest sends, in bytes.
	// Test: TestFramesThatAreTooLarge
	FrameName = 1 << 12
	// FrameData bounds a piece of what a booted guest sends, in bytes.
	// Test: TestFramesThatAreTooLarge
	FrameData = 1 << 28
	// DebuggerPacket bounds a packet of QEMU's debugger, in bytes.
	// Test: TestDebuggerDoesNotWaitForEver
	DebuggerPacket = 1 << 20
)

// A program in the sandbox.
const (
	// Threads bounds the threads of a program that there are at once.
	// Test: TestProgram
	Threads = 64
	// Processes bounds the processes that a program makes.
	// Test: TestProgram
	Processes = 500
	// Descriptors bounds the descriptors of a process.
	// Test: TestNumbersOfAProgramAreBounded
	Descriptors = 256
	// Pipes bounds the pipes of a program, and so what waits in them all (pipe-user-pages-hard: 64 MB of them).
	// Test: TestPipesAndEpollsOfManyProcessesAreBounded
	Pipes = 1024
	// Epolls bounds the entries of all epoll instances of a program (fs.epoll.max_user_watches).
	// Test: TestPipesAndEpollsOfManyProcessesAreBounded
	Epolls = 16384
	// Signals bounds the signals that wait (RLIMIT_SIGPENDING).
	// Test: TestNumbersOfAProgramAreBounded
	Signals = 1024
	// Mappings bounds the mappings of a process (vm.max_map_count); what is touched of a lazy one makes several of it.
	// Test: TestMemoryOfAProgramIsBounded
	Mappings = 16384
	// MadeFiles bounds the files that a program makes, in bytes, all together.
	// Test: TestNumbersOfAProgramAreBounded
	MadeFiles = 64 << 20
	// MadeNames bounds how many files and folders a program makes.
	// Test: TestNumbersOfAProgramAreBounded
	MadeNames = 4096
	// MadeSnapshots bounds what made files were when they were mapped or executed, in bytes, all together.
	// Test: TestMemoryOfAProgramIsBounded
	MadeSnapshots = 2 * MadeFiles
	// ProgramStrings bounds the strings of a program's arguments and environment.
	// Test: TestArgumentsThatAreTooLong
	ProgramStrings = 4096
	// ProgramArguments bounds a program's arguments and environment, in bytes (MAX_ARG_STRLEN, for all together).
	// Test: TestArgumentsThatAreTooLong
	ProgramArguments = 128 << 10
	// ProgramHeaders bounds the headers of a program's file. The kernel's bound is a page of them.
	// Test: TestProgramsThatAreTooLarge
	ProgramHeaders = 64
	// ProgramImage bounds the addresses of a program's file, in bytes, from its first to its last.
	// Test: TestProgramsThatAreTooLarge
	ProgramImage = 256 << 20
	// ProgramFunction bounds the code of a function of a program's, in bytes.
	// Test: TestFunctionsThatAreTooLong
	ProgramFunction = 1 << 20
	// UnknownCalls bounds the numbers of unknown system calls that are counted.
	// Test: TestMemoryOfAProgramIsBounded
	UnknownCalls = 512
)

// Explorations.
const (
	// ScenarioFile bounds a scenario, in bytes.
	// Test: TestBadScenarios
	ScenarioFile = 64 << 10
	// ScheduleFile bounds a schedule, in bytes.
	// Test: TestBadSchedules
	ScheduleFile = 1 << 20
	// ScenarioFunctions bounds the functions of a scenario.
	// Test: TestScenariosAreBounded
	ScenarioFunctions = 8
	// ScenarioCode bounds the instructions of a scenario's function.
	// Test: TestScenariosAreBounded
	ScenarioCode = 24
	// ScenarioProbes bounds the probes and sites of a scenario.
	// Test: TestScenariosAreBounded
	ScenarioProbes = 16
	// ScenarioCPUs bounds the processors of a scenario.
	// Test: TestScenariosAreBounded
	ScenarioCPUs = 8
	// ScenarioColumns bounds the columns of a scenario's table.
	// Test: TestScenariosAreBounded
	ScenarioColumns = 12
	// ScenarioActions bounds the actions of a column of a scenario.
	// Test: TestScenariosAreBounded
	ScenarioActions = 24
	// ScenarioActive bounds the instances of a scenario's return probe.
	// Test: TestScenariosAreBounded
	ScenarioActive = 16
	// ScenarioData bounds the data of an instance of a scenario's return probe, in bytes.
	// Test: TestScenariosAreBounded
	ScenarioData = 8192
	// ExploreSteps bounds the steps of a run of an exploration.
	// Test: TestEndless
	ExploreSteps = 5000
	// ExploreCall bounds the instructions of a call of an exploration.
	// Test: TestEndless
	ExploreCall = 10000
	// ExploreStates bounds the states and places that an exploration remembers, in some hundred MB.
	// Test: TestStatesThatAreTooMany
	ExploreStates = 8_000_000
	// PageCPUs bounds the processors of a machine on the page.
	// Test: TestWhatCannotBeWatched
	PageCPUs = 4
	// PageProbes bounds the probes of a machine on the page.
	// Test: TestWhatCannotBeWatched
	PageProbes = 8
	// PageExploreStates bounds the states that a search on the page remembers.
	// Test: TestAHuntThatIsTooLarge
	PageExploreStates = 400_000
	// PageOrders bounds the orders that a search on the page keeps, to be opened.
	// Test: TestAHuntThatIsTooLarge
	PageOrders = 600
	// PageSteps bounds the steps of a machine on the page.
	// Test: TestARunawayStops
	PageSteps = 5000
)
