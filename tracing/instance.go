package tracing

import (
	"io/fs"
	"strings"

	"kprobelab/errno"
)

// Mkdir makes an instance, "instances/NAME": a trace buffer and events' enable files of its own.
// EEXIST if it exists; EPERM anywhere else; ENOMEM if there is no room.
func (t *Tracing) Mkdir(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.usable(); err != nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: err}
	}
	base, ok := instanceName(name)
	if !ok {
		return &fs.PathError{Op: "mkdir", Path: name, Err: errno.EPERM}
	}
	if t.instance(base) != nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: errno.EEXIST}
	}
	a, err := newTraceArray(t, base)
	if err != nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: err}
	}
	t.instances = append(t.instances, a)
	return nil
}

// Rmdir removes an instance: its events stop, readers of its trace_pipe see the end. ENOENT if it
// does not exist; EPERM anywhere else.
func (t *Tracing) Rmdir(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.usable(); err != nil {
		return &fs.PathError{Op: "rmdir", Path: name, Err: err}
	}
	base, ok := instanceName(name)
	if !ok {
		return &fs.PathError{Op: "rmdir", Path: name, Err: errno.EPERM}
	}
	a := t.instance(base)
	if a == nil {
		return &fs.PathError{Op: "rmdir", Path: name, Err: noEntry{}}
	}
	for _, f := range a.files {
		f.triggers.Clear()
	}
	for _, f := range a.files {
		f.stop()
		f.event.files = without(f.event.files, f)
	}
	a.close()
	t.instances = without(t.instances, a)
	return t.traceFunctions()
}

func instanceName(path string) (string, bool) {
	name, ok := strings.CutPrefix(path, "instances/")
	return name, ok && name != "" && fs.ValidPath(path) && !strings.Contains(name, "/")
}

func (t *Tracing) instance(name string) *traceArray {
	for _, a := range t.instances {
		if a.name == name {
			return a
		}
	}
	return nil
}
