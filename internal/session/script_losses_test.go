package session

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/script/attach"
	"kprobelab/internal/script/bpftrace"
	"kprobelab/internal/script/host"
)

// mapFull is said at each update that finds no room.
const mapFull = ": WARNING: Map full; can't update element. Try increasing max_map_keys config\nAdditional Info - helper: map_update_elem, retcode: -7\n"

// Losses of a script are counted and reported: elements for which a map has no room, and returns
// for which a kretprobe had no instance. Counted and lost hits together are all hits.
func TestScriptLossesAreCounted(t *testing.T) {
	const calls = 4000
	for name, c := range map[string]struct {
		script, call string
		arg          uint64
		hits         int
		lost         string // with the number of lost ones
	}{
		"full_map":  {"config = { max_map_keys = 3 } kprobe:work_item { @[arg0 & 7] = count(); }", "busy_worker", calls, calls, mapFull},
		"room":      {"kprobe:work_item { @[arg0 & 7] = count(); }", "busy_worker", calls, calls, ""},
		"recursion": {"kretprobe:recurse { @ = count(); }", "recurse", 100, 101, "WARNING: %d hits ran no handler\n"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newBench(t)
			s, err := bpftrace.Analyze("stdin", c.script, &bpftrace.Options{}, &bpftrace.Kernel{Kernel: host.Kernel{Functions: func(name string) []host.Function {
				return []host.Function{{Name: name, Addr: uint64(l.Image.Lookup(name)[0].Addr)}}
			}}})
			require.NoError(t, err)
			var out, said bytes.Buffer
			run, err := attach.New(&attach.Script{Program: s.Program, Probes: s.Probes, Words: bpftrace.Words{}, Last: s.PrintMaps}, &attach.Options{Machine: l.Machine, Kprobes: l.Kprobes, Image: l.Image, Out: &out, Log: func(line string) { said.WriteString(line + "\n") }, MaxSkipped: 1 << 63})
			require.NoError(t, err)
			run.Begin()
			_, err = l.Machine.CallAddr(l.Image.Lookup(c.call)[0].Addr, c.arg)
			require.NoError(t, err)
			require.NoError(t, run.End())
			counted := 0
			for _, line := range strings.Split(out.String(), "\n") {
				if i := strings.LastIndex(line, ": "); i >= 0 && strings.HasPrefix(line, "@") {
					var n int
					_, err := fmt.Sscan(line[i+2:], &n)
					require.NoError(t, err)
					counted += n
				}
			}
			if c.lost == "" {
				require.Empty(t, said.String())
				require.Equal(t, c.hits, counted)
				return
			}
			lost := strings.Count(out.String(), c.lost)
			if c.lost != mapFull {
				_, err = fmt.Sscanf(said.String(), c.lost, &lost)
				require.NoError(t, err, said.String())
			}
			require.Positive(t, lost)
			require.Equal(t, c.hits, counted+lost)
		})
	}
}
