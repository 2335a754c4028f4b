package running

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/booted"
	"kprobelab/internal/integration/dumps"
	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/kimage"
	"kprobelab/machine"
	"kprobelab/watch"
	"kprobelab/x86"
)

var update = flag.Bool("update", false, "record testdata/breakpoints.txt anew on this machine's processor")

const (
	breakpointsELF = "../../../testdata/breakpoints.elf"
	recorded       = "testdata/breakpoints.txt"
)

// TestBreakpointsOfTheGuests: a program's own hardware breakpoints, by perf_event_open and by
// ptrace, act as on a processor (an AMD EPYC, Linux 6.18): the same ones fire, at the same ip, in
// the same order, by the same signals. QUESTIONS is the number of random ones, of all kernels.
func TestBreakpointsOfTheGuests(t *testing.T) {
	if *update {
		out, err := exec.Command(breakpointsELF, "60", "1").Output()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(recorded, out, 0o644))
	}
	want, err := os.ReadFile(recorded)
	require.NoError(t, err)
	program, err := os.ReadFile(breakpointsELF)
	require.NoError(t, err)
	for _, name := range dumps.Running {
		t.Run(name, func(t *testing.T) {
			dumps.One(t, name)
			k := boot(t, name)
			k.put("/breakpoints", program)
			k.breakpoints(name, string(want), "60", "1")
		})
	}
}

// TestBreakpointsBesideWatchpoints: the program's breakpoints do the same where the host watches the same
// memory, and the other way round.
func TestBreakpointsBesideWatchpoints(t *testing.T) {
	if testing.Short() {
		t.Skip("short: the breakpoints are tried without watchpoints alone")
	}
	want, err := os.ReadFile(recorded)
	require.NoError(t, err)
	program, err := os.ReadFile(breakpointsELF)
	require.NoError(t, err)
	runs.File(t, "6.1")
	k := boot(t, "6.1")
	k.put("/breakpoints", program)
	hits := 0
	for _, place := range []string{"0x408ff8:8:w", "0x409000:8:rw", "0x409004:4:rw"} { // around the middle of its memory
		_, err := k.Watch(place, func(*watch.Watchpoint, *watch.Hit, *x86.PtRegs) { hits++ })
		require.NoError(t, err)
	}
	k.breakpoints("6.1", string(want), "60", "1")
	require.Greater(t, hits, 100)
}

// TestBreakpointsBesideThisProcessor is the same with new random breakpoints each time, if this
// machine lets the program run by itself.
func TestBreakpointsBesideThisProcessor(t *testing.T) {
	if testing.Short() {
		t.Skip("short: what a processor did is compared from its recording alone")
	}
	program, err := os.ReadFile(breakpointsELF)
	require.NoError(t, err)
	count, seed := os.Getenv("QUESTIONS"), fmt.Sprint(rand.Uint32())
	names := dumps.Running
	if count == "" {
		count, names = "40", []string{"6.1"}
	}
	want, err := exec.Command(breakpointsELF, count, seed).Output()
	if err != nil || strings.Contains(string(want), "!-") || strings.Contains(string(want), "fails with") {
		t.Skip("this machine does not let the program set hardware breakpoints")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			k := boot(t, name)
			k.put("/breakpoints", program)
			k.breakpointsOf(name, together, string(want), count, seed)
		})
	}
}

// A place's hits in a line of the program, and two exceptions in a line of a traced program.
var (
	hitsThere = regexp.MustCompile(`[0-9]@(\S+?)/\S+`)
	twoThere  = regexp.MustCompile(`\[code 4 (address \S+ ip \S+) dr6 0xffff0ff([0-9a-f])\] \[code 4 (address \S+ ip \S+) dr6 0xffff0ff([0-9a-f])( RF)?\]`)
)

// together writes a line as if a data breakpoint's trap after an instruction and the breakpoint of the next instruction were one
// exception. They are on some processors (Xeon, family 6 model 207); on others, and here, the trap comes first.
func together(line string) string {
	hits := strings.Fields(line)
	for from := 0; from < len(hits); {
		to, place := from+1, hitsThere.FindStringSubmatch(hits[from])
		for ; place != nil && to < len(hits); to++ {
			if next := hitsThere.FindStringSubmatch(hits[to]); next == nil || next[1] != place[1] {
				break
			}
		}
		slices.Sort(hits[from:to])
		from = to
	}
	return twoThere.ReplaceAllStringFunc(strings.Join(hits, " "), func(two string) string {
		m := twoThere.FindStringSubmatch(two)
		data, _ := strconv.ParseUint(m[2], 16, 4)
		code, _ := strconv.ParseUint(m[4], 16, 4)
		if m[1] != m[3] || data&code != 0 { // the same bit twice comes of two iterations
			return two
		}
		return fmt.Sprintf("[code 4 %s dr6 0xffff0ff%x%s]", m[1], data|code, m[5])
	})
}

