// Package unnoted makes dumps without notes of control registers of the tests' dumps, as a
// crashed kernel's own are.
//
// It must not know the use of such a dump.
package unnoted

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kprobelab/internal/integration/dumps"
	"kprobelab/kimage/vmcore"
)

// File is a copy of the dump NAME.core with the general registers and VMCOREINFO alone;
// the test is skipped without that dump.
func File(tb testing.TB, name string) string {
	tb.Helper()
	to := filepath.Join(tb.TempDir(), name+".core")
	if err := write(to, dumps.File(tb, name)); err != nil {
		tb.Fatal(err)
	}
	return to
}

func write(to, from string) error {
	core, err := vmcore.Open(from)
	if err != nil {
		return err
	}
	img := core.Image()
	img.CPUs = slices.Clone(img.CPUs)
	for i := range img.CPUs {
		c := &img.CPUs[i]
		c.Control, c.FSBase, c.GSBase = nil, 0, 0
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	return errors.Join(vmcore.Write(f, img), f.Close())
}
