package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
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
	"kprobelab/internal/integration/oracle"
	"kprobelab/internal/mailbox"
	"kprobelab/internal/orc"
	"kprobelab/kprobes"
	"kprobelab/run"
	"kprobelab/x86"
)

// These scripts mean the same as the scripts of the slides, which this project answers to. If the slides' own scripts
// are beside the repository, they have to do the same.

// slide runs a test on our script, and on the slides' script if it is there.
func slide(t *testing.T, name string, test func(t *testing.T, file string)) {
	t.Helper()
	t.Run("ours", func(t *testing.T) { test(t, filepath.Join("testdata", "slides", name+".stp")) })
	t.Run("theirs", func(t *testing.T) { test(t, theirs(t, name)) })
}

// ours reports whether a script is one of the repository's.
func ours(file string) bool { return filepath.Dir(file) == filepath.Join("testdata", "slides") }

func theirs(t *testing.T, name string) string {
	return filepath.Join(oracle.Dir(t, "slides"), name+".stp")
}

// onDumps runs a test of a script on every kernel that there is a dump of; the slides' on one.
func onDumps(t *testing.T, name string, test func(t *testing.T, dump, file string)) {
	for _, kernel := range dumps.Kernels {
		t.Run("ours/"+kernel, func(t *testing.T) {
			test(t, runs.File(t, kernel), filepath.Join("testdata", "slides", name+".stp"))
		})
	}
	t.Run("theirs", func(t *testing.T) {
		test(t, runs.File(t, dumps.Kernels[0]), theirs(t, name))
	})
}

// stapped runs stap and returns its standard output, line by line.
func stapped(t *testing.T, args ...string) []string {
	t.Helper()
	var out, errors bytes.Buffer
	require.Equal(t, exitOK, execute(append([]string{"kprobelab", "stap"}, args...), &out, &errors), errors.String())
	return slices.Collect(strings.Lines(out.String()))
}

// watched runs a program with probes of the test's own, without a script.
func watched(t *testing.T, dump, command string, prepare func(l *kprobelab.Lab)) string {
	t.Helper()
	l, err := kprobelab.Open(dump, &kprobelab.Options{Optimize: true, Budget: run.ProgramBudget})
	require.NoError(t, err)
	defer l.Close()
	prepare(l)
	var out, errors bytes.Buffer
	c, err := mailbox.Program(mailbox.Exec, command, nil)
	require.NoError(t, err)
	k, err := l.Booted()
	require.NoError(t, err)
	code, err := k.Exec(&booted.Program{Args: c.Args, Env: c.Env, Stdout: &out, Stderr: &errors})
	require.NoError(t, err, errors.String())
	require.Zero(t, code, errors.String())
	return out.String()
}

// inShell is the program that runs a line of shell.
func inShell(line string) string { return `/bin/busybox sh -c "` + line + `"` }

func inShellf(format string, args ...any) string { return inShell(fmt.Sprintf(format, args...)) }

// who returns a function that names the task of a hit as scripts print it: NAME(PID).
func who(l *kprobelab.Lab) func() string {
	k, err := l.Booted()
	if err != nil {
		panic(err)
	}
	task := k.Names()
	return func() string {
		pid, comm := task(l.Machine.Task())
		return fmt.Sprintf("%s(%d)", comm, pid)
	}
}

// drawn are numbers that the test does not know before.
func drawn(t *testing.T, most int) int {
	n := 1 + rand.IntN(most)
	t.Logf("drawn: %d", n)
	return n
}

func TestSlideHelloWorld(t *testing.T) {
	slide(t, "hello-world", func(t *testing.T, file string) {
		require.Equal(t, []string{"hello world\n"}, stapped(t, file))
	})
	onDumps(t, "hello-world", func(t *testing.T, dump, file string) {
		require.Equal(t, []string{"hello world\n"}, stapped(t, "-r", dump, file))
	})
}

// The script prints each open with the task and the file. After four seconds it has ended.
func TestSlideStraceOpen(t *testing.T) {
	onDumps(t, "strace-open", func(t *testing.T, dump, file string) {
		var args []string
		reads, writes := drawn(t, 9), drawn(t, 9)
		for range reads {
			args = append(args, "--call", `sys:open("/etc/hostname", 0)`)
		}
		for range writes {
			args = append(args, "--call", `sys:open("/tmp/new file", 65, 0x180)`)
		}
		want := append(
			slices.Repeat([]string{`init(1) open ("/etc/hostname", O_RDONLY)` + "\n"}, reads),
			slices.Repeat([]string{`init(1) open ("/tmp/new file", O_WRONLY|O_CREAT, 0600)` + "\n"}, writes)...)
		require.Equal(t, want, stapped(t, append(args, "-r", dump, file)...))
	})
}

