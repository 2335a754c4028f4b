// Package perfetto writes what probes saw as a trace for Perfetto's viewer and
// its trace_processor: protobuf, with a track for every CPU and every task,
// function calls as slices, and text pokes with the syncs of the other CPUs as
// slices joined by flows. The same events can be written as JSON lines.
//
// A Timeline turns the steps of hits, the records of the ring buffer and the
// changes of text into such events. It must not know who writes the file, nor
// what runs meanwhile.
//
// The format is Perfetto's own (protos/perfetto/trace): a Trace is a sequence
// of TracePackets, each a TrackDescriptor or a TrackEvent that names its track.
// The numbers in schema.go are the published schema's fields.
package perfetto
