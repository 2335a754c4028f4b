package session

import (
	"fmt"
	"slices"
	"strings"

	"kprobelab/booted"
	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/internal/process"
	"kprobelab/internal/tracing/definition"
)

// Uprobes are events in the booted kernel's own uprobe_events, and events of other kinds
// (definition.Other) in its dynamic_events: its own code puts the probes into its processes and its
// functions, and writes their hits into its own file trace. Nothing of package uprobes is used.
//
// System calls of the task in which the dump stopped use the files: kprobes that are planted
// meanwhile see them.
type Uprobes struct {
	l      *Session
	kernel *booted.Kernel
	groups []string
	// events is the file of the events: dynamic_events once others are among them.
	events string
	hits   *userHits
}

// tracefs is the folder of the booted kernel's files of tracing.
const tracefs = "/sys/kernel/tracing/"

// Flags of open.
const (
	openWrite  = 0x1
	openAppend = 0x400
	atCWD      = -100
)

// UprobeRefused is a definition or a file that the kernel refused. It unwraps to the errno.
type UprobeRefused struct {
	// What is the definition, or the file that was to be used.
	What string
	// Log is the message of error_log about a definition; "" if there is none.
	Log string
	errno.Errno
}

// Error implements error.
func (e *UprobeRefused) Error() string { return e.What + ": " + e.Errno.Error() }

// Unwrap returns the errno.
func (e *UprobeRefused) Unwrap() error { return e.Errno }

// Uprobes returns the booted kernel's uprobe events. The error is booted.ErrNotBooted for an
// image that is no dump, a *UprobeRefused if the kernel has no such file.
func (l *Session) Uprobes() (*Uprobes, error) {
	k, err := l.Booted()
	if err != nil {
		return nil, err
	}
	u := &Uprobes{l: l, kernel: k, events: tracefs + "uprobe_events"}
	_, err = u.read(u.events)
	return u, err
}

// Define writes a line to uprobe_events, one of another kind to dynamic_events. A refusal is a
// *UprobeRefused.
func (u *Uprobes) Define(line string) error {
	l := definition.ReadLine(line)
	file := tracefs + "uprobe_events"
	if l.Other() != "" {
		file = tracefs + "dynamic_events"
		u.events = file
	}
	err := u.write(file, line+"\n")
	if e, refused := err.(*UprobeRefused); refused {
		e.What = line
		e.Log = u.lastError(l)
	}
	return err
}

// lastError is the last entry of error_log, if it is about the line.
func (u *Uprobes) lastError(l definition.Line) string {
	log, err := u.read(tracefs + "error_log")
	if err != nil {
		return "" // before 5.2
	}
	i := strings.LastIndex(log, ": error: ")
	i = strings.LastIndex(log[:max(i, 0)], "] ")
	if i < 0 || !strings.Contains(log[i:], "  Command: "+l.Command()+"\n") {
		return ""
	}
	return log[i+2:]
}

// File is a file of the guest's. One that cannot be read is a *UprobeRefused.
func (u *Uprobes) File(name string) (*process.File, error) {
	text, err := u.read(name)
	if err != nil {
		return nil, err
	}
	return &process.File{Name: name, Data: []byte(text)}, nil
}

// Offset returns the offset in a file of the guest's at which a function begins, by its symbol.
// The error is a *UprobeRefused if the file cannot be read.
func (u *Uprobes) Offset(file, symbol string) (uint64, error) {
	f, err := u.File(file)
	if err != nil {
		return 0, err
	}
	return f.Offset(symbol)
}

// Write writes to another of the kernel's files of tracing. A refusal is a *UprobeRefused.
func (u *Uprobes) Write(file, text string) error { return u.write(tracefs+file, text+"\n") }

// Enable enables all events, group by group: of those at one place the first is hit first. A
// refusal is a *UprobeRefused.
func (u *Uprobes) Enable() error {
	text, err := u.read(u.events)
	if err != nil {
		return err
	}
	var groups []string
	for line := range strings.Lines(text) {
		_, name, _ := strings.Cut(line, ":")
		group, _, ok := strings.Cut(name, "/")
		if ok && !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	for _, g := range groups {
		if err := u.write(tracefs+"events/"+g+"/enable", "1"); err != nil {
			return err
		}
		u.groups = append(u.groups, g)
	}
	return nil
}

// Trace returns the kernel's file trace. Recording stops meanwhile: an event on code that reads a
// file would make the trace endless.
func (u *Uprobes) Trace() (text string, err error) {
	if err := u.write(tracefs+"tracing_on", "0"); err != nil {
		return "", err
	}
	text, err = u.read(tracefs + "trace")
	if on := u.write(tracefs+"tracing_on", "1"); err == nil {
		err = on
	}
	return text, err
}

// Profile returns the kernel's file uprobe_profile.
func (u *Uprobes) Profile() (string, error) { return u.read(tracefs + "uprobe_profile") }

// Close disables and removes all events.
func (u *Uprobes) Close() error {
	for _, g := range u.groups {
		if err := u.write(tracefs+"events/"+g+"/enable", "0"); err != nil {
			return err
		}
	}
	u.groups = nil
	fd, err := u.call(u.events, "openat", atCWD, u.events, openWrite|openFresh, 0)
	if err == nil {
		_, err = u.call(u.events, "close", fd)
	}
	return err
}

// openFresh is O_TRUNC, which removes the events.
const openFresh = 0x200

// call makes a system call for a file; its error is a *UprobeRefused, or the machine's.
func (u *Uprobes) call(file, name string, args ...any) (int64, error) {
	v, err := u.kernel.SystemCall(name, args...)
	if err == nil && v < 0 {
		err = &UprobeRefused{What: file, Errno: errno.Errno(-v)}
	}
	return v, err
}

func (u *Uprobes) write(file, text string) error {
	fd, err := u.call(file, "openat", atCWD, file, openWrite|openAppend, 0)
	if err != nil {
		return err
	}
	_, err = u.call(file, "write", fd, []byte(text), len(text))
	if _, closing := u.call(file, "close", fd); err == nil {
		err = closing
	}
	return err
}

func (u *Uprobes) read(file string) (string, error) {
	fd, err := u.call(file, "openat", atCWD, file, 0, 0)
	if err != nil {
		return "", err
	}
	text, err := whole(file, func(b []byte) (int64, error) { return u.call(file, "read", fd, b, len(b)) })
	if _, closing := u.call(file, "close", fd); err == nil {
		err = closing
	}
	return text, err
}

// whole is a file of the guest, read in pieces.
func whole(file string, read func([]byte) (int64, error)) (string, error) {
	var text strings.Builder
	buf := make([]byte, 1<<16)
	for {
		n, err := read(buf)
		if n <= 0 || err != nil {
			return text.String(), err
		}
		if text.Write(buf[:n]); text.Len() > bounded.UprobeFile {
			return text.String(), fmt.Errorf("%s has more than %d bytes: %w", file, bounded.UprobeFile, errno.ENOMEM)
		}
	}
}