// TestTogether: what is one exception on some processors and two on others is the same line; another place or another bit is another one.
func TestTogether(t *testing.T) {
	for _, c := range []struct {
		name, one, two string
		same           bool
	}{
		{"hits", "load8 m-1 x=i3 rw8=m0: 1,1 0@i3/i3 1@i3/m0\n", "load8 m-1 x=i3 rw8=m0: 1,1 1@i3/m0 0@i3/i3\n", true},
		{"hits_of_two_places", "add: 1,1 0@i3/i3 1@i4/m0\n", "add: 1,1 1@i4/m0 0@i3/i3\n", false},
		{"traced", "add [code 4 address i3 ip i3 dr6 0xffff0ff5 RF] exits\n", "add [code 4 address i3 ip i3 dr6 0xffff0ff4] [code 4 address i3 ip i3 dr6 0xffff0ff1 RF] exits\n", true},
		{"traced_with_another_bit", "add [code 4 address i3 ip i3 dr6 0xffff0ff5 RF] exits\n", "add [code 4 address i3 ip i3 dr6 0xffff0ff2] [code 4 address i3 ip i3 dr6 0xffff0ff1 RF] exits\n", false},
		{"traced_at_two_places", "add [code 4 address i3 ip i3 dr6 0xffff0ff5 RF]\n", "add [code 4 address i2 ip i2 dr6 0xffff0ff4] [code 4 address i3 ip i3 dr6 0xffff0ff1 RF]\n", false},
		{"traced_twice_in_data", "add [code 4 address i3 ip i3 dr6 0xffff0ff4]\n", "add [code 4 address i3 ip i3 dr6 0xffff0ff4] [code 4 address i3 ip i3 dr6 0xffff0ff4]\n", false},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.same, together(c.one) == together(c.two)) })
	}
}

// breakpoints compares the program's output here with its recorded output.
func (k *kernel) breakpoints(name, want string, args ...string) {
	k.breakpointsOf(name, func(line string) string { return line }, want, args...)
}

// breakpointsOf compares the lines as a function writes them.
func (k *kernel) breakpointsOf(name string, write func(line string) string, want string, args ...string) {
	end := k.program(append([]string{"/breakpoints"}, args...)...)
	require.Zero(k.t, end.code)
	require.Equal(k.t, signalsOf(name, want, write), signalsOf(name, end.out, write), "arguments %v", args)
}

// signalsOf leaves out the signals that perf events send since 5.13.
func signalsOf(name, text string, write func(line string) string) []string {
	var list []string
	for line := range strings.Lines(text) {
		if name != "5.10" || !strings.HasPrefix(line, "SIGTRAP:") {
			list = append(list, write(line))
		}
	}
	return list
}

// debugreg is the kernel's function that moves from or to a debug register, by its names.
func (k *kernel) debugreg(what string) string {
	for _, name := range []string{"pv_native_" + what + "_debugreg", "native_" + what + "_debugreg"} {
		if len(k.Image.Lookup(name)) == 1 {
			return name
		}
	}
	k.t.Skip("the kernel has no function of its own for debug registers")
	return ""
}

