package running

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// The kernel's own code makes the records: their fields equal the parameters of the tracepoint.
func TestRecordsAreOfTheParameters(t *testing.T) {
	each(t, func(t *testing.T, k *kernel) {
		events := map[string]*kimage.Event{}
		for _, e := range k.Image.Events() {
			require.NotEmpty(t, e.System)
			require.NotZero(t, e.ID)
			events[e.Name] = &e
		}
		require.Greater(t, len(events), 500)
		word := func(at x86.Addr, n int) (v uint64) {
			var b [8]byte
			require.NoError(t, k.Machine.ReadMem(at, b[:n]))
			return binary.LittleEndian.Uint64(b[:])
		}
		field := func(event, name string, record x86.Addr) uint64 {
			for _, f := range events[event].Fields {
				if f.Name == name {
					return word(record.Add(int64(f.Offset)), min(f.Size, 8))
				}
			}
			require.Fail(t, "no field", "%s of %s", name, event)
			return 0
		}
		// Another processor may run between a tracepoint and the record of the same call: each has an order of its own.
		type calls map[int][][2]uint64
		params, records, again := calls{}, calls{}, calls{}
		add := func(list calls, id, args uint64) {
			cpu := k.Machine.CPU()
			list[cpu] = append(list[cpu], [2]uint64{id, args})
		}
		count := func(list calls) (n int) {
			for _, each := range list {
				n += len(each)
			}
			return n
		}
		remove, err := k.Tracepoint("sys_enter", func(regs *x86.PtRegs) {
			add(params, regs.DX, word(x86.Addr(regs.SI)+112, 8)) // pt_regs.di
		})
		require.NoError(t, err)
		enter := events["sys_enter"]
		note := func(list calls) func(x86.Addr, *x86.PtRegs) {
			return func(record x86.Addr, regs *x86.PtRegs) {
				add(list, field("sys_enter", "id", record), field("sys_enter", "args", record))
				s, ok := k.Image.SymbolAt(x86.Addr(regs.IP))
				require.True(t, ok, "who calls is in the kernel")
				require.NotContains(t, s.Name, "perf_trace")
			}
		}
		stop, err := k.Record(enter, note(records))
		require.NoError(t, err)
		stopAgain, err := k.Record(enter, note(again))
		require.NoError(t, err)
		require.Equal(t, ended{0, "10\n", ""}, k.shell("cat /etc/hostname | wc -c"))
		require.Greater(t, count(params), 50)
		require.Equal(t, params, records)
		require.Equal(t, records, again)
		require.NoError(t, stopAgain.Close())
		require.NoError(t, stop.Close())
		require.NoError(t, remove.Close())
		require.Equal(t, ended{0, "10\n", ""}, k.shell("cat /etc/hostname | wc -c"))
		require.Equal(t, params, records, "nothing is noted any more")
		stop, err = k.Record(enter, note(again))
		require.NoError(t, err)
		n := count(again)
		require.Equal(t, ended{0, "10\n", ""}, k.shell("cat /etc/hostname | wc -c"))
		require.Greater(t, count(again), n+50, "and once more")
		require.NoError(t, stop.Close())
	})
}

func TestAnImageHasNoEvents(t *testing.T) {
	l, err := kprobelab.Open("", nil)
	require.NoError(t, err)
	defer l.Close()
	require.Empty(t, l.Image.Events())
}
