package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/engine"
	"kprobelab/internal/integration/dumps"
	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/internal/integration/oracle"
	"kprobelab/internal/tinyprogram"
)

func TestMain(m *testing.M) {
	testscript.Main(m, commands)
}

// commands are the programs of the scripts.
var commands = map[string]func(){"kprobelab": main}

// The scripts run the program on the guest kernel; what they need of files is
// made in setUp.
func TestScripts(t *testing.T) {
	runScripts(t, "testdata/script", setUp)
}

// The same on the kernels that Debian ships, each as $VMLINUZ.
func TestScriptsOnRealKernels(t *testing.T) {
	for kernel, name := range oracle.Kernels {
		t.Run(name, func(t *testing.T) {
			file := oracle.Image(t, kernel)
			runScripts(t, "testdata/real", func(e *testscript.Env) error {
				e.Vars = append(e.Vars, "VMLINUZ="+file, "KERNEL="+name)
				return cutOff(file, filepath.Join(e.WorkDir, "truncated"))
			})
		})
	}
}

// The same on memory dumps of booted kernels, each as $DUMP.
func TestScriptsOnDumps(t *testing.T) {
	for _, name := range dumps.Kernels {
		t.Run(name, func(t *testing.T) {
			file := runs.File(t, name)
			cache := t.TempDir() // the kernel is asked once
			runScripts(t, "testdata/dump", func(e *testscript.Env) error {
				e.Vars = append(e.Vars, "DUMP="+file, "KERNEL="+name, "NO_COLOR=1", "KPROBELAB_CACHE="+cache)
				return head(file, filepath.Join(e.WorkDir, "truncated"))
			})
		})
	}
}

// onUnicorn reports whether guest code is executed by Unicorn by default.
func onUnicorn() bool { return strings.HasPrefix(engine.Version(), "Unicorn") }

// head copies the first mebibyte of a file.
func head(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o666)
}

// onWasm reports whether the scripts run the program as WebAssembly (make test-wasm).
func onWasm() bool {
	_, err := os.Stat(filepath.Join(os.Getenv("KPROBELAB_PROGRAM"), "kprobelab.wasm"))
	return err == nil
}

func runScripts(t *testing.T, dir string, setUp func(*testscript.Env) error) {
	update, _ := strconv.ParseBool(os.Getenv("UPDATE_SCRIPTS"))
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Setup: func(e *testscript.Env) error {
			instead(e)
			// testscript's own home is one folder of the system for all: root's runs would leave a cache there.
			e.Setenv("HOME", filepath.Join(e.WorkDir, ".home"))
			return setUp(e)
		},
		UpdateScripts: update,
		Condition: func(c string) (bool, error) {
			switch c {
			case "unicorn":
				return onUnicorn() && !onWasm(), nil
			case "alone": // the program can start no other
				return onWasm(), nil
			}
			return c == "first" && strings.HasSuffix(t.Name(), "/"+dumps.Kernels[0]), nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "mask": mask},
	})
}

// instead has the scripts run another build of the program, in the directory
// $KPROBELAB_PROGRAM, in place of the test's own.
func instead(e *testscript.Env) {
	if dir := os.Getenv("KPROBELAB_PROGRAM"); dir != "" {
		e.Setenv("PATH", dir+string(filepath.ListSeparator)+e.Getenv("PATH"))
	}
}

// cutOff copies the first half of a file.
func cutOff(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data[:len(data)/2], 0o666)
}

// stripped is the file without its symbol tables.
func stripped(file []byte) []byte {
	file = bytes.Clone(file)
	le := binary.LittleEndian
	headers := file[le.Uint64(file[0x28:]):]
	for n := range int(le.Uint16(file[0x3c:])) {
		kind := headers[64*n+4:]
		if elf.SectionType(le.Uint32(kind)) == elf.SHT_SYMTAB {
			le.PutUint32(kind, uint32(elf.SHT_NULL))
		}
	}
	return file
}

