package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
	"kprobelab/internal/report"
)

// diffFlags go with --diff: the others say how one scan is made.
var diffFlags = []string{"diff", "json", "all", "cpu", "padding"}

// scanDiff compares two kernels: images, dumps, or what scan --json has written of them.
func scanDiff(t *term, c *cli.Command) error {
	for _, name := range c.FlagNames() {
		if !slices.Contains(diffFlags, name) {
			return usagef("--diff compares two kernels as a whole; --%s goes with a scan of one", name)
		}
	}
	if c.Args().Len() != 2 {
		return usagef("--diff takes two kernels, OLD and NEW: images, dumps, or files that scan --json has written")
	}
	var files [2]*report.ScanFile
	for i := range files {
		var err error
		if files[i], err = scanOf(t, c, c.Args().Get(i)); err != nil {
			return err
		}
	}
	changes := report.CompareScans(files[0], files[1])
	if c.Bool("json") {
		return changes.WriteJSON(t.out)
	}
	return changes.WriteText(t.out, c.Bool("all"))
}

// scanOf is a scan that a file has, or that is made of an image.
func scanOf(t *term, c *cli.Command, name string) (*report.ScanFile, error) {
	written, err := isScan(name)
	if err != nil {
		return nil, err
	}
	if written {
		return readScan(name)
	}
	img, err := openImage(t, c, name)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(t.err, heading(c, img))
	s := report.NewScan(img)
	s.Padding = c.Bool("padding")
	s.Progress = func(done, total int64) { t.count("scan", "points", done, total) }
	f, err := report.ScanWhole(s)
	t.progressDone()
	return f, err
}

// isScan tells what scan --json has written, plain or gzip, from an image: it begins with a brace.
// Standard input is none of an image.
func isScan(name string) (bool, error) {
	if name == "-" {
		return true, nil
	}
	f, err := bounded.Open(name)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			return false, err
		}
		return false, nil // an image may be what is no plain file
	}
	defer f.Close()
	var head [2]byte
	n, _ := io.ReadFull(f, head[:])
	if !bytes.Equal(head[:n], []byte{0x1f, 0x8b}) {
		return n > 0 && head[0] == '{', nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return false, nil
	}
	n, _ = io.ReadFull(z, head[:1])
	return n == 1 && head[0] == '{', nil
}

func readScan(name string) (*report.ScanFile, error) {
	f := os.Stdin
	if name != "-" {
		var err error
		if f, err = bounded.Open(name); err != nil {
			return nil, err
		}
		defer f.Close()
	}
	s, err := report.ReadScan(name, f)
	if err != nil {
		return nil, &failure{exitImage, fmt.Errorf("--diff: %w", err)}
	}
	return s, nil
}
