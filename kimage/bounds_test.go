package kimage

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
	kbtf "kprobelab/kimage/btf"
	"kprobelab/x86"
)

// Files that are too long are not opened, or not unpacked to their end.
func TestImagesThatAreTooLong(t *testing.T) {
	t.Run("ImageFile", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "vmlinux")
		require.NoError(t, os.WriteFile(name, nil, 0o600))
		for size, want := range map[int64]string{bounded.ImageFile: "at most 1 GiB is read", bounded.ImageFile + 1: "the file has 8589934593 bytes, at most 8 GiB are opened"} {
			require.NoError(t, os.Truncate(name, size)) // no ELF that has debugging information to be left out
			_, err := Open(name, nil)
			require.ErrorIs(t, err, ErrFormat)
			require.ErrorContains(t, err, want)
		}
	})
	t.Run("BesideImage", func(t *testing.T) {
		if testing.Short() {
			t.Skip("it unpacks a quarter of a gigabyte")
		}
		packed := func(n int) []byte {
			var b bytes.Buffer
			w, err := gzip.NewWriterLevel(&b, gzip.NoCompression)
			require.NoError(t, err)
			_, err = w.Write(make([]byte, n))
			require.NoError(t, err)
			require.NoError(t, w.Close())
			return b.Bytes()
		}
		b, err := decompressBeside("x", packed(bounded.BesideImage), nil)
		require.NoError(t, err)
		require.Len(t, b, bounded.BesideImage)
		_, err = decompressBeside("x", packed(bounded.BesideImage+1), nil)
		require.ErrorIs(t, err, ErrFormat)
		require.ErrorContains(t, err, "it unpacks to more than 256 MiB")
	})
	t.Run("PackageModules", func(t *testing.T) {
		dir := t.TempDir()
		m := newTestMachine()
		img := m.open(t, nil)
		module := testELF(etRel, testSection{name: ".modinfo", typ: 1, flags: shfAlloc, data: []byte("name=a\x00vermagic=6.1.0-test SMP \x00")})
		for _, name := range []string{"a.ko", "b.ko", "c.ko"} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), module, 0o600))
		}
		list, err := img.packageFiles(dir, 3*int64(len(module)))
		require.NoError(t, err)
		require.Len(t, list, 3)
		_, err = img.packageFiles(dir, 3*int64(len(module))-1)
		require.ErrorIs(t, err, ErrFormat)
		require.ErrorContains(t, err, "its modules have more than")
	})
}

