package booted

import (
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/dumps"
	"kprobelab/kimage"
)

// reader returns a program that reads dumps: the one in the variable, or the one that make
// conformance-readers has unpacked, or the system's, if that works.
func reader(t *testing.T, variable, name, system string, works ...string) string {
	t.Helper()
	for _, f := range []string{os.Getenv(variable), filepath.Join(root, ".cache/tools", name+".sh"), system} {
		path, err := exec.LookPath(f)
		if err != nil || exec.CommandContext(t.Context(), path, works...).Run() != nil {
			continue
		}
		path, err = filepath.Abs(path)
		require.NoError(t, err)
		return path
	}
	t.Skipf("no %s here (make conformance-readers fetches it)", name)
	return ""
}

func output(t *testing.T, input, program string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, args...)
	c.Stdin = strings.NewReader(input)
	c.Env = append(os.Environ(), "TERM=dumb")
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// opened returns a dump with the tasks by number, to compare with.
func opened(t *testing.T, name string) (file string, img *kimage.Image, tasks map[int]string) {
	t.Helper()
	file = dumps.File(t, name)
	img, err := kimage.Open(file, nil)
	require.NoError(t, err)
	tasks = map[int]string{}
	for _, k := range img.Tasks() {
		tasks[k.PID] = k.Comm
	}
	require.Equal(t, "init", tasks[1])
	return file, img, tasks
}

// debugInfo returns the path of the kernel's vmlinux with DWARF, empty if it is absent.
func debugInfo(t *testing.T, img *kimage.Image) string {
	t.Helper()
	release := img.Fact("release").Value
	file := dumps.DebugInfo(release)
	if file == "" {
		t.Logf("no vmlinux with debugging information of %s: tasks are not compared", release)
	}
	return file
}

var crashTask = regexp.MustCompile(`(?m)^>? +(\d+) +\d+ +\d+ +[0-9a-f]{16} .* (\S+)$`)

// crash tells the release; with debugging information it lists the tasks that we list.
func TestCrashOpensADump(t *testing.T) {
	crash := reader(t, "KPROBELAB_CRASH", "crash", "crash", "--version")
	for _, name := range dumps.Kernels {
		t.Run(name, func(t *testing.T) {
			file, img, want := opened(t, name)
			require.Equal(t, img.Fact("release").Value, strings.TrimSpace(output(t, "", crash, "--osrelease", file)))
			vmlinux := debugInfo(t, img)
			if vmlinux == "" {
				return
			}
			got := map[int]string{}
			for _, m := range crashTask.FindAllStringSubmatch(output(t, "set scroll off\nps\nquit\n", crash, "-s", vmlinux, file), -1) {
				pid, err := strconv.Atoi(m[1])
				require.NoError(t, err)
				if pid != 0 { // the idle task of a CPU
					got[pid] = strings.Trim(m[2], "[]")
				}
			}
			require.Equal(t, want, got)
		})
	}
}

// drgn reads the memory that we read, through the guest's page tables; with debugging information
// it lists the same tasks, and unwinds the running one from its present instruction.
func TestDrgnOpensADump(t *testing.T) {
	drgn := reader(t, "KPROBELAB_DRGN", "drgn", "python3", "-c", "import drgn")
	for _, name := range dumps.Kernels {
		t.Run(name, func(t *testing.T) {
			file, img, want := opened(t, name)
			at := img.Lookup("linux_banner")[0].Addr
			b := make([]byte, 64)
			require.Equal(t, len(b), img.CodeAt(at, b))
			require.Equal(t, hex.EncodeToString(b)+"\n", output(t, fmt.Sprintf(drgnMemory, file, uint64(at), len(b)), drgn, "-"))
			vmlinux := debugInfo(t, img)
			if vmlinux == "" {
				return
			}
			got := map[int]string{}
			frames := ""
			for line := range strings.Lines(output(t, fmt.Sprintf(drgnTasks, file, vmlinux), drgn, "-")) {
				key, value, ok := strings.Cut(strings.TrimSpace(line), " ")
				require.True(t, ok, line)
				if key == "frames" {
					frames = value
					continue
				}
				pid, err := strconv.Atoi(key)
				require.NoError(t, err, line)
				got[pid] = value
			}
			require.Equal(t, want, got)
			require.Regexp(t, `^\S*getppid .*do_syscall_64 `, frames)
		})
	}
}

const drgnMemory = `
import drgn
p = drgn.Program()
p.set_core_dump(%q)
print(p.read(%#x, %d).hex())
`

const drgnTasks = `
import drgn
from drgn.helpers.linux.pid import for_each_task
p = drgn.Program()
p.set_core_dump(%q)
p.load_debug_info([%q])
for t in for_each_task(p):
    print(t.pid.value_(), t.comm.string_().decode())
print("frames", " ".join(f.name or "?" for f in p.stack_trace(1)))
`
