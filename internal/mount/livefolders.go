//go:build linux

package mount

import (
	"path"
	"slices"

	"kprobelab/tracing"
)

// folders tells the guest of the folders that definitions make.
type folders struct {
	*tracing.Tracing
	live *Live
}

// OpenFile implements tracing.Tree.
func (f *folders) OpenFile(name string, flag int) (tracing.Handle, error) {
	if name != "kprobe_events" && name != "dynamic_events" {
		return f.Tracing.OpenFile(name, flag)
	}
	defer f.tell(f.list()) // truncation removes
	h, err := f.Tracing.OpenFile(name, flag)
	if err != nil {
		return nil, err
	}
	return &definitions{h, f}, nil
}

// tell tells the guest which folders have come and gone since the list was
// made. The guest knows a folder by its last name.
func (f *folders) tell(before []string) {
	after := f.list()
	for _, name := range after {
		if !slices.Contains(before, name) {
			f.live.guest.createDir(path.Base(name))
		}
	}
	for _, name := range before {
		if !slices.ContainsFunc(after, func(s string) bool { return path.Base(s) == path.Base(name) }) {
			f.live.guest.removeDir(path.Base(name))
		}
	}
}

// definitions is an open file that events are defined through.
type definitions struct {
	tracing.Handle
	folders *folders
}

// WriteAt implements tracing.Handle.
func (d *definitions) WriteAt(b []byte, off int64) (int, error) {
	defer d.folders.tell(d.folders.list())
	return d.Handle.WriteAt(b, off)
}

// list are the folders of groups and events, a group before its events.
func (f *folders) list() []string {
	var list []string
	groups, _ := f.Tracing.ReadDir("events")
	for _, g := range groups {
		if !g.IsDir() {
			continue
		}
		at := "events/" + g.Name()
		list = append(list, at)
		events, _ := f.Tracing.ReadDir(at)
		for _, e := range events {
			if e.IsDir() {
				list = append(list, at+"/"+e.Name())
			}
		}
	}
	return list
}
