package guestkernel

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/boot"
)

// compilerHere names the gcc of this machine, or skips the test.
func compilerHere(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"gcc", "ld", "objcopy", "make", "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s to rebuild the guest kernel with", tool)
		}
	}
	out, err := exec.Command("gcc", "--version").Output()
	if err != nil {
		t.Skipf("gcc --version: %v", err)
	}
	first, _, _ := bytes.Cut(out, []byte("\n"))
	return string(first)
}

func TestRebuildsToTheSameBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("rebuilding takes seconds")
	}
	if here := compilerHere(t); here != kprobelab.GuestCompiler() {
		t.Skipf("the files were built with %q, here is %q: the same sources may become other bytes", kprobelab.GuestCompiler(), here)
	}
	// A copy in another folder: the folder's name must not appear in the result.
	dir := t.TempDir()
	src := filepath.Join(dir, "testdata/guest")
	require.NoError(t, os.CopyFS(src, os.DirFS("../../../testdata/guest")))
	ports, err := os.ReadFile("../../../emu/ports.h")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "emu"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "emu/ports.h"), ports, 0o644))
	out := filepath.Join(dir, "out")
	require.NoError(t, os.Mkdir(out, 0o755))
	tidy := filepath.Join(dir, "btftidy")
	build := exec.Command("go", "build", "-o", tidy, "btftidy.go")
	build.Dir = "../../../testdata/guest"
	log, err := build.CombinedOutput()
	require.NoError(t, err, string(log))

	cmd := exec.Command("make", "-C", src, "OUT="+out, "BTFTIDY="+tidy)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "MAKEFLAGS=", "MAKELEVEL=")
	log, err = cmd.CombinedOutput()
	require.NoError(t, err, string(log))
	src = filepath.Join(dir, "testdata/init")
	require.NoError(t, os.CopyFS(src, os.DirFS("../../../testdata/init")))
	cmd = exec.Command("make", "-C", src, "OUT="+out, "BOOT="+out, "BOOTED="+out)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "MAKEFLAGS=", "MAKELEVEL=")
	log, err = cmd.CombinedOutput()
	require.NoError(t, err, string(log))
	calls, err := os.ReadFile("../../../testdata/calls.elf")
	require.NoError(t, err)
	registers, err := os.ReadFile("../../../testdata/registers.elf")
	require.NoError(t, err)
	breakpoints, err := os.ReadFile("../../../testdata/breakpoints.elf")
	require.NoError(t, err)
	rights, err := os.ReadFile("../../../testdata/rights.elf")
	require.NoError(t, err)
	race, err := os.ReadFile("../../../testdata/race.elf")
	require.NoError(t, err)
	supervisor, err := os.ReadFile("../../../booted/supervisor.elf")
	require.NoError(t, err)
	for name, want := range map[string][]byte{
		"supervisor.elf": supervisor,
		"guest.elf":      kprobelab.GuestELF(), "demo.ko": kprobelab.GuestModule(), "init.elf": boot.Init, "calls.elf": calls,
		"registers.elf": registers, "breakpoints.elf": breakpoints, "rights.elf": rights, "race.elf": race,
	} {
		got, err := os.ReadFile(filepath.Join(out, name))
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got), "%s differs from its sources: run make guest", name)
	}
}
