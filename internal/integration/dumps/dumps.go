// Package dumps finds memory dumps of booted kernels, for tests.
//
// They are not part of the repository. They are looked for in $KPROBELAB_DUMPS,
// else in .cache/dumps of the repository, as NAME.core; where one is absent, a
// test is skipped with that reason.
//
// DebugInfo finds a dumped kernel's debugging information.
//
// It must not know what is in a dump.
package dumps

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// Kernels are the dumps of one processor that tests are run on.
var Kernels = []string{"6.1", "6.12", "5.10"}

// Running are the dumps with which the machine itself is tested: Kernels, one of two processors,
// and the newest kernel's.
var Running = append([]string{"6.1.smp2", "newest"}, Kernels...)

// Between are dumps of the only kernels whose nops of five bytes become calls under uprobes; make
// dumps makes them when they are named: DUMPS='6.18 7.1'.
var Between = []string{"6.18", "7.1"}

// short are the dumps that tests use with -short.
var short = []string{"6.1", "newest"}

// Later is $KPROBELAB_DUMPS in make test: it leaves every test on a dump to make check.
const Later = "later"

// Dir is the folder of the dumps, which may be absent.
func Dir() string {
	if dir := os.Getenv("KPROBELAB_DUMPS"); dir != "" {
		return dir
	}
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..", ".cache", "dumps")
}

// File returns the path of the dump NAME.core, as "6.1" or "6.1.smp2". The test is skipped without
// it; with -short, all but two kernels are skipped.
func File(tb testing.TB, name string) string {
	tb.Helper()
	if os.Getenv("KPROBELAB_DUMPS") == Later {
		tb.Skip("make check runs it: a booted kernel's dump is needed (make dumps makes them)")
	}
	if testing.Short() && !slices.Contains(short, name) {
		tb.Skip("shortened: the dumps of 6.1 and of the newest kernel stand for all")
	}
	file := filepath.Join(Dir(), name+".core")
	if _, err := os.Stat(file); err != nil {
		tb.Skip("no dump of a booted kernel: " + name + ".core in .cache/dumps, or in $KPROBELAB_DUMPS (make dumps makes them)")
	}
	return file
}

// One is for a test that takes long on each kernel: -short runs it on 6.1 only.
func One(tb testing.TB, name string) {
	tb.Helper()
	if testing.Short() && name != short[0] {
		tb.Skip("shortened: the dump of 6.1 stands for all")
	}
}

// Twin is for a test of all of Running: where the dump of 6.1 with two processors is there, it stands for the one with a
// single processor. KPROBELAB_SOAK runs both, and -short only has the latter.
func Twin(tb testing.TB, name string) {
	tb.Helper()
	if name != short[0] || testing.Short() || os.Getenv("KPROBELAB_SOAK") != "" {
		return
	}
	if _, err := os.Stat(filepath.Join(Dir(), name+".smp2.core")); err == nil {
		tb.Skip("the same kernel with two processors is tried; KPROBELAB_SOAK=1 asks both")
	}
}

// Ends is for a test of all of Running that takes long and is of programs rather than of the machine: the oldest and the
// newest kernel stand for all. KPROBELAB_SOAK runs it on each, and -short on none.
func Ends(tb testing.TB, name string) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("shortened: make check runs it on the oldest and the newest kernel")
	}
	if name != "5.10" && name != "newest" && os.Getenv("KPROBELAB_SOAK") == "" {
		tb.Skip("the oldest and the newest kernel are tried; KPROBELAB_SOAK=1 asks all")
	}
}

// DebugInfo returns the path of a kernel's vmlinux with DWARF, as scripts/kernel.sh --debuginfo
// leaves it; empty if it is absent: it is 600 MB.
func DebugInfo(release string) string {
	_, file, _, _ := runtime.Caller(0)
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "..", "..", "..", ".cache", "kernel", "*", "vmlinux-"+release))
	if len(files) == 0 {
		return ""
	}
	return files[0]
}
