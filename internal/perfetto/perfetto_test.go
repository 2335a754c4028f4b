package perfetto

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"pgregory.net/rapid"
)

// published are the fields of Perfetto's schema that a trace of ours may have:
// message, field, number, type, repeated (protos/perfetto/trace/trace_packet.proto
// and track_event/*.proto). It is written from the schema, not
// from schema.go, so that the two can disagree.
var published = []struct {
	message, field string
	number         int32
	kind           string
	repeated       bool
}{
	{"Trace", "packet", 1, ".TracePacket", true},
	{"TracePacket", "timestamp", 8, "uint64", false},
	{"TracePacket", "trusted_packet_sequence_id", 10, "uint32", false},
	{"TracePacket", "track_event", 11, ".TrackEvent", false},
	{"TracePacket", "track_descriptor", 60, ".TrackDescriptor", false},
	{"TrackDescriptor", "uuid", 1, "uint64", false},
	{"TrackDescriptor", "name", 2, "string", false},
	{"TrackDescriptor", "process", 3, ".ProcessDescriptor", false},
	{"TrackDescriptor", "thread", 4, ".ThreadDescriptor", false},
	{"TrackDescriptor", "parent_uuid", 5, "uint64", false},
	{"ProcessDescriptor", "pid", 1, "int32", false},
	{"ProcessDescriptor", "process_name", 6, "string", false},
	{"ThreadDescriptor", "pid", 1, "int32", false},
	{"ThreadDescriptor", "tid", 2, "int64", false},
	{"ThreadDescriptor", "thread_name", 5, "string", false},
	{"TrackEvent", "debug_annotations", 4, ".DebugAnnotation", true},
	{"TrackEvent", "type", 9, "int32", false},
	{"TrackEvent", "track_uuid", 11, "uint64", false},
	{"TrackEvent", "categories", 22, "string", true},
	{"TrackEvent", "name", 23, "string", false},
	{"TrackEvent", "flow_ids", 47, "fixed64", true},
	{"TrackEvent", "terminating_flow_ids", 48, "fixed64", true},
	{"DebugAnnotation", "bool_value", 2, "bool", false},
	{"DebugAnnotation", "uint_value", 3, "uint64", false},
	{"DebugAnnotation", "int_value", 4, "int64", false},
	{"DebugAnnotation", "string_value", 6, "string", false},
	{"DebugAnnotation", "pointer_value", 7, "uint64", false},
	{"DebugAnnotation", "name", 10, "string", false},
	{"DebugAnnotation", "array_values", 12, ".DebugAnnotation", true},
}

var scalars = map[string]descriptorpb.FieldDescriptorProto_Type{
	"uint64": descriptorpb.FieldDescriptorProto_TYPE_UINT64, "uint32": descriptorpb.FieldDescriptorProto_TYPE_UINT32,
	"int64": descriptorpb.FieldDescriptorProto_TYPE_INT64, "int32": descriptorpb.FieldDescriptorProto_TYPE_INT32,
	"string": descriptorpb.FieldDescriptorProto_TYPE_STRING, "bool": descriptorpb.FieldDescriptorProto_TYPE_BOOL,
	"fixed64": descriptorpb.FieldDescriptorProto_TYPE_FIXED64,
}

// schema builds the published messages as protobuf descriptors.
func schema(t require.TestingT) protoreflect.FileDescriptor {
	file := &descriptorpb.FileDescriptorProto{Name: proto.String("trace.proto"), Package: proto.String("p")}
	byName := map[string]*descriptorpb.DescriptorProto{}
	for _, p := range published {
		m := byName[p.message]
		if m == nil {
			m = &descriptorpb.DescriptorProto{Name: proto.String(p.message)}
			byName[p.message] = m
			file.MessageType = append(file.MessageType, m)
		}
		label := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
		if p.repeated {
			label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
		}
		f := &descriptorpb.FieldDescriptorProto{Name: proto.String(p.field), Number: proto.Int32(p.number), Label: &label}
		if kind, ok := scalars[p.kind]; ok {
			f.Type = &kind
		} else {
			message := descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
			f.Type, f.TypeName = &message, proto.String(".p"+p.kind)
		}
		m.Field = append(m.Field, f)
	}
	d, err := protodesc.NewFile(file, nil)
	require.NoError(t, err)
	return d
}

