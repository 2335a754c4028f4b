package run

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/sample/module"
	"kprobelab/x86"
)

// An event of a sample module has what is known of it, and no more.
func TestRecordsOfSamples(t *testing.T) {
	probe := &module.Probe{Kind: "kretprobe", Symbol: "kernel_clone", Addr: 0xffffffff81000000, Hits: 3, Missed: 1}
	at := &module.Place{CPU: 1, Task: 2, Comm: "sh", Now: 5}
	planted := OfSample(module.Event{Name: "planted", Line: "Planted", Probe: probe})
	require.Equal(t, Record{Event: "planted", Detail: "Planted", Kind: "kretprobe", Probe: "kernel_clone", Addr: "0xffffffff81000000"}, planted)
	require.Empty(t, OfSample(module.Event{Name: "planted", Probe: &module.Probe{Kind: "kprobe"}}).Addr, "a probe without a place")
	hit := OfSample(module.Event{Name: "pre", Probe: probe, At: at, Regs: &x86.PtRegs{AX: 7}})
	require.Equal(t, "sh", hit.Comm)
	require.NotEmpty(t, hit.Regs)
	back := OfSample(module.Event{Name: "return", Probe: probe, At: at, Value: 10})
	require.Equal(t, HexWord(10), back.Value)
	require.Nil(t, back.Duration)
	back = OfSample(module.Event{Name: "return", Probe: probe, At: at, Duration: 9})
	require.EqualValues(t, 9, *back.Duration)
	counters := OfSample(module.Event{Name: "counters", Probe: probe})
	require.EqualValues(t, 3, *counters.Hits)
	require.EqualValues(t, 1, *counters.Nmissed)
	require.Contains(t, OfSample(module.Event{Name: "refused", Probe: probe, Err: errors.New("no such function")}).Error, "no such function")
}
