// Package event is the layout of a trace event's record: the offset of each field, and the text of
// the event's format file, from which programs that read records learn the layout.
//
// It must not know what the fields mean to probes, how a record gets into a buffer, or how it is
// printed.
//
// A record is the kernel's, byte for byte: the four common fields, the probe's fields (__probe_ip,
// or __probe_func and __probe_ret_ip), the arguments packed without alignment, then the text that
// __data_loc fields point at. Numbers are little-endian.
package event
