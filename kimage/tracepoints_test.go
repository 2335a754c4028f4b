package kimage

import (
	"bytes"
	"slices"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	kbtf "kprobelab/kimage/btf"
)

// eventsELF is a kernel with the events sched/a (of a tracepoint) and
// syscalls/sys_enter_b (named by itself), one that is damaged, and the raw
// tracepoints a and c.
func eventsELF() []byte {
	const text, data = 0xffffffff81000000, 0xffffffff82000000
	b := make([]byte, 0x400)
	put := func(off int, addr uint64) { le.PutUint64(b[off:], addr) }
	copy(b[0x10:], "sched\x00")
	copy(b[0x20:], "syscalls\x00")
	copy(b[0x30:], "sys_enter_b\x00")
	put(0x40, data+0x10) // the class of sched
	put(0x48, data+0x20) // the class of system calls
	for i, e := range [][2]uint64{{data + 0x40, data + 0x180}, {data + 0x48, data + 0x30}, {0x10, data + 0x30}} {
		put(0x80+0x40*i+eventClass, e[0])
		put(0x80+0x40*i+eventName, e[1])
		put(0x300+8*i, data+0x80+0x40*uint64(i))
	}
	put(0x318, 0x1234)       // an event outside the image
	put(0x200, data+0x180)   // a's
	put(0x220, data+0x1c0)   // c's
	put(0x240, data+0x1c0+8) // no tracepoint begins there
	sym := func(name string, at uint64) elfSymbol {
		return elfSymbol{name: name, value: at, info: 0x11, shndx: 2}
	}
	symtab, strtab := testSymbols(4,
		elfSymbol{name: "_stext", value: text, info: 0x12, shndx: 1}, elfSymbol{name: "_etext", value: text + 16, info: 0x12, shndx: 1},
		sym("__tracepoint_a", data+0x180), sym("__tracepoint_c", data+0x1c0),
		sym("__start__bpf_raw_tp", data+0x200), sym("__stop__bpf_raw_tp", data+0x260),
		sym("__start_ftrace_events", data+0x300), sym("__stop_ftrace_events", data+0x320), sym("_end", data+0x400))
	return testELF(etExec,
		testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, addr: text, data: []byte{0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc}},
		testSection{name: ".data", typ: 1, flags: shfAlloc | shfWrite, addr: data, data: b}, symtab, strtab)
}

// Rule: an event has the name of its tracepoint, or its own; entries that point
// nowhere are left out.
func TestTracepointsOfAnImage(t *testing.T) {
	img, err := FromBytes("events", eventsELF(), nil)
	require.NoError(t, err)
	require.Equal(t, []Tracepoint{{Name: "c", Raw: true}, {System: "sched", Name: "a", Raw: true}, {System: "syscalls", Name: "sys_enter_b"}}, img.Tracepoints())
}

// Rule: the tables of real kernels are read, in each of their layouts.
func TestTracepointsOfRealKernels(t *testing.T) {
	eachKernel(t, func(t *testing.T, _ string, img *Image) {
		list := img.Tracepoints()
		require.Greater(t, len(list), 1300)
		for _, want := range []Tracepoint{{System: "sched", Name: "sched_switch", Raw: true}, {System: "syscalls", Name: "sys_enter_openat"}} {
			require.True(t, slices.Contains(list, want), want)
		}
		for _, p := range list {
			require.NotEmpty(t, p.Name)
			require.Empty(t, p.Module)
		}
	})
}

// Rule: a function has its number in BTF, by which BPF programs attach.
func TestFuncIDOfRealKernels(t *testing.T) {
	eachKernel(t, func(t *testing.T, _ string, img *Image) {
		id, ok := img.Types().FuncID("vfs_read")
		require.True(t, ok)
		raw, _ := img.BTF()
		spec, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
		require.NoError(t, err)
		found, err := spec.TypeByID(btf.TypeID(id))
		require.NoError(t, err)
		require.Equal(t, "vfs_read", found.TypeName())
		_, ok = img.Types().FuncID("no_such_function")
		require.False(t, ok)
		_, ok = img.Types().FuncID("task_struct")
		require.False(t, ok)
	})
	_, ok := (&kbtf.Types{}).FuncID("vfs_read")
	require.False(t, ok)
}
