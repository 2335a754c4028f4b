package bounded

// Files beside an image.
const (
	// BenchFile bounds a file of measurements that bench reads, in bytes.
	// Test: TestFilesThatAreTooLong
	BenchFile = 16 << 20
	// TracingFile bounds the file of boot --tracing, in bytes.
	// Test: TestFilesThatAreTooLong
	TracingFile = 1 << 20
	// RawCode bounds the code that decode --raw reads, in bytes.
	// Test: TestFilesThatAreTooLong
	RawCode = 1 << 30
	// Object bounds the object that the assembler makes for explain --asm, in bytes.
	// Test: TestObjectsThatAreTooLarge
	Object = 64 << 20
	// Readme bounds a README of tracefs, in bytes. A kernel's has 15 kB.
	// Test: TestFilesThatAreTooLong
	Readme = 1 << 20
	// SourceText bounds a file of source text, in bytes.
	// Test: TestSourcesThatAreTooLong
	SourceText = 16 << 20
	// ProgramFile bounds a program of uprobe or a file of its --file, in bytes.
	// Test: TestFilesThatAreTooLong
	ProgramFile = 512 << 20
	// ProgramFiles bounds the files of the folders that --file names.
	// Test: TestFilesThatAreTooMany
	ProgramFiles = 20_000
	// ProgramBytes bounds the files that --file names, in bytes, all together.
	// Test: TestFilesThatAreTooMany
	ProgramBytes = 1 << 30
	// Script bounds a script's text, in bytes.
	// Test: TestFilesThatAreTooLong
	Script = 1 << 20
	// CheckInput bounds the lists of probes that check reads, in bytes.
	// Test: TestFilesThatAreTooLong
	CheckInput = 64 << 20
	// Waivers bounds a file of waivers, in bytes.
	// Test: TestWaiversThatAreNone
	Waivers = 256 << 10
	// ListLine bounds a line of a list of probes or points, in bytes.
	// Test: TestReadPoints
	ListLine = 1 << 20
	// ListFile bounds a list of points, unpacked, in bytes.
	// Test: TestListsThatAreTooLong
	ListFile = 1 << 30
	// DecodeLine bounds a line of decode --stdin, in bytes.
	// Test: TestJSONLinesAnswersEachLine
	DecodeLine = 1 << 20
	// GuestFiles bounds the files that boot --file takes along.
	// Test: TestFilesOfAFolder
	GuestFiles = 100_000
	// GuestFile bounds a file that is read of a booted guest, in bytes.
	// Test: TestFilesOfTheGuestThatAreTooLong
	GuestFile = 64 << 20
	// GuestOutput bounds what is kept of the output of a program in a booted guest, in bytes.
	// Test: TestOutputThatIsTooMuch
	GuestOutput = 64 << 20
	// PageFile bounds the page that serve --page names, in bytes.
	// Test: TestFilesThatAreTooLong
	PageFile = 64 << 20
	// PageImage bounds an image that the page takes, in bytes.
	// Test: TestImagesThatAreTooLarge
	PageImage = 512 << 20
	// PageRequest bounds a request of the page, in bytes.
	// Test: TestBadInputGetsASentence
	PageRequest = 1 << 20
	// PageCode bounds the code that the page explains at once, in bytes.
	// Test: TestBadInputGetsASentence
	PageCode = 4096
	// FilmFile bounds a film that is read, in bytes.
	// Test: TestDamagedFilms
	FilmFile = 16 << 20
	// FilmText bounds a film's text, unpacked, in bytes.
	// Test: TestDamagedFilms
	FilmText = 64 << 20
	// FilmLine bounds a line of it, in bytes.
	// Test: TestDamagedFilms
	FilmLine = 1 << 20
	// FilmMemory bounds the memory that the states of a film take beside its text, in bytes.
	// Test: TestDamagedFilms
	FilmMemory = 128 << 20
	// FilmStates bounds the states of a film. A run that has more says how many it left out.
	// Test: TestAFilmThatIsFull
	FilmStates = 20_000
	// FilmCPUs bounds the processors in a film.
	// Test: TestDamagedFilms
	FilmCPUs = 8
	// FilmStack bounds the words of a stack in a film.
	// Test: TestDamagedFilms
	FilmStack = 64
	// FilmCode bounds the functions, slots and detour buffers in a film.
	// Test: TestDamagedFilms
	FilmCode = 64
	// FilmCodeSize bounds one of them, in bytes.
	// Test: TestDamagedFilms
	FilmCodeSize = 4096
	// PageLesson bounds a lesson's file, in bytes.
	// Test: TestLessonsThatCannotBePlayed
	PageLesson = 64 << 10
	// PageLessons bounds the lessons in a folder of serve --lessons.
	// Test: TestLessonsOfAFolder
	PageLessons = 200
	// UprobeFile bounds a file of a guest that uprobes are put into, in bytes.
	// Test: TestProgramsOfTheGuestThatAreTooLong
	UprobeFile = 256 << 20
	// AnswersFile bounds a file with kept answers, in bytes.
	// Test: TestCacheIsNotTrusted
	AnswersFile = 64 << 10
	// Answers bounds the answers that such a file has.
	// Test: TestCacheIsNotTrusted
	Answers = 200
	// AnswerText bounds a text of such an answer, in bytes.
	// Test: TestCacheIsNotTrusted
	AnswerText = 1000
	// AssemblyLines bounds the lines of assembly that are assembled at once.
	// Test: TestAssemblyIsBounded
	AssemblyLines = 500
	// AssemblyLine bounds a line of assembly, in bytes.
	// Test: TestAssemblyIsBounded
	AssemblyLine = 200
	// AssemblyPasses bounds how often branches may make each other longer.
	// Test: TestBranchesThatPushEachOther
	AssemblyPasses = 64
)

