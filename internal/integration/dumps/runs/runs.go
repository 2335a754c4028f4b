// Package runs finds memory dumps for tests that let a dump's kernel run, which not every
// engine can.
//
// It must not know what is in a dump.
package runs

import (
	"testing"

	"kprobelab/internal/engine"
	"kprobelab/internal/integration/dumps"
	"kprobelab/machine"
)

// File is dumps.File; the test is skipped on an engine that runs no dump.
func File(tb testing.TB, name string) string {
	tb.Helper()
	if e, err := engine.Named(""); err != nil || e.Name != "unicorn" {
		tb.Skip(machine.ErrNeedsUnicorn)
	}
	return dumps.File(tb, name)
}
