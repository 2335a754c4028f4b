// Package frame is the format in which the booted kernel's init sends data to the
// host: frames, each with a name.
//
// It must not know what the names mean.
package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"kprobelab/internal/bounded"
)

// Magic begins every frame; the length of the name and of the data follow, 4
// bytes each, little endian, then both.
const Magic = "KPLB"

// HeaderSize is the length of what comes before the name, in bytes.
const HeaderSize = len(Magic) + 8

// ErrFrame: the bytes are not a frame.
var ErrFrame = errors.New("not a frame of the guest")

// Append appends a frame to b.
func Append(b []byte, name string, data []byte) []byte {
	b = append(b, Magic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(name)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	return append(append(b, name...), data...)
}

// Read reads one frame. The error is io.EOF at the end, ErrFrame, or r's.
func Read(r io.Reader) (name string, data []byte, err error) {
	var head [HeaderSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", nil, err
	}
	n, size := binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(head[8:])
	if string(head[:4]) != Magic || n > bounded.FrameName || size > bounded.FrameData {
		return "", nil, fmt.Errorf("%w: % x", ErrFrame, head)
	}
	body := make([]byte, n+size)
	if _, err := io.ReadFull(r, body); err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return string(body[:n]), body[n:], nil
}

// Names of frames, and of files in the initramfs.
const (
	// Booted: the kernel is up and its text is as boot left it; the guest
	// goes on when it has read a line from its console.
	Booted = "booted"
	// Errnos has a line for each line of DefinitionsFile: the negative errno,
	// or 0.
	Errnos = "errnos"
	// Attached has a line for each program of ObjectFile: name, negative errno
	// or 0, section. A program of LeaveFile has no line.
	Attached = "attached"
	// Enabling names the event or program that is enabled next.
	Enabling = "enabling"
	// List is debugfs' kprobes/list after it stopped changing.
	List = "list"
	// Round is sent after each round of a benchmark, and Measured has its
	// figures, in the form that bench.ParseReal reads.
	Round    = "round"
	Measured = "measured"
	// Done is the last frame, and so is Failed, with the reason.
	Done   = "done"
	Failed = "failed"

	// DefinitionsFile has lines for kprobe_events, in the group Group.
	DefinitionsFile = "/definitions"
	Group           = "conformance"
	// EventsFile has the names of the events to enable, one a line; LeaveFile those
	// of events and programs that are not enabled.
	EventsFile = "/events"
	LeaveFile  = "/leave"
	// ObjectFile is a compiled BPF object, where there is one.
	ObjectFile = "/object.o"
	// ModuleFile is the kernel module that measures.
	ModuleFile = "/kprobelab_bench.ko"
)
