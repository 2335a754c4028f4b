package bounded

import (
	"io/fs"
	"os"
	"time"
)

// writerComes is the longest time that a FIFO may have no writer. A shell that is about to start
// one needs milliseconds.
const writerComes = 3 * time.Second

// Open opens a file for reading. A FIFO without a writer is an error; Open does not wait for a
// writer for ever.
func Open(name string) (*os.File, error) {
	if st, err := os.Stat(name); err == nil && st.Mode()&fs.ModeNamedPipe != 0 {
		return openPipe(name, writerComes)
	}
	return os.Open(name)
}