// Tables of an image have no more entries than are read.
func TestImagesWithoutEnd(t *testing.T) {
	t.Run("Sections", func(t *testing.T) {
		for n, many := range map[int]bool{bounded.Sections: false, bounded.Sections + 1: true} {
			b := testELF(etExec)
			le.PutUint64(b[40:], uint64(len(b)))
			le.PutUint16(b[60:], 0)
			le.PutUint16(b[62:], 0)
			first := len(b)
			b = append(b, make([]byte, n*shdrSize)...)
			le.PutUint64(b[first+32:], uint64(n))
			_, err := FromBytes("vmlinux", b, nil)
			require.ErrorIs(t, err, ErrFormat)
			require.Equal(t, many, strings.Contains(err.Error(), fmt.Sprintf("%d sections are too many", n)), err)
		}
	})
	t.Run("SymbolName", func(t *testing.T) {
		long := strings.Repeat("n", bounded.SymbolName+10)
		require.Equal(t, long[:bounded.SymbolName-1], cstring(long[:bounded.SymbolName-1]+"\x00", 0))
		require.Empty(t, cstring(long[:bounded.SymbolName]+"\x00", 0))
		require.Empty(t, cstring(long, 0))
	})
	const text, data = 0xffffffff81000000, 0xffffffff82000000
	withData := func(t *testing.T, b []byte, more ...elfSymbol) *Image {
		code := make([]byte, 64)
		list := append([]elfSymbol{
			{name: "_stext", value: text, info: 0x12, shndx: 1}, {name: "_etext", value: text + 64, info: 0x12, shndx: 1},
			{name: "__x64_sys_first", value: text + 0x10, info: 0x12, shndx: 1}, {name: "__x64_sys_last", value: text + 0x20, info: 0x12, shndx: 1}, {name: "__x64_sys_past", value: text + 0x30, info: 0x12, shndx: 1},
			{name: "_end", value: data + uint64(len(b)), info: 0x11, shndx: 2},
		}, more...)
		symtab, strtab := testSymbols(4, list...)
		img, err := FromBytes("vmlinux", testELF(etExec, testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, addr: text, data: code},
			testSection{name: ".data", typ: 1, flags: shfAlloc | shfWrite, addr: data, data: b}, symtab, strtab), nil)
		require.NoError(t, err)
		return img
	}
	t.Run("BTFSet", func(t *testing.T) {
		for n, want := range map[uint32]int{bounded.BTFSet: bounded.BTFSet, bounded.BTFSet + 1: 0, 1<<32 - 1: 0} {
			b := make([]byte, 4*(bounded.BTFSet+10))
			le.PutUint32(b, n)
			require.Len(t, withData(t, b, elfSymbol{name: "set", value: data, info: 0x11, shndx: 2}).BTFSet("set"), want)
		}
	})
	t.Run("SystemCalls", func(t *testing.T) {
		b := make([]byte, 8*(bounded.SystemCalls+10))
		for i := 0; i < len(b); i += 8 {
			le.PutUint64(b[i:], text+0x10)
		}
		le.PutUint64(b[8*(bounded.SystemCalls-1):], text+0x20)
		le.PutUint64(b[8*bounded.SystemCalls:], text+0x30)
		img := withData(t, b, elfSymbol{name: "sys_call_table", value: data, info: 0x11, shndx: 2})
		nr, ok := img.SystemCall("last")
		require.True(t, ok)
		require.EqualValues(t, bounded.SystemCalls-1, nr)
		_, ok = img.SystemCall("past")
		require.False(t, ok)
	})
}

