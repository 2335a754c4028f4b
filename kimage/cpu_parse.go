package kimage

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

// ErrCPU: Options.CPU names a processor or a feature that is not known. The message
// lists the known ones.
var ErrCPU = errors.New("not a processor")

// cpuError is an ErrCPU with a sentence of its own.
type cpuError struct{ text string }

func (e *cpuError) Error() string   { return e.text }
func (e *cpuError) Is(t error) bool { return t == ErrCPU }

func notCPU(format string, args ...any) error { return &cpuError{fmt.Sprintf(format, args...)} }

// parseCPU reads "MODEL[,+feature][,-feature]…"; empty means DefaultCPU.
// MODEL is a model's name, HostCPU, or a file in the form of /proc/cpuinfo.
// A feature is one that exists says, one of the model's, or one by which a processor has
// an instruction set extension; the error is one sentence.
func parseCPU(s string, exists func(flag string) bool, all func() []string) (*cpuModel, error) {
	words := strings.Split(s, ",")
	m, err := findCPU(words[0])
	if err != nil {
		return nil, err
	}
	m = m.clone()
	for _, w := range words[1:] {
		if w == "" {
			continue
		}
		flag := kernelFlag(w[1:])
		if (w[0] != '+' && w[0] != '-') || !exists(flag) && !m.flags[flag] && !slices.Contains(cpumodel.Flags(), flag) {
			return nil, notCPU("CPU feature %q is not known; write +name or -name; this kernel's text depends on these: %s",
				w, strings.Join(all(), ", "))
		}
		if w[0] == '+' {
			m.flags[flag] = true
		} else {
			delete(m.flags, flag)
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

func findCPU(name string) (*cpuModel, error) {
	switch m := namedModel(name); {
	case name == "":
		return namedModel(DefaultCPU), nil
	case m != nil:
		return m, nil
	case name == HostCPU:
		return readHost()
	case strings.ContainsRune(name, '/'):
		return readCPUFile(name)
	}
	if _, err := os.Stat(name); err == nil {
		return readCPUFile(name)
	}
	return nil, notCPU("CPU model %q is not known; there are %s, %s, and a file in the form of %s",
		name, strings.Join(CPUModels(), ", "), HostCPU, cpuinfoFile)
}

func readHost() (*cpuModel, error) {
	if runtime.GOARCH != "amd64" || runtime.GOOS != "linux" {
		return nil, notCPU("the CPU model %q needs Linux on x86-64; there are %s", HostCPU, strings.Join(CPUModels(), ", "))
	}
	m, err := readCPUFile(cpuinfoFile)
	if err == nil {
		m.name = HostCPU
	}
	return m, err
}

// readCPUFile reads what the first processor of a copy of /proc/cpuinfo says
// in the lines vendor_id, cpu family, flags and bugs. The last two are needed.
func readCPUFile(path string) (*cpuModel, error) {
	b, err := readMaybePacked(path, nil)
	if err != nil {
		return nil, err
	}
	m := &cpuModel{name: path, updated: true}
	siblings := 0
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "processor":
			if m.flags != nil {
				return m, m.complete(path)
			}
		case "vendor_id":
			m.vendor = value
		case "cpu family":
			m.family, _ = strconv.Atoi(value)
		case "model":
			m.model, _ = strconv.Atoi(value)
		case "siblings":
			siblings, _ = strconv.Atoi(value)
		case "cpu cores":
			cores, _ := strconv.Atoi(value)
			m.threads = siblings > cores
		case "flags":
			m.flags = wordSet(value)
		case "bugs":
			m.bugs = wordSet(value)
		}
	}
	return m, m.complete(path)
}

func (m *cpuModel) complete(path string) error {
	if m.vendor == "" || m.flags == nil || m.bugs == nil {
		return badFormat(path, -1, "lines vendor_id, cpu family, flags and bugs are wanted, as in %s", cpuinfoFile)
	}
	return nil
}
