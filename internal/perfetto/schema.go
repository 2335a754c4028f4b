package perfetto

import "google.golang.org/protobuf/encoding/protowire"

// The fields of the published schema that are written, by message.
const (
	tracePacket protowire.Number = 1 // Trace

	packetTimestamp       protowire.Number = 8 // TracePacket
	packetSequence        protowire.Number = 10
	packetTrackEvent      protowire.Number = 11
	packetTrackDescriptor protowire.Number = 60

	trackUUID    protowire.Number = 1 // TrackDescriptor
	trackName    protowire.Number = 2
	trackProcess protowire.Number = 3
	trackThread  protowire.Number = 4
	trackParent  protowire.Number = 5

	processPID  protowire.Number = 1 // ProcessDescriptor
	processName protowire.Number = 6

	threadPID  protowire.Number = 1 // ThreadDescriptor
	threadTID  protowire.Number = 2
	threadName protowire.Number = 5

	eventAnnotations protowire.Number = 4 // TrackEvent
	eventType        protowire.Number = 9
	eventTrack       protowire.Number = 11
	eventCategories  protowire.Number = 22
	eventName        protowire.Number = 23
	eventFlows       protowire.Number = 47
	eventEndFlows    protowire.Number = 48

	annotationBool    protowire.Number = 2 // DebugAnnotation
	annotationUint    protowire.Number = 3
	annotationInt     protowire.Number = 4
	annotationString  protowire.Number = 6
	annotationPointer protowire.Number = 7
	annotationName    protowire.Number = 10
	annotationArray   protowire.Number = 12
)

// eventTypes are TrackEvent.Type, by Kind.
var eventTypes = [...]uint64{Instant: 3, Begin: 1, End: 2}

// message is a protobuf message under construction.
type message []byte

func (m message) uint(n protowire.Number, v uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, n, protowire.VarintType), v)
}

func (m message) bool(n protowire.Number, v bool) message {
	return m.uint(n, protowire.EncodeBool(v))
}

func (m message) fixed(n protowire.Number, v uint64) message {
	return protowire.AppendFixed64(protowire.AppendTag(m, n, protowire.Fixed64Type), v)
}

func (m message) text(n protowire.Number, s string) message {
	return protowire.AppendString(protowire.AppendTag(m, n, protowire.BytesType), s)
}

func (m message) sub(n protowire.Number, s message) message {
	return protowire.AppendBytes(protowire.AppendTag(m, n, protowire.BytesType), s)
}