// A dump's kernel, its variables and its tasks are read so far.
func TestDumpsThatAskForMuch(t *testing.T) {
	word := &btf.Int{Name: "unsigned long", Size: 8}
	number := &btf.Int{Name: "unsigned int", Size: 4}
	of := func(t *testing.T, img *Image, list ...btf.Type) {
		b, err := btf.NewBuilder(list, nil)
		require.NoError(t, err)
		raw, err := b.Marshal(nil, btf.KernelMarshalOptions())
		require.NoError(t, err)
		types, err := kbtf.New(raw, nil)
		require.NoError(t, err)
		img.tables.btf.once.Do(func() {})
		img.tables.btf.types = types
	}
	t.Run("DumpKernel", func(t *testing.T) {
		img := newTestMachine().open(t, nil)
		for size, fits := range map[int64]bool{bounded.DumpKernel: true, bounded.DumpKernel + pageSize: false} {
			end := x86.Addr(testBase).Add(size)
			d := &dump{img: img, core: img.Core(), space: img.space, runs: []run{{Range: x86.Range{Start: testBase, End: testBase + pageSize}}, {Range: x86.Range{Start: end, End: end}}}}
			err := d.readRuns()
			require.Equal(t, fits, err == nil, err)
			if !fits {
				require.ErrorContains(t, err, "a kernel's mapping of at most 512 MiB is wanted, this one has 512 MiB")
			}
		}
	})
	t.Run("DumpPerCPU", func(t *testing.T) {
		for size, fits := range map[x86.Addr]bool{bounded.DumpPerCPU: true, bounded.DumpPerCPU + 1: false} {
			m := newTestMachine()
			m.symbol("__per_cpu_offset", dataStart+0x100)
			m.symbol("__per_cpu_start", dataStart+0x200)
			m.symbol("__per_cpu_end", dataStart+0x200+size)
			img := m.open(t, nil)
			img.percpu = nil
			d := inMemory(img, func(_ x86.Addr, b []byte) error { clear(b); return nil })
			require.NoError(t, d.findPerCPU())
			require.Equal(t, fits, img.percpu != nil)
		}
	})
	t.Run("DumpTasks", func(t *testing.T) {
		places := map[string]int{
			"task_struct.tasks": 0, "task_struct.pid": 16, "task_struct.tgid": 20, "task_struct.comm": 24, "task_struct.mm": 40, "task_struct.exit_state": 48,
			"task_struct.signal": 56, "task_struct.thread_node": 64, "task_struct.thread.sp": 80, "task_struct.nvcsw": 88, "task_struct.nivcsw": 96, "task_struct.__state": 104,
			"signal_struct.thread_head": 0,
		}
		for name, c := range map[string]struct {
			words map[x86.Addr]int64
			last  int
			want  int
		}{
			"few":       {map[x86.Addr]int64{0: 1}, 100, 100},
			"processes": {map[x86.Addr]int64{0: 1}, 0, bounded.DumpTasks},
			"threads":   {map[x86.Addr]int64{0: 1, 56: 1 << 20, 64: 1}, 0, bounded.DumpTasks},
		} {
			t.Run(name, func(t *testing.T) {
				m := newTestMachine()
				m.symbol("init_task", dataStart+0x1000)
				img := m.open(t, nil)
				img.taskPlaces = places
				memory := &chained{words: c.words}
				if c.last > 0 {
					memory.last = firstObject + x86.Addr(c.last)<<12
				}
				list, _ := img.TasksIn(func(at x86.Addr, b []byte) error {
					if at == dataStart+0x1000 {
						binary.LittleEndian.PutUint64(b, firstObject+0x1000)
						return nil
					}
					return memory.read(at, b)
				})
				require.Len(t, list, c.want)
			})
		}
	})
	t.Run("Tracepoints", func(t *testing.T) {
		event := &btf.Struct{Name: "trace_event", Size: 16, Members: []btf.Member{testMember("type", 0, number)}}
		list := []btf.Type{
			&btf.Struct{Name: "trace_event_call", Size: 64, Members: []btf.Member{testMember("list", 0, word), testMember("class", 16, word), testMember("tp", 24, word), testMember("event", 32, event)}},
			&btf.Struct{Name: "trace_event_class", Size: 64, Members: []btf.Member{testMember("system", 0, word), testMember("fields", 8, word), testMember("perf_probe", 24, word), testMember("reg", 32, word)}},
			&btf.Struct{Name: "ftrace_event_field", Size: 64, Members: []btf.Member{testMember("link", 0, word), testMember("name", 16, word), testMember("type", 24, word), testMember("offset", 32, number), testMember("size", 36, number), testMember("is_signed", 40, number)}},
		}
		const head, call, class, fields, tp, name = dataStart + 0x100, dataStart + 0x200, dataStart + 0x300, dataStart + 0x400, testBase + 0x62, dataStart + 0x600
		machine := func(t *testing.T, system string, next, field x86.Addr) *Image {
			m := newTestMachine()
			m.symbol("ftrace_events", head)
			m.symbol("__tracepoint_a", tp)
			m.symbol("perf_trace_t", testBase+0x42)
			m.symbol("trace_event_reg", testBase+0x52)
			m.symbol("z", dataStart+0x800)
			m.word(head, call)
			m.word(call, next)
			m.word(call+16, class, tp)
			m.word(class, name, 0, field, testBase+0x42, testBase+0x52)
			m.word(fields, fields, fields)
			copy(m.at(name), system+"\x00")
			img := m.open(t, nil)
			of(t, img, list...)
			return img
		}
		// A call that is followed by itself, and a field.
		require.Len(t, machine(t, "ftrace", call, fields).TracersEvents(), bounded.Tracepoints)
		require.Len(t, machine(t, "sched", call, class+8).Events(), bounded.Tracepoints)
		img := machine(t, "sched", head, fields)
		events := img.Events()
		require.Same(t, &events[0], &img.Events()[0], "they are read once: a pattern of a script's asks for each of many")
		require.Len(t, events, 1)
		require.Len(t, events[0].Fields, bounded.TracepointFields)
	})
}
