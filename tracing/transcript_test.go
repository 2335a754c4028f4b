package tracing_test

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/internal/integration/oracle"
	"kprobelab/kimage"
	"kprobelab/tracing"
)

// shell runs the commands of a transcript on the tree, and prints the output that the real
// machine's shell printed.
type shell struct {
	t   *testing.T
	tr  *tracing.Tracing
	out []string
}

func (s *shell) print(text string) { s.out = append(s.out, text) }

// printText prints a program's output, which may be empty.
func (s *shell) printText(text string) {
	if text != "" {
		s.print(strings.TrimSuffix(text, "\n"))
	}
}

// read is cat.
func (s *shell) read(name string) string {
	b, err := fs.ReadFile(s.tr, name)
	require.NoError(s.t, err)
	return string(b)
}

// strerror returns the C library's text of an errno.
func strerror(err error) string {
	no := errno.Of(err)
	if no == errno.EADDRNOTAVAIL {
		return "Cannot assign requested address"
	}
	text := no.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}

// echo is echo TEXT > FILE, or >> FILE.
func (s *shell) echo(text, file string, add bool) error {
	err := s.tr.Write(file, text+"\n", add)
	var p *fs.PathError
	switch {
	case errors.As(err, &p):
		s.print("/cmd.sh: eval: line 6: can't create " + file + ": " + strerror(err))
	case err != nil:
		s.print("sh: write error: " + strerror(err))
	}
	return err
}

var (
	stamp   = regexp.MustCompile(`(?m)^\[ *[0-9.]*\]`)
	pointer = regexp.MustCompile(`0x(\(____ptrval____\)|[0-9a-f]{16}\b)`)
	// headLine is the head of trace, which looks like a command.
	headLine = regexp.MustCompile(`^(tracer:|entries-in-buffer| )`)
	// echoCmd is an echo of a command list.
	echoCmd = regexp.MustCompile(`^echo ?('([^']*)'|[^ >]*) ?(>>?) ?(\S+)$`)
)

// command runs one command of a list.
func (s *shell) command(cmd string) {
	if m := echoCmd.FindStringSubmatch(cmd); m != nil {
		text := m[2]
		if m[2] == "" {
			text = strings.Trim(m[1], "'")
		}
		_ = s.echo(text, m[4], m[3] == ">>")
		return
	}
	name, arg, _ := strings.Cut(cmd, " ")
	switch {
	case cmd == "tail -n 1 kprobe_events":
		lines := strings.Split(strings.TrimSuffix(s.read("kprobe_events"), "\n"), "\n")
		s.print(lines[len(lines)-1])
	case strings.HasPrefix(cmd, "sed "):
		s.printText(stamp.ReplaceAllString(s.read("error_log"), "[TS]"))
	case name == "cat":
		for f := range strings.FieldsSeq(arg) {
			f = strings.TrimPrefix(f, "/sys/kernel/debug/")
			s.printText(s.read(f))
		}
	default:
		s.t.Fatalf("the transcript's command %q", cmd)
	}
}

// ask writes a single definition, whose result the transcript prints in its own way.
func (s *shell) ask(text string) {
	require.NoError(s.t, s.tr.Write("error_log", "", false))
	if s.echo(text, "kprobe_events", false) != nil {
		s.printText(stamp.ReplaceAllString(s.read("error_log"), "[TS]"))
		return
	}
	s.print("[accepted]")
	if now := s.read("kprobe_events"); now != "" {
		s.print("  now: " + strings.TrimSuffix(now, "\n"))
	}
}

// realTracing is tracing over a real kernel's image.
func realTracing(t *testing.T, folder string) *tracing.Tracing {
	img, err := kimage.Open(oracle.Image(t, folder), nil)
	require.NoError(t, err)
	l, err := kprobelab.New(img, &kprobelab.Options{CPUs: 2})
	require.NoError(t, err)
	tr, err := tracing.New(l.Kprobes, l.Machine, &tracing.Options{Source: img})
	require.NoError(t, err)
	t.Cleanup(func() {
		tr.Close()
		require.Zero(t, l.Kprobes.Registered())
		l.Close()
	})
	return tr
}

// block is a command of a transcript and its output.
type block struct {
	cmd  string
	want []string
}

func blocks(t *testing.T, folder, name string) []block {
	text, err := os.ReadFile(oracle.File(t, folder, "transcripts", name))
	require.NoError(t, err)
	var list []block
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if cmd, ok := strings.CutPrefix(line, "# "); ok && !headLine.MatchString(cmd) {
			list = append(list, block{cmd: cmd})
		} else if len(list) > 0 {
			list[len(list)-1].want = append(list[len(list)-1].want, line)
		}
	}
	return list
}

// normal removes the parts that belong to a boot: hashed pointers, which are addresses here, and
// the times.
func normal(lines []string) string {
	return stamp.ReplaceAllString(pointer.ReplaceAllString(strings.Join(lines, "\n"), "0xPTR"), "[TS]")
}

