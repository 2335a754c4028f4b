package event_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/tracing/event"
)

func TestArraysAreDeclaredByRelease(t *testing.T) {
	f := event.Format{Fields: []event.Field{
		{Name: "a", Type: "u8[4]", Size: 4, Len: 4, Kind: event.KindArray},
		{Name: "s", Type: "__data_loc char[][2]", Size: 8, Len: 2, Kind: event.KindStringArray, Signed: true},
	}}
	require.Contains(t, f.String(), "\tfield:u8 a[4];\toffset:0;\tsize:4;\tsigned:0;\n")
	require.Contains(t, f.String(), "\tfield:__data_loc char[][2] s;\toffset:0;\tsize:8;\tsigned:1;\n")
	f.BareArrays = true
	require.Contains(t, f.String(), "\tfield:u8 a[];\t")
}

func TestNumbersBySizeAndSign(t *testing.T) {
	b := []byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	for width, want := range map[int]uint64{1: 0xfe, 2: 0xfffe, 4: 0xfffffffe, 8: 0xfffffffffffffffe} {
		require.Equal(t, want, event.Number(b, width, false), width)
		require.Equal(t, ^uint64(1), event.Number(b, width, true), width)
	}
	f := event.Field{Type: "u16[2]", Size: 4, Len: 2}
	require.EqualValues(t, 0xffff, f.Number(b, 1))
}

func TestTextIsWhereTheFieldSays(t *testing.T) {
	rec := append([]byte{8, 0, 3, 0, 0, 0, 0, 0}, "ab\x00"...)
	f := event.Field{Kind: event.KindString, Size: 4}
	s, ok := f.Text(rec, 0)
	require.True(t, ok)
	require.Equal(t, "ab", string(s))
	f.Offset = 4
	_, ok = f.Text(rec, 0)
	require.False(t, ok, "a length of 0 is a fault")
	_, ok = (&event.Field{}).Text([]byte{200, 0, 9, 0}, 0)
	require.False(t, ok, "outside the record")
	require.EqualValues(t, 0x00030008, event.Loc(8, 3))
}

func TestField(t *testing.T) {
	f := event.Format{Common: event.Common(), Fields: []event.Field{{Name: "x"}}}
	for _, name := range []string{"x", "common_pid"} {
		d, ok := f.Field(name)
		require.True(t, ok)
		require.Equal(t, name, d.Name)
	}
	_, ok := f.Field("y")
	require.False(t, ok)
	require.Len(t, f.All(), 5)
}

func ExampleFormat() {
	f := event.Format{
		Name: "e", ID: 1500, Common: event.Common()[3:],
		Fields: []event.Field{{Name: "__probe_ip", Type: "unsigned long", Offset: 8, Size: 8}},
		Print:  `"(%lx)", REC->__probe_ip`,
	}
	fmt.Print(f.String())
	// Output:
	// name: e
	// ID: 1500
	// format:
	// 	field:int common_pid;	offset:4;	size:4;	signed:1;
	//
	// 	field:unsigned long __probe_ip;	offset:8;	size:8;	signed:0;
	//
	// print fmt: "(%lx)", REC->__probe_ip
}
