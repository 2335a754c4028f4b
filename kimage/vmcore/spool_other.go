//go:build !linux

package vmcore

import "os"

// hiddenFile makes a temporary file without a name. Windows keeps the name until the
// folder of temporary files is cleared.
func hiddenFile() (*os.File, error) {
	f, err := os.CreateTemp("", "dump")
	if err == nil {
		_ = os.Remove(f.Name())
	}
	return f, err
}
