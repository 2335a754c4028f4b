package orc

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/dumps"
	"kprobelab/kimage"
	"kprobelab/kimage/btf"
	"kprobelab/x86"
)

// TestLayoutOfBootedKernels: the entries of booted kernels show the layout that BTF tells.
func TestLayoutOfBootedKernels(t *testing.T) {
	for _, kernel := range dumps.Kernels {
		t.Run(kernel, func(t *testing.T) {
			img, err := kimage.Open(dumps.File(t, kernel), nil)
			require.NoError(t, err)
			want, ok := layoutOf(img.Types())
			require.True(t, ok)
			got, ok := shownLayout(func(name string) x86.Addr { return img.Lookup(name)[0].Addr }, img.ReadKernel)
			require.True(t, ok)
			for _, l := range []*layout{&want, &got} {
				l.registers, l.modulesKnown = nil, false
				l.moduleList, l.moduleOrcs, l.moduleIPs, l.moduleEntries = 0, 0, 0, 0
				if l.hasEnd && !l.hasSignal {
					l.signal = bits{}
				}
				if !l.hasEnd {
					l.end = bits{}
				}
			}
			require.Equal(t, want, got)
			require.NotNil(t, New(func(name string) []kimage.Symbol {
				if name == "null_orc_entry" {
					return nil
				}
				return img.Lookup(name)
			}, new(btf.Types), img.ReadKernel), "a function's first entry is like that of a null pointer")
		})
	}
}

// TestLayoutIsNotGuessed: entries that contradict each layout that there was have none.
func TestLayoutIsNotGuessed(t *testing.T) {
	const (
		callNow, callBefore = 0x0205_0000_0008, 0x0005_0000_0008
		regs, endOfStack    = 0x0105_0000_0000, 0x0400_0000_0000 // before 6.3
		regs63, end63       = 0x0505_0000_0000, 0x0800_0000_0000
	)
	for name, c := range map[string]struct {
		null    uint64
		entries []uint64
		want    layout
		ok      bool
	}{
		"since_6.4":                     {callNow, []uint64{callNow, 0}, entryNow, true},
		"6.3":                           {callBefore, []uint64{callBefore, regs63, end63}, entrySignal, true},
		"to_6.2":                        {callBefore, []uint64{callBefore, regs, endOfStack}, entryEnd, true},
		"4.14_without_ends":             {callBefore, []uint64{callBefore, regs, 0}, entryEnd, true},
		"both_flags_with_a_base":        {callBefore, []uint64{callBefore, regs63, end63 | 5<<32}, layout{}, false},
		"interrupted_and_ends_the_same": {callBefore, []uint64{callBefore, regs63, endOfStack}, layout{}, false},
		"no_entries":                    {callNow, nil, layout{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var table []byte
			for _, w := range c.entries {
				table = append(binary.LittleEndian.AppendUint32(table, uint32(w)), byte(w>>32), byte(w>>40))
			}
			null := binary.LittleEndian.AppendUint64(nil, c.null)
			symbols := map[string]x86.Addr{
				"__start_orc_unwind_ip": ips, "__stop_orc_unwind_ip": x86.Addr(ips).Add(int64(4 * len(c.entries))),
				"__start_orc_unwind": ents, "__stop_orc_unwind": x86.Addr(ents).Add(int64(len(table))), "null_orc_entry": text,
			}
			got, ok := shownLayout(func(name string) x86.Addr { return symbols[name] }, func(at x86.Addr, b []byte) error {
				switch at {
				case ents:
					copy(b, table)
				case text:
					copy(b, null)
				default:
					return errors.New("not mapped")
				}
				return nil
			})
			require.Equal(t, c.ok, ok)
			got.registers = nil
			if ok {
				require.Equal(t, c.want, got)
			}
		})
	}
}