// TestDebugRegistersAsRegisters: the value read from a debug register after a write.
func TestDebugRegistersAsRegisters(t *testing.T) {
	for _, name := range dumps.Running {
		t.Run(name, func(t *testing.T) {
			runs.File(t, name)
			k := boot(t, name)
			for what, c := range map[string]struct{ n, write, read uint64 }{
				"an_address_of_the_kernel":  {0, 0xffff888001234567, 0xffff888001234567},
				"an_address_not_canonical":  {3, 0x1234567890abcdef, 0x1234567890abcdef},
				"dr6_has_bits_that_are_1":   {6, 0, 0xffff0ff0},
				"dr6_takes_what_it_has":     {6, 0xffffffff, 0xffffeff0 | 0xf},
				"dr7_has_a_bit_that_is_1":   {7, 0, 0x400},
				"dr7_takes_what_it_has":     {7, 0xffffdf00, 0xffff0700},
				"dr7_general_detect_is_off": {7, 0x2000, 0x400}, // the read is the exception that ends it
			} {
				k.restore()
				_, err := k.Machine.Call(k.debugreg("set"), c.n, c.write)
				require.NoError(t, err, what)
				got, err := k.Machine.Call(k.debugreg("get"), c.n)
				require.NoError(t, err, what)
				require.Equal(t, fmt.Sprintf("%#x", c.read), fmt.Sprintf("%#x", got), what)
			}
			for n := uint64(6); n < 8; n++ {
				k.restore()
				_, err := k.Machine.Call(k.debugreg("set"), n, 1<<32)
				require.Error(t, err) // a general protection fault: init dies
			}
		})
	}
}

// TestBreakpointOfItsOwnHandler: the first instruction of the kernel's handler has a breakpoint, so that
// none runs any more. The budget ends that.
func TestBreakpointOfItsOwnHandler(t *testing.T) {
	runs.File(t, "6.1")
	k := bootWith(t, "6.1", &kprobelab.Options{Budget: 1_000_000})
	symbol := func(name string) uint64 { return uint64(k.Image.Lookup(name)[0].Addr) }
	const executeAndWrite = 0xd0000a // DR0 and, of four bytes, DR1
	for n, v := range map[uint64]uint64{0: symbol("asm_exc_debug"), 1: symbol("panic_timeout")} {
		_, err := k.Machine.Call(k.debugreg("set"), n, v)
		require.NoError(t, err)
	}
	_, err := k.Machine.Call(k.debugreg("set"), 7, executeAndWrite)
	require.NoError(t, err)
	_, err = k.Exec(&booted.Program{Args: []string{"/bin/busybox", "sh", "-c", "echo 3 >/proc/sys/kernel/panic"}})
	var over *machine.BudgetError
	require.ErrorAs(t, err, &over)
}

// TestBreakpointsOfADump: a dump of a kernel that has a breakpoint set begins with it, although no dump
// has the registers.
func TestBreakpointsOfADump(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it writes a dump of 128 MB")
	}
	file := filepath.Join(t.TempDir(), "watched.core")
	old, err := os.ReadFile(dumps.File(t, "6.1"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, old, 0o600))
	img, err := kimage.Open(file, nil)
	require.NoError(t, err)
	cpus, err := img.Processors()
	require.NoError(t, err)
	symbol := func(name string) x86.Addr { return img.Lookup(name)[0].Addr }
	gs := x86.Addr(cpus[0].GSBase)
	const writesOfFour = 0xd0402 // DR0, for all tasks
	patch(t, img, file, gs+symbol("cpu_dr7"), writesOfFour)
	patch(t, img, file, gs+symbol("cpu_debugreg"), uint64(symbol("panic_timeout")))

	k := bootFile(t, file, &kprobelab.Options{Budget: budget})
	hits := 0
	_, err = k.Watch("exc_debug:x", func(*watch.Watchpoint, *watch.Hit, *x86.PtRegs) { hits++ })
	require.NoError(t, err)
	require.Zero(t, k.shell("cat /proc/sys/kernel/panic").code)
	require.Zero(t, hits)
	require.Zero(t, k.shell("echo 7 >/proc/sys/kernel/panic").code)
	require.Equal(t, 1, hits)
}

// patch writes a word of a dump, which is not compressed.
func patch(t *testing.T, img *kimage.Image, file string, at x86.Addr, v uint64) {
	cpus, err := img.Processors()
	require.NoError(t, err)
	c := cpus[0].Control
	place, err := img.Core().Space(c.CR3, c.Levels()).KernelHalf().Translate(at)
	require.NoError(t, err)
	pieces, err := img.Core().Map()
	require.NoError(t, err)
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	for _, p := range pieces {
		if p.File != nil && place.Phys-p.Phys < p.Size {
			_, err = f.WriteAt(binary.LittleEndian.AppendUint64(nil, v), p.Off+int64(place.Phys-p.Phys))
			require.NoError(t, err)
			return
		}
	}
	t.Fatalf("the dump has no memory at %#x", place.Phys)
}