// parse reads a trace by the published schema, and fails on any field that is
// not in it or has another wire type.
func parse(t require.TestingT, b []byte) []protoreflect.Message {
	trace := dynamicpb.NewMessage(schema(t).Messages().ByName("Trace"))
	require.NoError(t, proto.Unmarshal(b, trace))
	requireKnown(t, trace)
	list := trace.Get(trace.Descriptor().Fields().ByName("packet")).List()
	packets := make([]protoreflect.Message, list.Len())
	for i := range packets {
		packets[i] = list.Get(i).Message()
	}
	return packets
}

func requireKnown(t require.TestingT, m protoreflect.Message) {
	require.Empty(t, m.GetUnknown(), m.Descriptor().Name())
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Kind() != protoreflect.MessageKind:
		case f.IsList():
			for i := range v.List().Len() {
				requireKnown(t, v.List().Get(i).Message())
			}
		default:
			requireKnown(t, v.Message())
		}
		return true
	})
}

func field(m protoreflect.Message, name string) protoreflect.Value {
	return m.Get(m.Descriptor().Fields().ByName(protoreflect.Name(name)))
}

func sub(m protoreflect.Message, name string) protoreflect.Message { return field(m, name).Message() }

func write(t require.TestingT, events ...Event) []byte {
	var b bytes.Buffer
	w := NewWriter(&b, "guest")
	for i := range events {
		require.NoError(t, w.Write(&events[i]))
	}
	require.NoError(t, w.Err())
	return b.Bytes()
}

func TestTracksAndArguments(t *testing.T) {
	packets := parse(t, write(t, Event{
		Time: 5, CPU: 1, PID: 42, Comm: "sh", Category: "kprobes", Name: "myprobe",
		Args: []Arg{
			{"u", uint64(1 << 63)}, {"i", int64(-1)}, {"p", Pointer(0xffffffff81000000)}, {"s", "a\xffb"}, {"b", true},
			{"l", []any{uint64(1), "x"}}, {"other", 1.5},
		},
	}, Event{Time: 6, OnCPU: true, CPU: 1, Name: "x"}, Event{Time: 7, PID: 42, Name: "y"}))
	require.Len(t, packets, 6) // three tracks, three events

	process := sub(sub(packets[0], "track_descriptor"), "process")
	require.Equal(t, "guest", field(process, "process_name").String())
	thread := sub(sub(packets[1], "track_descriptor"), "thread")
	require.Equal(t, int64(42), field(thread, "tid").Int())
	require.Equal(t, "sh", field(thread, "thread_name").String())

	require.Equal(t, uint64(5), field(packets[2], "timestamp").Uint())
	e := sub(packets[2], "track_event")
	require.Equal(t, "myprobe", field(e, "name").String())
	require.Equal(t, "kprobes", field(e, "categories").List().Get(0).String())
	require.Equal(t, field(sub(packets[1], "track_descriptor"), "uuid").Uint(), field(e, "track_uuid").Uint())
	args := field(e, "debug_annotations").List()
	value := func(i int, kind string) protoreflect.Value { return field(args.Get(i).Message(), kind) }
	require.Equal(t, uint64(1<<63), value(0, "uint_value").Uint())
	require.Equal(t, int64(-1), value(1, "int_value").Int())
	require.Equal(t, uint64(0xffffffff81000000), value(2, "pointer_value").Uint())
	require.Equal(t, "a\ufffdb", value(3, "string_value").String())
	require.True(t, value(4, "bool_value").Bool())
	require.Equal(t, 2, value(5, "array_values").List().Len())
	require.Equal(t, "1.5", value(6, "string_value").String())

	cpu := sub(packets[3], "track_descriptor")
	require.Equal(t, "CPU 1", field(cpu, "name").String())
	require.Equal(t, field(sub(packets[0], "track_descriptor"), "uuid").Uint(), field(cpu, "parent_uuid").Uint())
}

// types are the TrackEvent types of a trace, in order.
func types(t require.TestingT, b []byte) []int64 {
	var list []int64
	for _, p := range parse(t, b) {
		if e := sub(p, "track_event"); e.IsValid() {
			list = append(list, field(e, "type").Int())
		}
	}
	return list
}

const begin, end, instant = 1, 2, 3