// setUp writes a module, and images that are not what they should be.
func setUp(e *testscript.Env) error {
	e.Vars = append(e.Vars, "NO_COLOR=1")
	guest := kprobelab.GuestELF()
	arm := bytes.Clone(guest)
	arm[18], arm[19] = 0xb7, 0 // e_machine: AArch64
	// f0 writes "hello" and calls f1(3), whose result is its exit code.
	program, err := tinyprogram.Build([]byte("hello\n\x00text"),
		tinyprogram.Function{Name: "_start", Text: "mov $0x1,%eax\nmov $0x1,%edi\nmov $0x402000,%esi\nmov $0x6,%edx\nsyscall\n" +
			"mov $0x3,%edi\ncall 0x401080\nmov %eax,%edi\nmov $0x3c,%eax\nsyscall"},
		tinyprogram.Function{Name: "twice", Text: "push %rbx\nlea (%rdi,%rdi,1),%eax\npop %rbx\nret"},
		tinyprogram.Function{Name: "privileged", Text: "hlt"})
	if err != nil {
		return err
	}
	// The child ends with 4 after a call, its parent with 2 more.
	forks, err := tinyprogram.Build(nil,
		tinyprogram.Function{Name: "_start", Text: "mov $0x39,%eax\nsyscall\ntest %eax,%eax\nje child\ncall 0x401080\nsub $0x8,%rsp\nmov %rsp,%rsi\nxor %edi,%edi\nxor %edx,%edx\n" +
			"xor %r10d,%r10d\nmov $0x3d,%eax\nsyscall\nmov (%rsp),%edi\nshr $0x8,%edi\nadd $0x2,%edi\nmov $0x3c,%eax\nsyscall\nchild: call 0x401080\nmov $0x4,%edi\nmov $0x3c,%eax\nsyscall"},
		tinyprogram.Function{Name: "both", Text: "push %rbx\npop %rbx\nret"})
	if err != nil {
		return err
	}
	// It comes to a nop of ten bytes twice, and ends with 6.
	nops, err := tinyprogram.Build(nil,
		tinyprogram.Function{Name: "_start", Text: "call 0x401080\ncall 0x401080\nmov $0x6,%edi\nmov $0x3c,%eax\nsyscall"},
		tinyprogram.Function{Name: "idle", Text: strings.Repeat("nop\n", 10) + "ret"})
	if err != nil {
		return err
	}
	noText := []byte{0x1f, 0x8b, 0, 0x80, 0xff, 0x1b, '\n'}
	noTexts, err := tinyprogram.Build(noText,
		tinyprogram.Function{Name: "_start", Text: "mov $0x1,%eax\nmov $0x1,%edi\nmov $0x402000,%esi\nmov $0x7,%edx\nsyscall\nxor %edi,%edi\nmov $0x3c,%eax\nsyscall"})
	if err != nil {
		return err
	}
	copy(nops[tinyprogram.Offset(1):], []byte{0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0})
	for name, data := range map[string][]byte{
		"bytes": noTexts, "bytes.want": noText,
		"prog": program, "nops": nops, "forks": forks, "prog.stripped": stripped(program), "guest.elf": guest, "truncated.elf": guest[:len(guest)/2], "arm.elf": arm,
		"stripped.elf": stripped(guest), "empty": nil, "demo.ko": kprobelab.GuestModule(), "large": make([]byte, 1<<20),
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
	clock    = regexp.MustCompile(`\b\d+\.\d{6,9}:`)
)

// mask is "mask FILE": prints the file with addresses and times made the same,
// for they depend on the compiler of the guest kernel.
func mask(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: mask FILE")
	}
	_, err := ts.Stdout().Write([]byte(masked(ts.ReadFile(args[0]))))
	ts.Check(err)
}

func TestExitCodeOfNoError(t *testing.T) {
	require.Equal(t, exitOK, exitCode(nil))
	require.Equal(t, exitImage, exitCode(os.ErrNotExist))
	require.Equal(t, exitUsage, exitCode(errors.New("anything else")))
}
