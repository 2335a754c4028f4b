// Package objects writes objects with drawn sections, and compares what bpftool says of them on a
// booted kernel with what report.Check says (make conformance-check).
//
// It must not know why a program is refused: report answers, and a difference is a difference.
package objects
