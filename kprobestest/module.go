package kprobestest

import (
	"context"
	"os"

	"kprobelab/booted"
)

// Module loads a module of the kernel's own kind, FILE.ko, on the booted kernel, calls do, unloads the module, and returns its
// judgement: hits and missed hits of its probes, faults, and what it has left. Judgement.Clean is true if there is nothing to
// say against it. A module that the kernel refuses to load or to unload ends the test.
func (m *Machine) Module(file, parameters string, do func()) *booted.Judgement {
	m.t.Helper()
	code, err := os.ReadFile(file)
	if err != nil {
		m.t.Fatal(err)
	}
	loaded, err := m.load(file, code, parameters)
	if err != nil {
		m.t.Fatalf("load: %v", err)
	}
	do()
	defer m.calling()()
	j, err := loaded.Unload(context.Background())
	if err != nil {
		m.t.Fatalf("unload: %v", err)
	}
	return j
}

func (m *Machine) load(file string, code []byte, parameters string) (*booted.Module, error) {
	defer m.calling()()
	return m.booted().Load(context.Background(), file, code, parameters)
}
