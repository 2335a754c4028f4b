package tracing

import (
	"bytes"
	"encoding/binary"
	"strings"

	"kprobelab/errno"
	"kprobelab/tracing/event"
)

// printID is the type of the records that trace_marker writes (TRACE_PRINT).
const printID = 5

// maxMark bounds a write to trace_marker (TRACE_BUF_SIZE); the rest of a longer
// one is taken and dropped.
const maxMark = 1024

// mark is a write to trace_marker. EBADF while tracing is off,
// EINVAL with the option "markers" off.
func (a *traceArray) mark(b []byte) (int, error) {
	if a.options.noMarkers {
		return 0, errno.EINVAL
	}
	if !a.on {
		return 0, errno.EBADF
	}
	rec := make([]byte, event.CommonSize+8, event.CommonSize+8+maxMark)
	pid, comm := a.t.current()
	binary.LittleEndian.PutUint16(rec[event.OffType:], printID)
	binary.LittleEndian.PutUint32(rec[event.OffPID:], uint32(pid))
	rec = append(rec, b[:min(len(b), maxMark-2)]...)
	if !bytes.HasSuffix(rec, []byte{'\n'}) {
		rec = append(rec, '\n')
	}
	a.ring.Write(a.t.m.CPU(), a.now(), append(rec, 0))
	a.t.comms.save(pid, comm)
	return len(b), nil
}

// markText is what such a record prints, without its newline.
func markText(b *strings.Builder, rec []byte) {
	text, _, _ := bytes.Cut(rec[event.CommonSize+8:], []byte{0})
	b.WriteString("tracing_mark_write: ")
	b.Write(bytes.TrimSuffix(text, []byte{'\n'}))
}
