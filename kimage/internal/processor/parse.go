package processor

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"kprobelab/internal/cpumodel"
)

// cpuinfoFile is the file in which a running kernel describes its processors.
const cpuinfoFile = "/proc/cpuinfo"

// qemuNames are flags that QEMU spells in another way than the kernel; in all other
// flags QEMU's - and . stand for _.
var qemuNames = map[string]string{
	"pclmuldq": "pclmulqdq", "sse3": "pni", "ffxsr": "fxsr_opt", "i64": "lm", "xd": "nx",
	"lahf": "lahf_lm", "lzcnt": "abm", "tsc_deadline": "tsc_deadline_timer",
}

// ErrUnknown: a text names a processor or a feature that is not known. The message
// lists the known ones.
var ErrUnknown = errors.New("not a processor")

// FileError says what a file lacks to describe a processor.
type FileError struct{ Path, Want string }

// Error names the file and what it lacks.
func (e *FileError) Error() string { return e.Path + ": " + e.Want }

// cpuError is an ErrUnknown with a sentence of its own.
type cpuError struct{ text string }

func (e *cpuError) Error() string   { return e.text }
func (e *cpuError) Is(t error) bool { return t == ErrUnknown }

func notCPU(format string, args ...any) error { return &cpuError{fmt.Sprintf(format, args...)} }

// Parse reads "MODEL[,+feature][,-feature]…"; empty means cpumodel.Default.
// MODEL is a model's name, Host, or a file in the form of /proc/cpuinfo.
// read reads a file. A feature is one that exists says, one of the model's, or one by which a processor has
// an instruction set extension; the error is one sentence.
func Parse(s string, read func(path string) ([]byte, error), exists func(flag string) bool, all func() []string) (*Model, error) {
	words := strings.Split(s, ",")
	m, err := find(words[0], read)
	if err != nil {
		return nil, err
	}
	m = m.Clone()
	for _, w := range words[1:] {
		if w == "" {
			continue
		}
		flag := kernelFlag(w[1:])
		if (w[0] != '+' && w[0] != '-') || !exists(flag) && !m.Flags[flag] && !slices.Contains(cpumodel.Flags(), flag) {
			return nil, notCPU("CPU feature %q is not known; write +name or -name; this kernel's text depends on these: %s",
				w, strings.Join(all(), ", "))
		}
		if w[0] == '+' {
			m.Flags[flag] = true
		} else {
			delete(m.Flags, flag)
		}
	}
	return m, nil
}

// kernelFlag returns the kernel's name of a flag that QEMU may spell in another way.
func kernelFlag(name string) string {
	name = strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToLower(name))
	if own, ok := qemuNames[name]; ok {
		return own
	}
	return name
}

func find(name string, read func(path string) ([]byte, error)) (*Model, error) {
	switch m := Named(name); {
	case name == "":
		return Named(cpumodel.Default), nil
	case m != nil:
		return m, nil
	case name == Host:
		return readHost(read)
	case strings.ContainsRune(name, '/'):
		return readFile(name, read)
	}
	if _, err := os.Stat(name); err == nil {
		return readFile(name, read)
	}
	return nil, notCPU("CPU model %q is not known; there are %s, %s, and a file in the form of %s",
		name, strings.Join(Names(), ", "), Host, cpuinfoFile)
}

func readHost(read func(path string) ([]byte, error)) (*Model, error) {
	if runtime.GOARCH != "amd64" || runtime.GOOS != "linux" {
		return nil, notCPU("the CPU model %q needs Linux on x86-64; there are %s", Host, strings.Join(Names(), ", "))
	}
	m, err := readFile(cpuinfoFile, read)
	if err == nil {
		m.Name = Host
	}
	return m, err
}

// readFile reads what the first processor of a copy of /proc/cpuinfo says
// in the lines vendor_id, cpu family, flags and bugs. The last two are needed.
func readFile(path string, read func(path string) ([]byte, error)) (*Model, error) {
	b, err := read(path)
	if err != nil {
		return nil, err
	}
	m := &Model{Name: path, Updated: true}
	siblings := 0
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "processor":
			if m.Flags != nil {
				return m, m.complete(path)
			}
		case "vendor_id":
			m.Vendor = value
		case "cpu family":
			m.Family, _ = strconv.Atoi(value)
		case "model":
			m.Number, _ = strconv.Atoi(value)
		case "siblings":
			siblings, _ = strconv.Atoi(value)
		case "cpu cores":
			cores, _ := strconv.Atoi(value)
			m.Threads = siblings > cores
		case "flags":
			m.Flags = Words(value)
		case "bugs":
			m.Bugs = Words(value)
		}
	}
	return m, m.complete(path)
}

func (m *Model) complete(path string) error {
	if m.Vendor == "" || m.Flags == nil || m.Bugs == nil {
		return &FileError{path, "lines vendor_id, cpu family, flags and bugs are wanted, as in " + cpuinfoFile}
	}
	return nil
}
