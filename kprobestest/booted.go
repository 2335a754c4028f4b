package kprobestest

import (
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"

	"kprobelab"
	"kprobelab/booted"
	"kprobelab/kimage"
	"kprobelab/kimage/vmcore"
	"kprobelab/machine"
)

// dumps are the memory dumps that the process has open.
var dumps = struct {
	sync.Mutex
	open map[string]*dump
}{open: map[string]*dump{}}

// dump is an open one, and the machines on it that no test has now.
type dump struct {
	once sync.Once
	img  *kimage.Image
	err  error

	mu   sync.Mutex
	free []*pooled
}

// pooled is a machine that several tests use one after the other.
type pooled struct {
	from *dump
	lab  *kprobelab.Lab
	// fresh is the state of the dump before any test.
	fresh *machine.Snapshot
}

// plain reports whether options concern the subsystem only: tests with such options can share a
// machine.
func plain(o *kprobelab.Options) bool {
	rest := *o
	rest.Rules, rest.Preemption, rest.Optimize = nil, nil, false
	return reflect.DeepEqual(rest, kprobelab.Options{})
}

// open makes a Lab for a test: of a dump, on a shared machine if the options allow it.
func open(image string, o *kprobelab.Options) (*kprobelab.Lab, *pooled, error) {
	if !plain(o) || !isDump(image) {
		l, err := kprobelab.Open(image, o)
		return l, nil, err
	}
	dumps.Lock()
	d := dumps.open[image]
	if d == nil {
		d = &dump{}
		dumps.open[image] = d
	}
	dumps.Unlock()
	d.once.Do(func() { d.img, d.err = kprobelab.OpenImage(image, nil) })
	if d.err != nil {
		return nil, nil, d.err
	}
	p, err := d.take()
	if err != nil {
		return nil, nil, err
	}
	if err := p.lab.Renew(p.fresh, o); err != nil {
		p.lab.Close()
		return nil, nil, err
	}
	return p.lab, p, nil
}

func isDump(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	st, err := f.Stat()
	return err == nil && st.Mode().IsRegular() && vmcore.Is(f, st.Size())
}

func (d *dump) take() (*pooled, error) {
	d.mu.Lock()
	if n := len(d.free); n > 0 {
		p := d.free[n-1]
		d.free = d.free[:n-1]
		d.mu.Unlock()
		return p, nil
	}
	d.mu.Unlock()
	l, err := kprobelab.New(d.img, nil)
	if err != nil {
		return nil, err
	}
	s, err := l.Machine.Snapshot()
	if err != nil {
		l.Close()
		return nil, err
	}
	return &pooled{from: d, lab: l, fresh: s}, nil
}

// done gives the machine to the next test. After a test that failed, anything may be
// wrong with it.
func (m *Machine) done() {
	p := m.pooled
	if p == nil || m.t.Failed() || m.lab.Machine.Closed() != nil {
		m.lab.Close()
		return
	}
	p.from.mu.Lock()
	defer p.from.mu.Unlock()
	if len(p.from.free) >= runtime.GOMAXPROCS(0) {
		m.lab.Close()
		return
	}
	p.from.free = append(p.from.free, p)
}

// SystemCall makes a system call by its name, as the task in which the dump of a booted kernel
// stopped, and returns a program's result: a negative errno if it failed. The arguments are
// integers, strings and []byte (copied in and back). A call that does not return ends the test.
func (m *Machine) SystemCall(name string, args ...any) int64 {
	m.t.Helper()
	defer m.calling()()
	v, err := m.booted().SystemCall(name, args...)
	if err != nil {
		m.t.Fatalf("system call %s: %v", name, err)
	}
	return v
}

// Exec runs a program of a booted kernel's files to its end, and returns its standard output and
// standard error, and its exit code. A program that cannot be started ends the test.
func (m *Machine) Exec(args ...string) (output string, code int) {
	m.t.Helper()
	defer m.calling()()
	var out strings.Builder
	code, err := m.booted().Exec(&booted.Program{Args: args, Stdout: &out, Stderr: &out})
	if err != nil {
		m.t.Fatalf("exec: %v", err)
	}
	return out.String(), code
}

// booted returns the booted kernel of the image's dump; the test ends if the image is no dump.
func (m *Machine) booted() *booted.Kernel {
	m.t.Helper()
	k, err := m.lab.Booted()
	if err != nil {
		m.t.Fatal(err)
	}
	return k
}
