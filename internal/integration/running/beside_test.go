package running

import (
	"fmt"
	"io/fs"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab"
	qemuboot "kprobelab/boot"
	"kprobelab/booted"
	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/internal/qemu"
	"kprobelab/kimage"
	"kprobelab/tracing"
)

// probed are the functions that one round of opening, reading and closing a file comes
// through once.
var probed = []string{"do_sys_openat2", "vfs_read", "filp_close"}

// besideWays are the ways to probe them, with the marks of such a probe in kprobes/list.
var besideWays = []struct {
	name, list       string
	inside, optimize bool
}{
	{name: "unprobed"},
	{name: "int3", list: "k", inside: true},
	{name: "optimized", list: "[OPTIMIZED]", inside: true, optimize: true},
	{name: "ftrace", list: "[FTRACE]"},
}

// BenchmarkFilesBesideQEMU is a program that opens, reads and closes a file b.N times, with an
// event of kprobe_events in each of three functions on the way: on a kernel booted under QEMU's
// software emulation, with the real kernel's own probes, and here on a dump of the same boot. Real
// time, the program's start included.
func BenchmarkFilesBesideQEMU(b *testing.B) {
	dir := b.TempDir()
	program := filepath.Join(dir, "files")
	if out, err := exec.Command("gcc", "-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none", "-o", program, "testdata/files.S").CombinedOutput(); err != nil {
		b.Skipf("no gcc that builds the program: %v\n%s", err, out)
	}
	o := besideOptions(b, program)
	dump := filepath.Join(dir, "kernel.core")
	places := map[string][]string{}
	require.NoError(b, qemuboot.Boot(b.Context(), o, func(g *qemuboot.Guest) error {
		if _, err := g.Save(&qemuboot.Dump{File: dump, Format: qemuboot.ELF}); err != nil {
			return err
		}
		k := bootFile(b, dump, &kprobelab.Options{Optimize: true, Budget: budget})
		for _, w := range besideWays {
			for _, f := range probed {
				if w.list != "" {
					at := k.place(f, w.inside, w.optimize)
					places[w.name] = append(places[w.name], fmt.Sprintf("p:%s %s+%d", f, f, at-k.Image.Lookup(f)[0].Addr))
				}
			}
		}
		for _, w := range besideWays {
			b.Run("qemu/"+w.name, func(b *testing.B) { there(b, g, places[w.name], w.optimize, w.list) })
		}
		return nil
	}))
	for _, w := range besideWays {
		b.Run("here/"+w.name, func(b *testing.B) { here(b, dump, places[w.name], w.optimize, w.list) })
	}
}

// besideOptions boot the kernel of the dump 6.1, with the program.
func besideOptions(b *testing.B, program string) *qemuboot.Options {
	found, err := qemu.Find(b.Context(), func() (string, error) { return "../../../.cache/tools/qemu.sh", nil })
	if err != nil {
		b.Skipf("no QEMU here (make dumps fetches one): %v", err)
	}
	dump, err := kimage.Open(runs.File(b, "6.1"), nil)
	require.NoError(b, err)
	files, err := filepath.Glob("../../../.cache/kernel/*/vmlinuz-" + dump.Fact("release").Value)
	require.NoError(b, err)
	if len(files) == 0 {
		b.Skip("no vmlinuz of the dump's kernel in .cache/kernel")
	}
	kernel, err := qemuboot.Open(files[0], nil)
	require.NoError(b, err)
	guest, err := qemuboot.Files(program, "/bin/files")
	require.NoError(b, err)
	return &qemuboot.Options{
		QEMU: found.Path, Kernel: kernel, CPU: kimage.DefaultCPU, CPUs: 1, Megabytes: 128,
		Files: guest, Limit: 30 * time.Minute,
	}
}

// rounds are the arguments that make the program do n rounds, in thousands.
func rounds(n int) []string {
	return append([]string{"/bin/files"}, slices.Repeat([]string{"x"}, (n-1)/1000)...)
}

func here(b *testing.B, dump string, events []string, optimize bool, list string) {
	k := bootFile(b, dump, &kprobelab.Options{Optimize: true, Budget: math.MaxInt64})
	require.NoError(b, k.Kprobes.SetOptimization(optimize))
	t, err := tracing.New(k.Kprobes, k.Machine, &tracing.Options{Source: k.Image})
	require.NoError(b, err)
	defer t.Close()
	for _, e := range events {
		require.NoError(b, t.Write("kprobe_events", e, true))
	}
	if events != nil {
		require.NoError(b, t.Write("events/enable", "1", true))
		require.NoError(b, k.Settle())
		text, err := fs.ReadFile(t, "kprobes/list")
		require.NoError(b, err)
		require.Equal(b, len(probed), strings.Count(string(text), list), string(text))
	}
	b.ResetTimer()
	code, err := k.Exec(&booted.Program{Args: rounds(b.N)})
	b.StopTimer()
	require.NoError(b, err)
	require.Zero(b, code)
}

func there(b *testing.B, g *qemuboot.Guest, events []string, optimize bool, list string) {
	run := func(args ...string) {
		exit, err := g.Exec(&booted.Program{Args: args, Dir: "/"})
		require.NoError(b, err)
		require.Zero(b, exit.Code)
	}
	require.NoError(b, g.Write("/proc/sys/debug/kprobes-optimization", map[bool]string{true: "1", false: "0"}[optimize]))
	if events != nil {
		require.NoError(b, g.Trace(strings.Join(events, "\n"), nil))
		const optimizer = 100 // reads of a file take longer than the optimizer's delay
		text := ""
		for range optimizer {
			var err error
			text, err = g.Read("/sys/kernel/debug/kprobes/list")
			require.NoError(b, err)
			if strings.Count(text, list) == len(probed) {
				break
			}
		}
		require.Equal(b, len(probed), strings.Count(text, list), text)
	}
	b.ResetTimer()
	run(rounds(b.N)...)
	b.StopTimer()
	for _, e := range events {
		name, _, _ := strings.Cut(strings.TrimPrefix(e, "p:"), " ")
		require.NoError(b, g.Write("/sys/kernel/tracing/events/kprobes/"+name+"/enable", "0"))
		require.NoError(b, g.Write("/sys/kernel/tracing/kprobe_events", "-:"+name+"\n"))
	}
}
