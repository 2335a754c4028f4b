//go:build !unix || solaris || illumos || aix

package download

import (
	"context"
	"os"
	"path/filepath"
)

// Lock makes the folder of a name. This system has no locks that end with their process: two that fetch the same at
// once fetch it twice.
func Lock(_ context.Context, name string, _ func()) (func(), error) {
	return func() {}, os.MkdirAll(filepath.Dir(name), 0o700)
}
