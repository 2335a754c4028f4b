package run

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
	"kprobelab/internal/process"
)

// The files that a program without a kernel has are bounded, how many there are and their bytes.
func TestFilesThatAreTooMany(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(name, []byte("abc"), 0o600))
	t.Run("ProgramFiles", func(t *testing.T) {
		f := &Files{others: make([]*process.File, bounded.ProgramFiles-1)}
		require.NoError(t, f.Add("/x="+dir))
		require.ErrorContains(t, f.Add("/x="+dir), dir+": --file takes 20000 files at most")
	})
	t.Run("ProgramBytes", func(t *testing.T) {
		f := &Files{bytes: bounded.ProgramBytes - 3}
		require.NoError(t, f.Add("/x="+name))
		require.ErrorContains(t, f.Add("/x="+name), "the files of --file have more than 1024 MB")
		f = &Files{bytes: bounded.ProgramBytes - 2}
		require.ErrorContains(t, f.Add("/x="+dir), "the files of --file have more than 1024 MB")
	})
}

// put is a sink that is a function.
type put func(Event) error

// Put implements Sink.
func (p put) Put(e Event) error { return p(e) }

// A log without end, as of a kernel whose memory is full again and again, is shown with its first and its last lines.
func TestTroubleWithoutEnd(t *testing.T) {
	const n = bounded.TroubleLines
	for _, c := range []struct {
		lines int
		left  string
	}{{0, ""}, {1, ""}, {n, ""}, {n + 1, "left out of the kernel's log: one line"}, {10 * n, fmt.Sprintf("left out of the kernel's log: %d lines", 9*n)}} {
		var lines, shown []string
		left := ""
		for i := range c.lines {
			lines = append(lines, fmt.Sprint(i))
		}
		r := &runner{feed: feed{put(func(e Event) error {
			if l := e.(Logged); l.From == "dmesg" {
				shown = append(shown, l.Line)
			} else {
				left = l.Line
			}
			return nil
		})}}
		r.trouble(lines)
		require.Equal(t, c.left, left)
		require.Len(t, shown, min(c.lines, n))
		require.Equal(t, lines[:min(c.lines, n/2)], shown[:min(c.lines, n/2)])
		require.Equal(t, lines[c.lines-min(c.lines, n/2):], shown[len(shown)-min(c.lines, n/2):])
	}
}
