//go:build linux

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	xterm "golang.org/x/term"

	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/internal/tinyprogram"
)

// pseudoterminal opens a pseudoterminal that changes no byte, and returns the side that a program writes to. shown
// closes that side and returns all that reached the other.
func pseudoterminal(t *testing.T) (side *os.File, shown func() string) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudoterminal: %v", err)
	}
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0))
	side, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudoterminal: %v", err)
	}
	_, err = xterm.MakeRaw(int(side.Fd()))
	require.NoError(t, err)
	all := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(screen) // it ends with EIO once the other side is closed
		all <- string(b)
	}()
	t.Cleanup(func() { _ = screen.Close() })
	return side, func() string {
		require.NoError(t, side.Close())
		return <-all
	}
}

// writer is a program that writes text to a descriptor, and ends with 0.
func writer(t *testing.T, text []byte, fd int) string {
	t.Helper()
	b, err := tinyprogram.Build(text, tinyprogram.Function{Name: "_start",
		Text: "mov $0x1,%eax\nmov $" + strconv.Itoa(fd) + ",%edi\nmov $0x402000,%esi\nmov $" + strconv.Itoa(len(text)) + ",%edx\nsyscall\nxor %edi,%edi\nmov $0x3c,%eax\nsyscall"})
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "writer")
	require.NoError(t, os.WriteFile(name, b, 0o755))
	return name
}

// What a program writes reaches a terminal as it is with --raw alone, from both of its descriptors; where one of
// them is no terminal, its bytes stay.
func TestRawOnATerminal(t *testing.T) {
	text := []byte("\x1b[31mred\x00\xff\n")
	const escaped = `\u001b[31mred\u0000` + "\xff\n"
	for name, c := range map[string]struct {
		fd        int
		flags     []string
		out, errs bool // is a terminal
		want      string
	}{
		"stdout":                      {1, nil, true, true, escaped},
		"stdout_raw":                  {1, []string{"--raw"}, true, true, string(text)},
		"stdout_not_raw":              {1, []string{"--raw=false"}, true, true, escaped},
		"stdout_is_a_pipe":            {1, nil, false, true, string(text)},
		"stderr":                      {2, nil, true, true, escaped},
		"stderr_raw":                  {2, []string{"--raw"}, true, true, string(text)},
		"stderr_is_a_pipe":            {2, nil, true, false, string(text)},
		"stderr_raw_stdout_is_a_pipe": {2, []string{"--raw"}, false, true, string(text)},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(append([]string{"kprobelab", "uprobe"}, c.flags...), writer(t, text, c.fd))
			assert.Contains(t, onTerminals(t, args, c.out, c.errs)[c.fd-1], c.want)
		})
	}
}

// A guest's programs are no other: exec, and the commands of scripts.
func TestRawOfAGuestOnATerminal(t *testing.T) {
	dump := runs.File(t, "6.1")
	const echo = `/bin/busybox sh -c "printf '\\033[1mout'; printf '\\033[1merr' >&2"`
	for name, args := range map[string][]string{
		"exec":     {"run", dump, "--exec", echo},
		"bpftrace": {"bpftrace", "-r", dump, "-c", echo, "-e", "kprobe:vfs_open { @++; }"},
		"stap":     {"stap", "-r", dump, "-c", echo, "-e", `probe kernel.function("vfs_open") { next }`},
	} {
		t.Run(name, func(t *testing.T) {
			args = append([]string{"kprobelab"}, args...)
			plain, raw, piped := onTerminals(t, args, true, true), onTerminals(t, append(args, "--raw"), true, true), onTerminals(t, args, false, false)
			for i, text := range []string{"out", "err"} {
				assert.Contains(t, plain[i], `\u001b[1m`+text)
				assert.Contains(t, raw[i], "\x1b[1m"+text)
				assert.Contains(t, piped[i], "\x1b[1m"+text)
			}
		})
	}
}

// onTerminals runs the program, with each of its outputs a terminal or a pipe, and returns what came to each.
func onTerminals(t *testing.T, args []string, out, errs bool) (got [2]string) {
	t.Helper()
	var to [2]io.Writer
	var shown [2]func() string
	for i, terminals := range []bool{out, errs} {
		if terminals {
			to[i], shown[i] = pseudoterminal(t)
			continue
		}
		b := new(bytes.Buffer)
		to[i], shown[i] = b, b.String
	}
	code := execute(args, to[0], to[1])
	for i := range got {
		got[i] = shown[i]()
	}
	require.Zero(t, code, "%q", got)
	return got
}

// What a script prints itself goes through a pipe byte for byte, as text and in maps; a terminal gets no controls.
func TestBytesOfAScript(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		bytes []string
	}{
		"bpftrace_printf": {[]string{"bpftrace", "-e", `BEGIN { printf("\x1b[1m\xff\x07|\n"); exit(); }`}, []string{"\x1b[1m\xff\x07|\n"}},
		"bpftrace_maps":   {[]string{"bpftrace", "-e", `BEGIN { @["\x1b[2m"] = "\x07\xfe"; print("\x1b[3m"); exit(); }`}, []string{"@[\x1b[2m]: \x07\xfe\n", "\x1b[3m\n"}},
		"stap_printf":     {[]string{"stap", "-e", `probe begin { printf("\033[1m\377\007|\n"); exit() }`}, []string{"\x1b[1m\xff\x07|\n"}},
		"stap_println":    {[]string{"stap", "-e", `probe begin { println("\033[2m\376"); exit() }`}, []string{"\x1b[2m\xfe\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"kprobelab"}, c.args...)
			piped, seen := onTerminals(t, args, false, true)[0], onTerminals(t, args, true, true)[0]
			for _, b := range c.bytes {
				assert.Contains(t, piped, b)
				assert.Contains(t, seen, strings.NewReplacer("\x1b", `\u001b`, "\x07", `\u0007`, "\n", "").Replace(b))
			}
			assert.NotContains(t, seen, "\x1b[")
		})
	}
}

// On a terminal, the program without words shows three things to try. Each works at once, with an empty home and without a
// network, and prints something.
func TestThreeThingsToTryOnATerminal(t *testing.T) {
	shown := onTerminals(t, []string{"kprobelab"}, true, true)[0]
	require.Equal(t, helpFile("first.part"), shown)
	require.Contains(t, onTerminals(t, []string{"kprobelab"}, false, true)[0], "Usage:")
	require.Contains(t, onTerminals(t, []string{"kprobelab", "--help"}, true, true)[0], "Usage:")
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("KPROBELAB_MIRROR", "file:///nowhere")
	n := 0
	for line := range strings.Lines(shown) {
		command, ok := strings.CutPrefix(line, "   kprobelab ")
		if !ok {
			continue
		}
		n++
		code, out := typed(strings.TrimSpace(command))
		require.Zero(t, code, out)
		require.NotEmpty(t, out)
	}
	require.Equal(t, 3, n)
}
