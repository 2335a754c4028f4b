package session

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/script/attach"
	"kprobelab/internal/script/bpftrace"
	"kprobelab/internal/script/host"
	"kprobelab/internal/script/stap"
)

// BenchmarkScriptHit is BenchmarkInt3Hit's call with the handler of a script in place of a bare
// one: a count in a map by the task's name.
func BenchmarkScriptHit(b *testing.B) {
	for name, made := range map[string]func(functions func(string) []host.Function) (*attach.Script, error){
		"bpftrace": func(functions func(string) []host.Function) (*attach.Script, error) {
			s, err := bpftrace.Analyze("stdin", `kprobe:work_item+5 { @[comm, arg0 & 7] = count(); }`, &bpftrace.Options{}, &bpftrace.Kernel{Kernel: host.Kernel{Functions: functions}})
			if err != nil {
				return nil, err
			}
			return &attach.Script{Program: s.Program, Probes: s.Probes, Words: bpftrace.Words{}}, nil
		},
		"stap": func(functions func(string) []host.Function) (*attach.Script, error) {
			s, err := stap.Analyze("<input>", `global n probe kprobe.function("work_item") { n[execname(), int_arg(1) & 7]++ }`, &stap.Options{}, &stap.Kernel{Kernel: host.Kernel{Functions: functions}})
			if err != nil {
				return nil, err
			}
			// Past the fentry site, as the other.
			for _, p := range s.Probes {
				p.Addr += fentrySize
			}
			return &attach.Script{Program: s.Program, Probes: s.Probes, Words: stap.Words{}}, nil
		},
	} {
		b.Run(name, func(b *testing.B) {
			l := newBench(b)
			s, err := made(func(string) []host.Function { return []host.Function{{Name: "work_item", Addr: uint64(l.item)}} })
			require.NoError(b, err)
			run, err := attach.New(s, &attach.Options{Machine: l.Machine, Kprobes: l.Kprobes, Image: l.Image, Out: io.Discard, Log: func(string) {}})
			require.NoError(b, err)
			run.Begin()
			l.rounds(b)
			require.NoError(b, run.End())
			c := run.Counts()[0]
			require.EqualValues(b, b.N, c.Hits)
			require.Zero(b, c.Missed)
			b.ReportMetric(float64(c.Missed), "missed")
		})
	}
}