// TestErrorsTranscript writes the definitions that three real kernels got, and compares the results
// to the byte. Lines about the test module of that machine are left out.
func TestErrorsTranscript(t *testing.T) {
	for folder, kernel := range oracle.Kernels {
		t.Run(kernel, func(t *testing.T) {
			tr := realTracing(t, folder)
			asked := 0
			for _, b := range blocks(t, folder, "errors.txt") {
				if strings.Contains(b.cmd, "korct:nofn") {
					continue
				}
				s := &shell{t: t, tr: tr}
				if list := strings.Split(b.cmd, "; "); len(list) > 1 {
					require.NoError(t, tr.Write("error_log", "", false))
					for _, cmd := range list {
						s.command(cmd)
					}
				} else {
					m := echoCmd.FindStringSubmatch(b.cmd)
					require.NotNil(t, m, b.cmd)
					require.NoError(t, tr.Write("kprobe_events", "", false))
					s.ask(m[2])
				}
				require.Equal(t, normal(b.want), normal(s.out), "%s", b.cmd)
				asked++
			}
			require.Greater(t, asked, 90)
		})
	}
}

// TestKprobeEventsTranscript makes the definitions of three real kernels, and compares the files
// read back: kprobe_events, dynamic_events, format, id, filter, kprobes/list. Lines of that
// machine's test module are left out.
func TestKprobeEventsTranscript(t *testing.T) {
	for folder, kernel := range oracle.Kernels {
		t.Run(kernel, func(t *testing.T) {
			tr := realTracing(t, folder)
			ran := 0
			for _, b := range blocks(t, folder, "kprobe_events.txt") {
				list := strings.Split(b.cmd, "; ")
				if strings.Contains(b.cmd, "uprobe_events") || strings.HasPrefix(b.cmd, "ls events/kprobes ") || strings.HasSuffix(b.cmd, "ls events/kprobes") {
					continue // other folders, other files than here
				}
				if strings.HasPrefix(list[0], "ls ") {
					list = list[1:]
					b.want = b.want[len(b.want)-3:] // after the names of the files
				}
				s := &shell{t: t, tr: tr}
				for _, cmd := range list {
					s.command(cmd)
				}
				require.Equal(t, normal(withoutModule(b.want)), normal(s.out), "%s", b.cmd)
				ran++
			}
			require.Greater(t, ran, 8)
		})
	}
}

// TestReadmeTranscript: README's lines from kprobe_events on are lines of the kernel's, in its
// order. It leaves out the features that do not exist here: user and event probes, synthetic
// events, histograms.
func TestReadmeTranscript(t *testing.T) {
	for folder, kernel := range oracle.Kernels {
		t.Run(kernel, func(t *testing.T) {
			list := blocks(t, folder, "kprobe_events.txt")
			last := list[len(list)-1]
			require.Contains(t, last.cmd, "'kprobe_events' README")
			theirs := strings.ReplaceAll(strings.Join(last.want, "\n"), "(%<register>|$<efield>)", "%<register>") + "\n"
			text, err := fs.ReadFile(realTracing(t, folder), "README")
			require.NoError(t, err)
			_, ours, ok := strings.Cut(string(text), "\n  kprobe_events")
			require.True(t, ok)
			same := 0
			for line := range strings.Lines("  kprobe_events" + ours) {
				_, after, ok := strings.Cut(theirs, line)
				if !ok && strings.Count(theirs, "\n") <= 3 {
					break // the transcript has so many lines only
				}
				same++
				require.True(t, ok, "%q is not in what is left of the kernel's:\n%s", line, theirs)
				theirs = after
			}
			require.GreaterOrEqual(t, same, 30)
		})
	}
}

// TestEventFilesTranscript: the files of an event are the kernel's, but hist.
func TestEventFilesTranscript(t *testing.T) {
	for folder, kernel := range oracle.Kernels {
		t.Run(kernel, func(t *testing.T) {
			asked := false
			for _, b := range blocks(t, folder, "kprobe_events.txt") {
				if !strings.HasPrefix(b.cmd, "ls events/kprobes/t1;") {
					continue
				}
				asked = true
				tr := realTracing(t, folder)
				require.NoError(t, tr.Write("kprobe_events", "p:t1 vfs_write", true))
				entries, err := tr.ReadDir("events/kprobes/t1")
				require.NoError(t, err)
				var names []string
				for _, e := range entries {
					names = append(names, e.Name())
				}
				theirs := b.want[:len(b.want)-3]
				require.Equal(t, slices.DeleteFunc(slices.Clone(theirs), func(s string) bool { return s == "hist" }), names)
			}
			require.True(t, asked)
		})
	}
}

// withoutModule leaves out the lines of kprobes/list that are in the module.
func withoutModule(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(s string) bool { return strings.Contains(s, "  korct [") })
}
