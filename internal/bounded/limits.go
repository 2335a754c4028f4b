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
	// DumpHeld bounds the bytes of a dump that are kept unpacked in memory, all its forms together.
	// Test: TestDumpsThatTakeMemory
	DumpHeld = 1 << 30
)
