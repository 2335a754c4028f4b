package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"kprobelab/guestkernel"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"kprobelab": main})
}

// The scripts run the program on the guest kernel; what they need of files is
// made in setUp.
func TestScripts(t *testing.T) {
	update, _ := strconv.ParseBool(os.Getenv("UPDATE_SCRIPTS"))
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		Setup:         setUp,
		UpdateScripts: update,
		Condition:     func(c string) (bool, error) { return c == "engine" && engineMissing == nil, nil },
		Cmds:          map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "mask": mask},
	})
}

// setUp writes a module, and images that are not what they should be.
func setUp(e *testscript.Env) error {
	e.Vars = append(e.Vars, "NO_COLOR=1")
	elf := guestkernel.ELF()
	arm := bytes.Clone(elf)
	arm[18], arm[19] = 0xb7, 0 // e_machine: AArch64
	for name, data := range map[string][]byte{
		"guest.elf": elf, "truncated.elf": elf[:len(elf)/2], "arm.elf": arm,
		"empty": nil, "demo.ko": guestkernel.Module(),
	} {
		if err := os.WriteFile(filepath.Join(e.WorkDir, name), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// exits is "exits CODE COMMAND ARG…": the command has to end with that code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

var (
	address  = regexp.MustCompile(`ffffffff[0-9a-f]{8}`)
	duration = regexp.MustCompile(`\b\d+ ns\b`)
)

// mask is "mask FILE": prints the file with addresses and times made the same,
// for they are the guest kernel's compiler's affair.
func mask(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: mask FILE")
	}
	text := address.ReplaceAllString(ts.ReadFile(args[0]), "ADDRESS")
	_, err := ts.Stdout().Write([]byte(duration.ReplaceAllString(text, "N ns")))
	ts.Check(err)
}

func TestExitCodeOfNoError(t *testing.T) {
	require.Equal(t, exitOK, exitCode(nil))
	require.Equal(t, exitImage, exitCode(os.ErrNotExist))
	require.Equal(t, exitUsage, exitCode(errors.New("anything else")))
}
