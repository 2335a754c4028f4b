package main

import (
	"path"
	"strings"

	"kprobelab/boot"
)

// traceFiles checks what --tracefs and --trace-output say.
func (p *plan) traceFiles() error {
	if _, err := tracefsWrites(p.tracefs); err != nil || p.traceOutput == "" {
		return err
	}
	if len(p.events)+len(p.tracefs) == 0 {
		return usagef("--trace-output goes with -e or --tracefs")
	}
	if err := boot.CheckOutput(p.traceOutput); err != nil {
		return &failure{exitImage, err}
	}
	return nil
}

// tracefsWrites reads the values of --tracefs.
func tracefsWrites(list []string) ([]boot.TraceWrite, error) {
	var writes []boot.TraceWrite
	for _, s := range list {
		file, text, ok := strings.Cut(s, "=")
		if !ok || file == "" || file != strings.TrimPrefix(path.Clean("/"+file), "/") {
			return nil, usagef("--tracefs %q: want FILE=TEXT, the file's path in the folder of tracing, as trace_options=stacktrace", s)
		}
		writes = append(writes, boot.TraceWrite{File: file, Text: text})
	}
	return writes, nil
}