// Archives.
const (
	// ArchiveFile bounds an archive's file, in bytes.
	// Test: TestFilesThatAreNoArchive
	ArchiveFile = 256 << 20
	// ArchiveHeader bounds an archive's header, in bytes.
	// Test: TestPartsThatAreTooLarge
	ArchiveHeader = 1 << 20
	// ArchiveSection bounds a section of an archive, unpacked, in bytes.
	// Test: TestPartsThatAreTooLarge
	ArchiveSection = 64 << 20
	// ArchiveText bounds the texts of functions that a group of archives shares, in bytes.
	// Test: TestTextsThatAreTooLong
	ArchiveText = 256 << 20
	// ArchiveNesting bounds the levels of structures in structures of an archive's types.
	// Test: TestStructuresInStructures
	ArchiveNesting = 64
)

// Packages.
const (
	// PackageEntries bounds the files of a package that is unpacked. Debian's largest of a kernel has 9,000.
	// Test: TestHostilePackages
	PackageEntries = 200_000
	// PackageBytes bounds the files of a package, unpacked, in bytes. Debugging symbols of a kernel with its modules have 7 GiB.
	// Test: TestHostilePackages
	PackageBytes = 32 << 30
	// PackageLinks bounds the links of a package that lead to each other on the way to one file.
	// Test: TestHostilePackages
	PackageLinks = 40
	// PackagePath bounds a path in a package, in bytes (PATH_MAX).
	// Test: TestHostilePackages
	PackagePath = 4096
	// PackageDepth bounds the folders of a path in a package.
	// Test: TestHostilePackages
	PackageDepth = 100
	// PackageFile bounds a package's file, in bytes.
	// Test: TestPackagesThatAreTooLong
	PackageFile = 8 << 30
	// PackageHeader bounds the header of an .rpm, and the control file of a .deb, in bytes.
	// Test: TestHostileRPMs
	PackageHeader = 64 << 20
	// SourcesFile bounds a file of apt's sources or configuration, in bytes, and a file of keys.
	// Test: TestSourcesThatAreTooLong
	SourcesFile = 4 << 20
	// SignedIndex bounds the signed index of a suite (InRelease), in bytes. Debian's largest has 300 kB.
	// Test: TestHostileIndexes
	SignedIndex = 16 << 20
	// PackageIndex bounds the list of a suite's packages, unpacked, in bytes. Debian's largest has 65 MB.
	// Test: TestHostileIndexes
	PackageIndex = 512 << 20
	// IndexLine bounds a line of a list of packages, in bytes.
	// Test: TestHostileIndexes
	IndexLine = 1 << 20
	// Dependencies bounds the packages that one package needs, all together.
	// Test: TestDependenciesWithoutEnd
	Dependencies = 2000
)

// Shards.
const (
	// Shards bounds the shards of one command line.
	// Test: TestPartsThatAreNone
	Shards = 1000
	// ShardFiles bounds the files that are merged at once: of a shard that died there can be more than one.
	// Test: TestTooManyFiles
	ShardFiles = 2000
	// ShardItems bounds the items of one command line.
	// Test: TestHostileShards
	ShardItems = 1 << 22
	// ShardHeader bounds the first line of a shard's output, in bytes.
	// Test: TestHostileShards
	ShardHeader = 1 << 20
	// ShardLine bounds the result of an item, in bytes.
	// Test: TestHostileShards
	ShardLine = 128 << 20
)
