//go:build !linux

package vmcore

import "os"

// largeFiles is the folder for large temporary files: the system's.
const largeFiles = ""

// inMemory cannot tell here.
func inMemory(string) bool { return false }

// hiddenFile makes a temporary file without a name. Windows keeps the name until the
// folder of temporary files is cleared.
func hiddenFile() (*os.File, error) {
	f, err := os.CreateTemp("", "dump")
	if err == nil {
		_ = os.Remove(f.Name())
	}
	return f, err
}
