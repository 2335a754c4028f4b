package perfetto

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
	"kprobelab/tracing"
)

func TestRecordsOfEvents(t *testing.T) {
	var b bytes.Buffer
	tl := NewTimelineJSON(&b, symbol)
	entry, ret, other := &kprobes.Kprobe{Addr: 0x1000}, &kprobes.Kprobe{Addr: 0x1000}, &kprobes.Kprobe{Addr: 0x3000}
	tl.Events(func(p *kprobes.Kprobe) (group, name string, ok bool) {
		switch p {
		case entry:
			return "g", "in", true
		case ret:
			return "g", "out", true
		}
		return "", "", false
	})
	hit := func(now uint64, k kprobes.EventKind, p *kprobes.Kprobe) {
		tl.Hit(now, &kprobes.Event{Kind: k, Probe: p})
	}

	hit(1, kprobes.EventPre, entry)
	tl.Record(&tracing.Record{
		Time: 1, PID: 1, Comm: "init", Group: "g", Event: "in", IP: 0x1000,
		Args: []tracing.RecordArg{{Name: "a", Value: []any{tracing.Hex(16), int64(-1)}}},
	})
	hit(2, kprobes.EventInstance, ret)
	hit(3, kprobes.EventPre, entry) // filtered: no record
	hit(3, kprobes.EventPre, other)
	hit(4, kprobes.EventReturnHandler, ret)
	tl.Record(&tracing.Record{Time: 4, PID: 1, Group: "g", Event: "out", Return: true, Func: 0x1000, IP: 0x2000})
	hit(5, kprobes.EventInstance, ret)
	hit(6, kprobes.EventReturnHandler, ret) // filtered: the slice ends all the same
	require.NoError(t, tl.Close())

	head := func(kind, group, event, args string) string {
		return `"kind":"` + kind + `","cpu":0,"pid":1,"comm":"init","group":"` + group + `","event":"` + event + `","args":{"cpu":0,` + args + "}}"
	}
	at := func(a string) string { return "at_" + a }
	want := []string{
		`{"time_ns":1,` + head("instant", "g", "in", `"ip":"`+at("0x1000")+`","a":["0x10",-1]`),
		`{"time_ns":2,` + head("begin", "g", "out", `"addr":"0x1000"`),
		`{"time_ns":3,` + head("instant", "kprobes", at("0x3000"), `"addr":"0x3000"`),
		`{"time_ns":4,` + head("end", "g", "out", `"func":"`+at("0x1000")+`","ip":"`+at("0x2000")+`"`),
		`{"time_ns":5,` + head("begin", "g", "out", `"addr":"0x1000"`),
		`{"time_ns":6,` + head("end", "g", "out", `"addr":"0x1000"`),
	}
	require.Equal(t, strings.Join(want, "\n")+"\n", b.String())
}
