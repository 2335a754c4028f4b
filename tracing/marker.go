package tracing

import (
	"bytes"
	"encoding/binary"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/tracing/event"
)

// printID is the type of the records that trace_marker writes (TRACE_PRINT).
const printID = 5

// A record of text has the address of the code that wrote it, then the text. In
// a kernel the address only names the writer; a small number does so here.
const (
	offMarkIP   = event.CommonSize
	offMarkText = event.CommonSize + 8
	userMark    = 0
	// snapshotMark: the kernel itself, when a snapshot cannot be taken.
	snapshotMark = 1
)

// maxMark bounds a write to trace_marker (TRACE_BUF_SIZE, and from 6.8 on a
// page): no more is taken of a longer one.
func (a *traceArray) maxMark() int {
	if a.t.c.BTFArgs {
		return 4096 - offMarkText
	}
	return 1024
}

// mark is a write to trace_marker. EBADF while tracing is off,
// EINVAL with the option "markers" off.
func (a *traceArray) mark(b []byte) (int, error) {
	if a.options.noMarkers {
		return 0, errno.EINVAL
	}
	if !a.recording() {
		return 0, errno.EBADF
	}
	b = b[:min(len(b), a.maxMark())]
	text := string(b)
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	pid, comm := a.t.current()
	var head [event.CommonSize]byte
	binary.LittleEndian.PutUint32(head[event.OffPID:], uint32(pid))
	a.puts(userMark, head[:], text)
	a.t.comms.save(pid, comm)
	return len(b), nil
}

// puts writes a text, with the flags and the task of a record's head.
func (a *traceArray) puts(who byte, head []byte, text string) {
	rec := append(make([]byte, 0, offMarkText+len(text)+1), head[:event.CommonSize]...)
	binary.LittleEndian.PutUint16(rec[event.OffType:], printID)
	rec = append(rec, who, 0, 0, 0, 0, 0, 0, 0)
	a.ring.Write(a.t.m.CPU(), a.now(), append(append(rec, text...), 0))
}

// markText prints a record of trace_marker: the text up to a NUL, with its own newline.
func markText(b *strings.Builder, rec []byte) {
	who := "tracing_mark_write"
	if rec[offMarkIP] == snapshotMark {
		who = "tracing_snapshot_instance_cond"
	}
	text, _, _ := bytes.Cut(rec[offMarkText:], []byte{0})
	b.WriteString(who + ": ")
	b.Write(text)
}
