//go:build !linux

package bounded

import (
	"os"
	"time"
)

// openPipe waits for a writer, however long.
func openPipe(name string, _ time.Duration) (*os.File, error) { return os.Open(name) }
