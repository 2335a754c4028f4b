package main

import (
	"fmt"
	"os"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
	"kprobelab/internal/report"
)

// scanDiff compares two files that scan --json has written.
func scanDiff(t *term, c *cli.Command) error {
	for _, name := range c.FlagNames() {
		if name != "diff" && name != "json" {
			return usagef("--diff compares what was scanned already; --%s has to be given to the scans", name)
		}
	}
	if c.Args().Len() != 2 {
		return usagef("--diff takes two files, OLD and NEW, that scan --json has written")
	}
	var files [2]*report.ScanFile
	for i := range files {
		var err error
		if files[i], err = readScan(c.Args().Get(i)); err != nil {
			return err
		}
	}
	changes := report.CompareScans(files[0], files[1])
	if c.Bool("json") {
		return changes.WriteJSON(t.out)
	}
	return changes.WriteText(t.out)
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
