package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/dumps"
	"kprobelab/internal/integration/dumps/runs"
)

// put are the calls of a test with arguments that it has drawn, and what probes on the functions that
// they lead to have to fetch.
type put struct {
	calls  []string
	opened string
	writes []string
	reads  []string
	seeks  []string
}

func letters(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + rand.IntN(26))
	}
	return string(b)
}

func drawCalls(t *testing.T) (p put) {
	name := letters(1 + rand.IntN(30))          // longer ones are outside of the dentry, shorter ones in it
	mode := (0o400 | rand.IntN(0o400)) &^ 0o022 // init's umask
	call := func(format string, args ...any) { p.calls = append(p.calls, "--call", fmt.Sprintf(format, args...)) }
	// open adds O_LARGEFILE to the flags, the file system what kind of file it is to the mode.
	const creat, readWrite, large, regular = 0o100, 2, 0o100000, 0o100000
	call(`openat(AT_FDCWD, "/tmp/%s", O_CREAT|O_RDWR, %d)`, name, mode)
	p.opened = fmt.Sprintf("-100 /tmp/%s %d %d", name, creat|readWrite|large, mode)
	var end int
	for range 3 + rand.IntN(5) {
		text := letters(1 + rand.IntN(60))
		at := rand.IntN(1 << 20)
		call("pwrite64(3, %q, %d, %d)", text, len(text), at)
		p.writes = append(p.writes, fmt.Sprintf("%d %d %s %d %s", len(text), at, name, mode|regular, text))
		end = max(end, at+len(text))
		n, from := 1+rand.IntN(100), rand.IntN(1<<20)
		call("pread64(3, buf[%d], %d, %d)", n, n, from)
		// The earlier writes have made the file's size.
		p.reads = append(p.reads, fmt.Sprintf("%d %d %s %d", n, from, name, end))
		to := rand.IntN(1 << 30)
		call("lseek(3, %d, SEEK_SET)", to)
		p.seeks = append(p.seeks, fmt.Sprintf("3 %d 0", to))
	}
	t.Logf("drawn: %s", strings.Join(p.calls, " "))
	return p
}

// fetched sorts the lines that probes printed by their first letter: o is open, w write, r read, s seek.
func fetched(lines []string) put {
	var p put
	for _, l := range lines {
		what, rest, _ := strings.Cut(strings.TrimSuffix(l, "\n"), " ")
		switch what {
		case "o":
			p.opened = rest
		case "w":
			p.writes = append(p.writes, rest)
		case "r":
			p.reads = append(p.reads, rest)
		case "s":
			p.seeks = append(p.seeks, rest)
		}
	}
	return p
}

func says(t *testing.T, args ...string) []string {
	t.Helper()
	var out, errors bytes.Buffer
	require.Equal(t, exitOK, execute(append([]string{"kprobelab"}, args...), &out, &errors), errors.String())
	return slices.Collect(strings.Lines(out.String()))
}

// Probes name variables of the source, and have to fetch the values that the test has put there: parameters,
// strings of the caller and of the kernel, numbers and members through pointers.
func TestValuesFetched(t *testing.T) {
	const stap = `
probe kernel.function("do_sys_openat2") { printf("o %d %s %d %d\n", $dfd, user_string($filename), $how->flags, $how->mode) }
probe kernel.function("vfs_write") { printf("w %d %d %s %d %s\n", $count, $pos[0], kernel_string($file->f_path->dentry->d_name->name), $file->f_inode->i_mode, user_string_n($buf, $count)) }
probe kernel.function("vfs_read") { printf("r %d %d %s %d\n", $count, $pos[0], kernel_string($file->f_path->dentry->d_name->name), $file->f_inode->i_size) }
probe kernel.function("ksys_lseek") { printf("s %d %d %d\n", $fd, $offset, $whence) }`
	const bpftrace = `
fentry:do_sys_openat2 { printf("o %d %s %d %d\n", args.dfd, str(uptr(args.filename)), args.how->flags, args.how->mode); }
fentry:vfs_write { printf("w %d %d %s %d %s\n", args.count, *args.pos, str(args.file->f_path.dentry->d_name.name), args.file->f_inode->i_mode, str(uptr(args.buf), args.count + 1)); }
fentry:vfs_read { printf("r %d %d %s %d\n", args.count, *args.pos, str(args.file->f_path.dentry->d_name.name), args.file->f_inode->i_size); }
fentry:ksys_lseek { printf("s %d %d %d\n", args.fd, args.offset, args.whence); }`
	events := []string{
		"-e", "o=do_sys_openat2 dfd filename=filename:ustring flags=how->flags:u64 mode=how->mode:u64",
		"-e", "w=vfs_write count=count:u64 pos=pos[0] name=file->f_path.dentry->d_name.name:string mode=file->f_inode->i_mode:u16 text=buf:ustring",
		"-e", "r=vfs_read count=count:u64 pos=pos[0] name=file->f_path.dentry->d_name.name:string size=file->f_inode->i_size:s64",
		"-e", "s=ksys_lseek fd=fd:u32 offset=offset:s64 whence=whence:u32",
	}
	record := regexp.MustCompile(` ([owrs]): \(\S+\) (.*)`)
	value := regexp.MustCompile(`\w+=(?:"([^"]*)"|(\S+))`)
	traced := func(lines []string) (out []string) {
		for _, l := range lines {
			m := record.FindStringSubmatch(l)
			if m == nil {
				out = append(out, l)
				continue
			}
			words := []string{m[1]}
			for _, v := range value.FindAllStringSubmatch(m[2], -1) {
				words = append(words, v[1]+v[2])
			}
			out = append(out, strings.Join(words, " "))
		}
		return out
	}
	debug := func(name string) [][]string {
		if file := dumps.DebugInfo(pointsRelease); name == "6.1" && file != "" {
			return [][]string{nil, {"--debuginfo", file}}
		}
		return [][]string{nil}
	}
	for _, name := range dumps.Kernels {
		t.Run(name, func(t *testing.T) {
			dump := runs.File(t, name)
			for _, by := range debug(name) {
				with := func(args ...string) []string { return append(args, by...) }
				t.Run(strings.Join(append([]string{"by"}, by[:min(len(by), 1)]...), ""), func(t *testing.T) {
					for tool, ask := range map[string]func(t *testing.T, calls []string) []string{
						"kprobe_events": func(t *testing.T, calls []string) []string {
							return traced(says(t, append(with("run", dump), append(events, calls...)...)...))
						},
						"stap": func(t *testing.T, calls []string) []string {
							return says(t, append(with("stap", "-r", dump, "-e", stap), calls...)...)
						},
						"bpftrace": func(t *testing.T, calls []string) []string {
							return says(t, append(with("bpftrace", "-r", dump, "-e", bpftrace), calls...)...)
						},
					} {
						t.Run(tool, func(t *testing.T) {
							want := drawCalls(t)
							lines := ask(t, want.calls)
							got := fetched(lines)
							want.calls = nil
							require.Equal(t, want, got, "all that was told:\n%s", strings.Join(lines, "\n"))
						})
					}
				})
			}
		})
	}
}
