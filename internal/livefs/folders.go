//go:build cgo && linux && amd64

package livefs

import (
	"path"

	"kprobelab/tracing"
)

// folders tells the guest of the folders that definitions make.
type folders struct {
	*tracing.Tracing
	live *Live
}

// OpenFile implements tracing.Tree.
func (f *folders) OpenFile(name string, flag int) (tracing.Handle, error) {
	h, err := f.Tracing.OpenFile(name, flag)
	if err == nil && (name == "kprobe_events" || name == "dynamic_events") {
		return &definitions{h, f}, nil
	}
	return h, err
}

// definitions is an open file that events are defined through.
type definitions struct {
	tracing.Handle
	folders *folders
}

// WriteAt implements tracing.Handle.
func (d *definitions) WriteAt(b []byte, off int64) (int, error) {
	before := map[string]bool{}
	for _, name := range d.folders.list() {
		before[name] = true
	}
	n, err := d.Handle.WriteAt(b, off)
	for _, name := range d.folders.list() {
		if !before[name] {
			d.folders.live.guest.createDir(path.Base(name))
		}
	}
	return n, err
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
