package kprobestest

import (
	"os"
	"path"
	"strings"

	"kprobelab/booted"
	"kprobelab/bpf"
	"kprobelab/bpf/answer"
	"kprobelab/hostfiles"
)

// LoadBPF has the verifier of a booted kernel load each program of a BPF object, and the kernel attach it as its section says, as
// kprobelab bpf does. Probes of the test see the kernel's work from outside. The object is a file that clang or bpf2go has made; a
// CollectionSpec of cilium/ebpf is read from the same file. A program that the kernel refuses is an answer; the test ends if the
// kernel cannot be asked. The verifier takes more instructions than Options.Budget has by default: bpf.Budget is enough.
func (m *Machine) LoadBPF(file string, o *bpf.Options) []answer.Program {
	m.t.Helper()
	object, err := os.ReadFile(file)
	if err != nil {
		m.t.Fatal(err)
	}
	defer m.calling()()
	a, err := bpf.Load(m.booted(), object, o)
	if err != nil {
		m.t.Fatalf("%s: %v", file, err)
	}
	return a.Programs
}

// ExecHost runs a static program of the host on the booted kernel, such as a test that go test -c has made with CGO_ENABLED=0, and
// returns its standard output and standard error, and its exit code. A program that cannot be started ends the test.
func (m *Machine) ExecHost(file string, args ...string) (output string, code int) {
	m.t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		m.t.Fatal(err)
	}
	k, at := m.booted(), path.Join("/kprobestest", path.Base(strings.ReplaceAll(file, "\\", "/")))
	if err := k.Prepare([]hostfiles.File{{Path: at, Mode: 0o755, Data: data}}); err != nil {
		m.t.Fatal(err)
	}
	defer m.calling()()
	var out strings.Builder
	code, err = k.Exec(&booted.Program{Args: append([]string{at}, args...), Stdout: &out, Stderr: &out})
	if err != nil {
		m.t.Fatalf("exec: %v", err)
	}
	return out.String(), code
}
