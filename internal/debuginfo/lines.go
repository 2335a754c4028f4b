package debuginfo

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/perfprobe"
	"kprobelab/internal/source"
)

// WriteLines lists the lines that a text names as perf probe -L does, with the numbers of those that can be probed, and
// their source where it is: below dir, or where the file's own folder or the working directory has it.
func WriteLines(w io.Writer, f *source.File, text, dir string) error {
	r, err := perfprobe.ParseLines(text)
	if err != nil {
		return err
	}
	l, err := f.Lines(r.Where, r.From, r.To)
	if err != nil {
		return err
	}
	path, body := sourceText(l.Path, dir, f.Path())
	head := ""
	if l.Function != "" {
		head = l.Function + "@"
	}
	fmt.Fprintf(w, "<%s%s:%d>\n", head, path, l.From-l.Base)
	if body == nil {
		for _, no := range l.Lines {
			fmt.Fprintf(w, "%7d\n", no-l.Base)
		}
		return nil
	}
	return writeSource(w, l, body)
}

// after is how many lines follow the last one that can be probed.
const after = 2

// writeSource writes the source with the numbers of the lines that can be probed.
func writeSource(w io.Writer, l *source.Listing, body []byte) error {
	last := l.To
	if last == math.MaxInt32 {
		last = l.Lines[len(l.Lines)-1] + after + 1
	}
	s := bufio.NewScanner(bytes.NewReader(body))
	s.Buffer(nil, bounded.SourceText)
	for no := 1; s.Scan() && no <= last; no++ {
		if no < l.From {
			continue
		}
		number := "       "
		if slices.Contains(l.Lines, no) {
			number = fmt.Sprintf("%7d", no-l.Base)
		}
		fmt.Fprintf(w, "%s  %s\n", number, s.Text())
	}
	return s.Err()
}

// sourceText returns the text of a source file. The debugging information chooses the file's name, so it is
// read only below a folder: the one that the user gives, there with as many of the path's folders as are there.
// Without one, it is the one that the object lies in, or the working directory, if the name is that of a
// source. Without text, it is the path.
func sourceText(path, dir, object string) (string, []byte) {
	if dir == "" {
		for _, home := range []string{filepath.Dir(object), "."} {
			if b := sourceBelow(home, path); b != nil {
				return path, b
			}
		}
		return path, nil
	}
	for rest := filepath.Clean("/" + path)[1:]; ; {
		if b, err := bounded.ReadBelow(dir, rest, bounded.SourceText); err == nil {
			return filepath.Join(dir, rest), b
		}
		_, after, ok := strings.Cut(rest, "/")
		if !ok {
			return path, nil
		}
		rest = after
	}
}

// sourceBelow is the text of a file below a folder whose name is a source's, nil without one.
func sourceBelow(home, path string) []byte {
	home, err := filepath.Abs(home)
	if err != nil || !slices.Contains(sourceSuffixes, filepath.Ext(path)) {
		return nil
	}
	if filepath.IsAbs(path) {
		if path, err = filepath.Rel(home, path); err != nil {
			return nil
		}
	}
	b, err := bounded.ReadBelow(home, path, bounded.SourceText)
	if err != nil {
		return nil
	}
	return b
}

// sourceSuffixes end the names of sources.
var sourceSuffixes = []string{".c", ".h", ".S", ".s", ".inc", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".rs", ".go", ".y", ".l", ".m", ".d", ".zig"}