func TestSlices(t *testing.T) {
	require.Equal(t, []int64{begin, begin, end, end}, types(t, write(t,
		Event{Kind: Begin, Name: "outer"}, Event{Kind: Begin, Name: "inner"},
		Event{Kind: End, Name: "inner"}, Event{Kind: End, Name: "outer"})))
	require.Equal(t, []int64{instant}, types(t, write(t, Event{Kind: End, Name: "f"})), "end_without_begin")
	require.Equal(t, []int64{begin, begin, end, end}, types(t, write(t,
		Event{Kind: Begin, Name: "outer"}, Event{Kind: Begin, Name: "never_returns"}, Event{Kind: End, Name: "outer"})))
	require.Equal(t, []int64{begin, instant}, types(t, write(t,
		Event{PID: 1, Kind: Begin, Name: "f"}, Event{PID: 2, Kind: End, Name: "f"})), "another_task")
}

func TestPokeFlows(t *testing.T) {
	events := Poke(3, Span{0, 10, 20}, []Span{{1, 12, 14}, {2, 22, 25}}, Arg{"addr", Pointer(1)})
	packets := parse(t, write(t, events...))
	var started, ended []uint64
	for _, p := range packets {
		e := sub(p, "track_event")
		for _, f := range []struct {
			name string
			to   *[]uint64
		}{{"flow_ids", &started}, {"terminating_flow_ids", &ended}} {
			for i := range field(e, f.name).List().Len() {
				*f.to = append(*f.to, field(e, f.name).List().Get(i).Uint())
			}
		}
	}
	require.Equal(t, []uint64{3<<16 | 1, 3<<16 | 2}, started)
	require.Equal(t, started, ended)
	require.Equal(t, []int64{begin, begin, end, end, begin, end}, types(t, write(t, events...)))
}

// Whatever comes in, slices nest and the schema holds.
func TestAnythingParses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Event {
			return Event{
				Time: rapid.Uint64().Draw(t, "time"), Kind: Kind(rapid.IntRange(0, 2).Draw(t, "kind")),
				OnCPU: rapid.Bool().Draw(t, "on_cpu"), CPU: rapid.IntRange(0, 2).Draw(t, "cpu"), PID: rapid.IntRange(-1, 2).Draw(t, "pid"),
				Comm: rapid.String().Draw(t, "comm"), Name: rapid.SampledFrom([]string{"f", "g", "\xff"}).Draw(t, "name"),
			}
		})).Draw(t, "events")
		depth := map[uint64]int{}
		for _, p := range parse(t, write(t, list...)) {
			e := sub(p, "track_event")
			track := field(e, "track_uuid").Uint()
			switch field(e, "type").Int() {
			case begin:
				depth[track]++
			case end:
				depth[track]--
			}
			require.GreaterOrEqual(t, depth[track], 0)
		}
		for i := range list {
			require.NoError(t, WriteJSON(&bytes.Buffer{}, &list[i]))
		}
	})
}

type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestFirstErrorStays(t *testing.T) {
	w := NewWriter(broken{}, "")
	require.ErrorIs(t, w.Write(&Event{}), errBroken)
	require.ErrorIs(t, w.Write(&Event{}), errBroken)
	require.ErrorIs(t, w.Err(), errBroken)
}

func ExampleWriteJSON() {
	e := Event{
		Time: 1000, CPU: 0, PID: 102, Comm: "sh", Category: "kprobes", Name: "ka",
		Args: []Arg{{"ip", Pointer(0xffffffff81000000)}, {"x", uint64(1)}, {"big", uint64(1) << 63}, {"l", []any{int64(-1), "a"}}},
	}
	if err := WriteJSON(os.Stdout, &e); err != nil {
		panic(err)
	}
	poke := Poke(1, Span{0, 10, 20}, []Span{{1, 12, 14}})
	if err := WriteJSON(os.Stdout, &poke[0]); err != nil {
		panic(err)
	}
	// Output:
	// {"time_ns":1000,"kind":"instant","cpu":0,"pid":102,"comm":"sh","group":"kprobes","event":"ka","args":{"ip":"0xffffffff81000000","x":1,"big":"9223372036854775808","l":[-1,"a"]}}
	// {"time_ns":10,"kind":"begin","cpu":0,"group":"text","event":"text_poke","flows":[65537]}
}
