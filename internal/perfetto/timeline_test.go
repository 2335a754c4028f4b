package perfetto

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

func symbol(a x86.Addr) string { return "at_" + a.String() }

// packets counts the packets of a trace; its content is the perfetto
// package's affair.
func packets(t *testing.T, b []byte) int {
	n := 0
	for len(b) > 0 {
		number, kind, size := protowire.ConsumeField(b)
		require.Equal(t, protowire.Number(1), number)
		require.Equal(t, protowire.BytesType, kind)
		require.Positive(t, size)
		b = b[size:]
		n++
	}
	return n
}

func TestHitsAndPokes(t *testing.T) {
	var b bytes.Buffer
	tl := NewTimeline(&b, "guest", symbol)
	p := &kprobes.Kprobe{Addr: 0x1000}
	for i, kind := range []kprobes.EventKind{
		kprobes.EventTrap, kprobes.EventPre, kprobes.EventInstance, kprobes.EventMissed, kprobes.EventStep, kprobes.EventReturnHandler,
	} {
		tl.Hit(uint64(i), &kprobes.Event{Kind: kind, Probe: p})
	}
	const declared, hits = 2, 4 // the process and the task
	require.Equal(t, declared+hits, packets(t, b.Bytes()))
	require.Contains(t, b.String(), symbol(0x1000)+" (missed)")

	tl.Sync(9, 0) // nothing was poked
	tl.Poke(10, 0, 0x2000, 5)
	tl.Sync(11, 0)
	tl.Sync(12, 1)
	tl.Poke(20, 0, 0x2000, 1)
	require.NoError(t, tl.Close())
	const cpus, slices = 2, 4
	require.Equal(t, declared+hits+cpus+2*slices, packets(t, b.Bytes()))
}

func TestJSONLines(t *testing.T) {
	var b bytes.Buffer
	tl := NewTimelineJSON(&b, symbol)
	tl.Hit(7, &kprobes.Event{Kind: kprobes.EventPre, Probe: &kprobes.Kprobe{Addr: 0x1000}, CPU: 1, Task: 2})
	require.NoError(t, tl.Close())
	require.Equal(t, `{"time_ns":7,"kind":"instant","cpu":1,"pid":3,"comm":"task-2","group":"kprobes","event":"`+symbol(0x1000)+
		`","args":{"cpu":1,"addr":"0x1000"}}`+"\n", b.String())
}

func TestErrorIsToldAtTheEnd(t *testing.T) {
	tl := NewTimeline(broken{}, "", symbol)
	tl.Poke(1, 0, 0x2000, 5)
	require.ErrorContains(t, tl.Close(), "broken")
}