// The same of a program, which opens by openat; the slides' script tells the system call open
// only, and says nothing of it.
func TestSlideStraceOpenOfAProgram(t *testing.T) {
	onDumps(t, "strace-open", func(t *testing.T, dump, file string) {
		n := drawn(t, 20)
		line := inShellf("for i in $(seq %d); do cat /etc/hostname >/dev/null; done; sleep 5; cat /etc/hostname >/dev/null", n)
		var want []string
		watched(t, dump, line, func(l *kprobelab.Lab) {
			by, from := who(l), l.Machine.Now()
			_, err := l.Kprobe("do_sys_openat2", func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
				name := make([]byte, 64)
				require.NoError(t, l.Machine.ReadUser(x86.Addr(regs.SI), name))
				name, _, _ = bytes.Cut(name, []byte{0})
				if l.Machine.Now()-from < 4e9 && string(name) == "/etc/hostname" {
					want = append(want, fmt.Sprintf("%s openat (AT_FDCWD, %q, O_RDONLY)\n", by(), name))
				}
				return 0
			}, nil)
			require.NoError(t, err)
		})
		got := slices.DeleteFunc(stapped(t, "-r", dump, "-c", line, file),
			func(l string) bool { return !strings.Contains(l, "/etc/hostname") })
		require.Len(t, want, n)
		if !ours(file) {
			require.Empty(t, got)
			return
		}
		require.Equal(t, want, got)
	})
}

// The file's reads and writes are told, and of no other.
func TestSlideInodeWatch(t *testing.T) {
	watch := func(t *testing.T, name string, lines func(t *testing.T, got []string, dev string, inode int) []string) {
		onDumps(t, name, func(t *testing.T, dump, file string) {
			reads, writes := drawn(t, 30), drawn(t, 30)
			line := inShellf("dd if=/dev/zero of=/tmp/watched bs=1 count=%d 2>/dev/null; dd if=/tmp/watched of=/tmp/other bs=1 count=%d 2>/dev/null; stat -c '%%d %%i' /tmp/watched",
				writes, min(reads, writes))
			var dev, inode int
			_, err := fmt.Sscan(watched(t, dump, line, func(*kprobelab.Lab) {}), &dev, &inode)
			require.NoError(t, err)
			major, minor := dev>>8&0xfff, dev&0xff|dev>>12&0xfff00
			got := stapped(t, "-r", dump, "-c", line, file, strconv.Itoa(major), strconv.Itoa(minor), strconv.Itoa(inode))
			got = slices.DeleteFunc(got, func(l string) bool { return !strings.Contains(l, "_") })
			got = lines(t, got, fmt.Sprintf("0x%x", major<<20|minor), inode)
			dd := regexp.MustCompile(`^dd\((\d+)\) `)
			pids := map[string]bool{}
			for i, l := range got {
				m := dd.FindStringSubmatch(l)
				require.NotNil(t, m, l)
				pids[m[1]] = true
				got[i] = dd.ReplaceAllString(l, "")
			}
			require.Len(t, pids, 2)
			place := fmt.Sprintf(" 0x%x/%d\n", major<<20|minor, inode)
			require.Equal(t, append(slices.Repeat([]string{"vfs_write" + place}, writes), slices.Repeat([]string{"vfs_read" + place}, min(reads, writes))...), got)
		})
	}
	watch(t, "inode-watch", func(_ *testing.T, got []string, _ string, _ int) []string { return got })
	// The script for functions tells the number of the inode on any device.
	watch(t, "functions", func(t *testing.T, got []string, dev string, inode int) []string {
		require.Equal(t, "uid: 0, system_uid_p(): 1\n", got[0])
		var mine []string
		for _, l := range got[1:] {
			l, input, ok := strings.Cut(l, ", input dev_nr: ")
			require.True(t, ok)
			require.Equal(t, dev+"\n", input)
			if strings.HasSuffix(l, fmt.Sprintf(" %s/%d", dev, inode)) {
				mine = append(mine, l+"\n")
			}
		}
		return mine
	})
}

// The pages that were allocated in the first five seconds are counted, by the names of processes.
func TestSlidePageAlloc(t *testing.T) {
	onDumps(t, "mm_page_alloc", func(t *testing.T, dump, file string) {
		line := inShellf("dd if=/dev/zero of=/tmp/pages bs=4096 count=%d 2>/dev/null; sleep 6", drawn(t, 200))
		want := map[string]int{}
		watched(t, dump, line, func(l *kprobelab.Lab) {
			k, err := l.Booted()
			require.NoError(t, err)
			task, from := k.Names(), l.Machine.Now()
			_, err = k.Tracepoint("mm_page_alloc", func(*x86.PtRegs) {
				if _, comm := task(l.Machine.Task()); l.Machine.Now()-from < 5e9 {
					want[comm]++
				}
			})
			require.NoError(t, err)
		})
		lines := stapped(t, "-r", dump, "-c", line, file)
		require.Equal(t, "#Pages Allocated          Process Name\n", lines[0])
		require.Equal(t, "\n", lines[len(lines)-1])
		got, last := map[string]int{}, 0
		for i, l := range lines[1 : len(lines)-1] {
			var n int
			var name string
			_, err := fmt.Sscan(l, &n, &name)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("%-25d %s\n", n, name), l)
			require.True(t, i == 0 || n <= last, "most come first")
			got[name], last = n, n
		}
		require.Equal(t, want, got)
	})
}

