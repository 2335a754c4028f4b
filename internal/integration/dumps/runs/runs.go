// Package runs finds memory dumps for tests that let a dump's kernel run, which not every
// engine can.
//
// It must not know what is in a dump.
package runs

import (
	"os"
	"slices"
	"strings"
	"testing"

	"kprobelab/internal/engine"
	"kprobelab/internal/integration/dumps"
)

// File is dumps.File; the test is skipped on an engine that runs no dump.
func File(tb testing.TB, name string) string {
	tb.Helper()
	if !slices.Contains(engine.Names(), "unicorn") && os.Getenv("CGO_ENABLED") != "0" && strings.Contains(os.Getenv("CGO_LDFLAGS"), "unicorn") {
		tb.Fatal("make env has set CGO_LDFLAGS for Unicorn, and GOFLAGS has no -tags=unicorn any more: keep it beside your own flags")
	}
	if e, err := engine.Named(""); testing.Short() && (err != nil || e.Name != "unicorn") {
		tb.Skip("short: booted kernels run on unicorn")
	}
	return dumps.File(tb, name)
}
