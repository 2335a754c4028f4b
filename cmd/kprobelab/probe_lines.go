package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/perfprobe"
	"kprobelab/internal/source"
)

func probeLines(t *term, f *source.File, text, dir string) error {
	r, err := perfprobe.ParseLines(text)
	if err != nil {
		return err
	}
	l, err := f.Lines(r.Where, r.From, r.To)
	if err != nil {
		return err
	}
	path, body := sourceText(l.Path, dir)
	head := ""
	if l.Function != "" {
		head = l.Function + "@"
	}
	fmt.Fprintf(t.out, "<%s%s:%d>\n", head, path, l.From-l.Base)
	if body == nil {
		for _, no := range l.Lines {
			fmt.Fprintf(t.out, "%7d\n", no-l.Base)
		}
		return nil
	}
	return writeLines(t, l, body)
}

// after is how many lines follow the last one that can be probed.
const after = 2

// writeLines prints the source with the numbers of the lines that can be probed.
func writeLines(t *term, l *source.Listing, body []byte) error {
	last := l.To
	if last == math.MaxInt32 {
		last = l.Lines[len(l.Lines)-1] + after + 1
	}
	s := bufio.NewScanner(bytes.NewReader(body))
	s.Buffer(nil, maxSource)
	for no := 1; s.Scan() && no <= last; no++ {
		if no < l.From {
			continue
		}
		number := "       "
		if slices.Contains(l.Lines, no) {
			number = fmt.Sprintf("%7d", no-l.Base)
		}
		fmt.Fprintf(t.out, "%s  %s\n", number, s.Text())
	}
	return s.Err()
}

// maxSource bounds a file of source text.
const maxSource = 16 << 20

// sourceText is the text of a source file: where the compiler had it, or below a folder,
// there with as many of the path's folders as are there. Without text, it is the path.
func sourceText(path, dir string) (string, []byte) {
	if dir == "" {
		b, err := bounded.ReadFile(path, maxSource)
		if err != nil {
			return path, nil
		}
		return path, b
	}
	for rest := path; ; {
		full := filepath.Join(dir, rest)
		if s, err := os.Stat(full); err == nil && s.Mode().IsRegular() {
			b, err := bounded.ReadFile(full, maxSource)
			if err != nil {
				return path, nil
			}
			return full, b
		}
		_, after, ok := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
		if !ok {
			return path, nil
		}
		rest = after
	}
}
