//go:build linux

package mount

import (
	"strings"

	"kprobelab"
	"kprobelab/kimage"
	"kprobelab/tracing"
)

// Live is the tracing files of a lab.
type Live struct {
	lab     *kprobelab.Lab
	tracing *tracing.Tracing
	guest   guest
	call    callFile
	// root is the folder kprobelab/root.
	root *MemTree
	// kernel is the booted kernel's own directory, nil without one.
	kernel *guestTree
	log    func(string)
}

// NewLive makes the files. log receives the lines of the kernel's log, and the guest's errors. The
// caller closes it, and the lab after it.
func NewLive(l *kprobelab.Lab, log func(line string)) (*Live, error) {
	f := &Live{lab: l, log: log, root: newRoot()}
	f.guest.live, f.call.live = f, f
	f.guest.find()
	o := &tracing.Options{Log: log, Files: regularFile}
	if l.Image.Core() == nil { // a booted kernel has tasks of its own
		o.Task = f.guest.task
	}
	t, err := l.Tracing(o)
	if err != nil {
		return nil, err
	}
	f.tracing = t
	f.kernel = newGuestTree(f)
	return f, nil
}

// newRoot is the part of the guest's root that a host can lay over its own, so that the guest sees
// programs' use of /tmp and /dev/null.
func newRoot() *MemTree {
	t := NewMemTree()
	for _, err := range []error{t.Fix("dev"), t.Null("dev/null"), t.Fix("tmp")} {
		if err != nil {
			panic("BUG: " + err.Error())
		}
	}
	return t
}

// Close removes all events and ends readers that wait.
func (f *Live) Close() { f.tracing.Close() }

// Tree returns the tree of files: the tracing directory's, which on a booted kernel are that
// kernel's own (guestTree), and in the folder kprobelab the program's own.
func (f *Live) Tree() tracing.Tree {
	var files tracing.Tree = &folders{f.tracing, f}
	if f.kernel != nil {
		files = f.kernel.tree()
	}
	own := Overlay(files, map[string]File{
		"kprobelab/call":     {Mode: 0o640, Open: f.call.open},
		"kprobelab/kallsyms": {Mode: 0o440, Open: f.text(f.kallsyms)},
		"kprobelab/version":  {Mode: 0o440, Open: f.text(f.banner)},
	})
	return Graft(own, guestRoot, f.root)
}

// Guest is the guest kernel as the mount drives it.
func (f *Live) Guest() Guest { return &f.guest }

// do runs guest code with current set to the process that made the request, and then lets the
// kprobe optimizer finish.
func (f *Live) do(p Process, fn func() error) error {
	var err error
	f.tracing.Do(func() {
		if p.PID != 0 {
			f.guest.current = p
		}
		err = fn()
		if hit := f.lab.Kprobes.ClearErr(); err == nil {
			err = hit
		}
	})
	return err
}

// settle lets the kprobe optimizer finish: between two system calls its delay always passes.
func (f *Live) settle() { f.tracing.Do(func() { _ = f.lab.Settle() }) }

// kallsyms returns the text of /proc/kallsyms: the image's symbols, then the symbols that were made
// since (slots, trampolines).
func (f *Live) kallsyms() string {
	var b strings.Builder
	for _, list := range [][]kimage.Symbol{f.lab.Image.Symbols(), f.lab.Machine.Symbols()} {
		for i := range list {
			writeSymbol(&b, &list[i])
		}
	}
	return b.String()
}

// banner is the text of /proc/version.
func (f *Live) banner() string {
	found := f.lab.Image.Lookup("linux_banner")
	if len(found) == 0 {
		return ""
	}
	return f.cString(found[0].Addr) + "\n"
}