func TestSlideTimerJiffies(t *testing.T) {
	onDumps(t, "timer-jiffies", func(t *testing.T, dump, file string) {
		l, err := kprobelab.Open(dump, nil)
		require.NoError(t, err)
		hz := l.Image.Profile().HZ
		l.Close()
		ticks := 12345 * hz / (100 * 1000)
		want := []string{fmt.Sprintf("jiffies:ms ratio %d:123 => CONFIG_HZ=%d\n", ticks, 1000*ticks/123)}
		require.Equal(t, want, stapped(t, "-r", dump, file))
		require.Equal(t, want, stapped(t, "-r", dump, "-c", "/bin/busybox sleep 13", file), "while a program sleeps")
	})
}

// calls are the calls of these functions as a program makes them, drawn as thread_indent does: each
// as deep as there are others of them on the kernel's stack.
func calls(t *testing.T, dump, line string, functions []string) (drawing []string, deepest int) {
	watched(t, dump, line, func(l *kprobelab.Lab) {
		by := who(l)
		stack := orc.New(l.Image.Lookup, l.Image.Types(), l.Machine.ReadMem)
		for _, name := range functions {
			_, err := l.Kprobe(name, func(p *kprobes.Kprobe, regs *x86.PtRegs) int {
				from, depth := orc.At(regs), 0
				from.IP = uint64(p.Addr)
				stack.Walk(from, func(addr, _ uint64) uint64 { return addr }, func(addr, _ uint64) bool {
					if in, ok := l.Image.SymbolAt(x86.Addr(addr - 1)); ok && slices.Contains(functions, in.Name) {
						depth++
					}
					return true
				})
				drawing = append(drawing, fmt.Sprintf("%s:%s -> %s\n", by(), strings.Repeat(" ", depth), name))
				deepest = max(deepest, depth)
				return 0
			}, nil)
			require.NoError(t, err, name)
		}
	})
	return drawing, deepest
}

var (
	probed = regexp.MustCompile(`kernel\.function\("(\w+)(?:@[^"]*)?"\)\.call`)
	since  = regexp.MustCompile(`^ *\d+ `)
)

// Calls are drawn as deep as they are, and each return as deep as its call.
func TestSlideSocketTrace(t *testing.T) {
	line := inShell("ping -c 2 -q 127.0.0.1; nc -l -p 5000 -e true & sleep 1; nc 127.0.0.1 5000 </dev/null; wait; ifconfig lo")
	trace := func(t *testing.T, dump, file string, functions []string, args ...string) {
		want, deepest := calls(t, dump, line, functions)
		require.Greater(t, deepest, 1)
		var got []string
		open := map[string][]string{}
		for _, l := range stapped(t, append(args, "-r", dump, "-c", line, file)...) {
			if !strings.Contains(l, " -> ") && !strings.Contains(l, " <- ") {
				continue
			}
			l = since.ReplaceAllString(l, "")
			task, call, ok := strings.Cut(l, ":")
			require.True(t, ok, l)
			if entry, name, ok := strings.Cut(call, " -> "); ok {
				if slices.Contains(functions, strings.TrimSpace(name)) {
					got = append(got, l)
				}
				open[task] = append(open[task], entry+" <- "+name)
				continue
			}
			stack := open[task]
			require.NotEmpty(t, stack, l)
			require.Equal(t, stack[len(stack)-1], call, "a return is as deep as its call")
			open[task] = stack[:len(stack)-1]
		}
		for task, stack := range open {
			require.Empty(t, stack, "%s has calls without a return", task)
		}
		require.Equal(t, want, got)
	}
	onDumps(t, "socket-trace", func(t *testing.T, dump, file string) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var functions []string
		for _, m := range probed.FindAllStringSubmatch(string(text), -1) {
			functions = append(functions, m[1])
		}
		if functions != nil {
			trace(t, dump, file, functions)
			return
		}
		// All functions of a file want the kernel's debugging information.
		l, err := kprobelab.Open(dump, nil)
		require.NoError(t, err)
		defer l.Close()
		release := l.Image.Fact("release").Value
		info := debugInfo(t, release)
		for _, line := range stapped(t, "-r", dump, "--debuginfo", info, "-l", `kernel.function("*@net/socket.c").call`) {
			// Without sock_init, which is freed when the kernel has booted, and init_once, of which
			// there are many: it calls none of the others.
			if m := probed.FindStringSubmatch(line); len(l.Image.Lookup(m[1])) == 1 && m[1] != "sock_init" {
				functions = append(functions, m[1])
			}
		}
		require.Greater(t, len(functions), 50)
		trace(t, dump, file, functions, "--debuginfo", info)
	})
}

// C in a script is refused by name, with -g and without.
func TestSlideDumpPage(t *testing.T) {
	slide(t, "dump_page", func(t *testing.T, file string) {
		for says, args := range map[string][]string{
			"embedded code in unprivileged script; need stap -g": nil,
			"embedded C is not compiled here":                    {"-g"},
		} {
			var out, errors bytes.Buffer
			require.Equal(t, exitRefused, execute(append(append([]string{"kprobelab", "stap"}, args...), file), &out, &errors))
			require.Contains(t, errors.String(), says)
			require.Empty(t, out.String())
		}
	})
}
