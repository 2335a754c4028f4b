package process_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/engine"
	"kprobelab/internal/process"
	"kprobelab/x86"
)

// Numbers of system calls that the tests make.
const (
	sysRead, sysWrite, sysOpen, sysClose, sysSeek     = 0, 1, 2, 3, 8
	sysMmap, sysMprotect, sysMunmap, sysBrk           = 9, 10, 11, 12
	sysPread, sysPwrite, sysReadv, sysPipe, sysMremap = 17, 18, 19, 22, 25
	sysMadvise, sysNanosleep, sysSendfile             = 28, 35, 40
	sysFtruncate, sysChdir, sysMkdir, sysUnlink       = 77, 80, 83, 87
	sysGetdents, sysEpollCtl, sysEpollCreate          = 217, 233, 291
	sysEventFD                                        = 290
)

// data is a page that programs of build can write, below build's own data.
const data = 0x402100

// hostile is a program whose system calls the test makes.
type hostile struct {
	*process.Process
	t testing.TB
}

// open loads a program without running it.
func open(t testing.TB, name string) *hostile {
	e, err := engine.Named(name)
	require.NoError(t, err)
	p, err := process.New(process.Config{Program: build(t, exit[1:])}, e.New)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return &hostile{p, t}
}

// text puts a string where a system call reads it.
func (h *hostile) text(s string) uint64 {
	require.NoError(h.t, h.Write(data, append([]byte(s), 0)))
	return data
}

// words puts numbers there.
func (h *hostile) words(list ...uint64) uint64 {
	var b []byte
	for _, w := range list {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	require.NoError(h.t, h.Write(data, b))
	return data
}

// must is a system call that does not fail.
func (h *hostile) must(nr uint64, args ...uint64) uint64 {
	n := h.Call(nr, args...)
	require.GreaterOrEqual(h.t, n, int64(0), "system call %d%x", nr, args)
	return uint64(n)
}

// file makes a file of n bytes and returns its descriptor.
func (h *hostile) file(name string, n uint64) uint64 {
	fd := h.must(sysOpen, h.text(name), 0102, 0644)
	h.must(sysFtruncate, fd, n)
	return fd
}

const (
	private, shared, fixed, anonymous = 2, 1, 0x10, 0x20

	kB, mB = 1 << 10, 1 << 20
	far    = 0x100000000000
)

// Whatever a program does again and again takes no more memory than the bound says.
func TestMemoryOfAProgramIsBounded(t *testing.T) {
	for name, again := range map[string]struct {
		times int
		most  int64 // of Go's memory, in MB
		do    func(h *hostile, i uint64)
	}{
		"mmap_where_no_window_is_left": {4000, 32, func(h *hostile, i uint64) {
			if at := far + i*(128*mB); h.Call(sysMmap, at, 64*kB, 3, private|fixed|anonymous) > 0 {
				h.must(sysMunmap, at, 64*kB)
			}
		}},
		"mmap_shared_where_no_window_is_left": {200, 32, func(h *hostile, i uint64) {
			at := far + i*(512*mB)
			if i < 130 && h.Call(sysMmap, at, 64*kB, 3, shared|fixed|anonymous) > 0 {
				h.must(sysMunmap, at, 64*kB)
			}
			if i >= 130 {
				require.Equal(h.t, -int64(errno.ENOMEM), h.Call(sysMmap, at, 200*mB, 3, shared|fixed|anonymous))
			}
		}},
		"mmap_then_munmap_everywhere": {4000, 64, func(h *hostile, i uint64) {
			at := far + i%100*(64*mB) + i*(64*kB)
			if h.Call(sysMmap, at, 64*kB, 3, private|fixed|anonymous) == int64(at) {
				require.NoError(h.t, h.Write(x86.Addr(at), make([]byte, 64*kB)))
				h.must(sysMunmap, at, 64*kB)
			}
		}},
		"munmap_of_all_but_a_page_of_shared_memory": {60, 64, func(h *hostile, i uint64) {
			at := h.must(sysMmap, 0, 8*mB, 3, shared|anonymous)
			require.NoError(h.t, h.Write(x86.Addr(at), []byte(strings.Repeat("x", 8*mB))))
			h.must(sysMunmap, at+4*kB, 8*mB-4*kB)
		}},
		"mprotect_of_every_other_page": {17000, 16, func(h *hostile, i uint64) {
			if i == 0 {
				h.must(sysMmap, far, 1<<40, 0, private|fixed|anonymous)
			}
			h.Call(sysMprotect, far+i*(8*kB), 4*kB, 1)
		}},
		"munmap_of_every_other_page": {17000, 16, func(h *hostile, i uint64) {
			if i == 0 {
				h.must(sysMmap, far, 1<<40, 0, private|fixed|anonymous)
			}
			h.Call(sysMunmap, far+i*(8*kB), 4*kB)
		}},
		"madvise_dontfork_of_every_other_page": {17000, 16, func(h *hostile, i uint64) {
			if i == 0 {
				h.must(sysMmap, far, 1<<40, 0, private|fixed|anonymous)
			}
			h.Call(sysMadvise, far+i*(8*kB), 4*kB, 10)
		}},
		"mremap_to_where_it_does_not_fit": {300, 64, func(h *hostile, i uint64) {
			if i == 0 {
				h.must(sysMmap, far, 64*kB, 3, shared|fixed|anonymous)
				h.must(sysMmap, far+mB, 64*kB, 3, private|fixed|anonymous)
			}
			h.Call(sysMremap, far+mB, 64*kB, 200*mB, 3, far+i*(512*mB))
			h.Call(sysMremap, far, 64*kB, 200*mB, 3, far+i*(512*mB))
		}},
		"brk_up_and_down": {20, 64, func(h *hostile, i uint64) {
			at := h.must(sysBrk, 0)
			h.must(sysBrk, at+32*mB)
			require.NoError(h.t, h.Write(x86.Addr(at), []byte(strings.Repeat("x", 32*mB))))
			h.must(sysBrk, at)
		}},
		"mapping_of_a_page_of_a_big_file_that_changes": {500, 240, func(h *hostile, i uint64) {
			fd := h.file("/tmp/f", 32*mB)
			h.must(sysPwrite, fd, data, 1, i)
			h.Call(sysMmap, 0, 4*kB, 1, private, fd, 0)
			h.must(sysClose, fd)
		}},
		"file_made_and_removed": {100, 80, func(h *hostile, i uint64) {
			h.must(sysClose, h.file("/tmp/f", 48*mB))
			h.must(sysUnlink, h.text("/tmp/f"))
		}},
		"file_removed_and_closed_then": {100, 80, func(h *hostile, i uint64) {
			fd := h.file("/tmp/f", 48*mB)
			h.must(sysUnlink, h.text("/tmp/f"))
			h.must(sysClose, fd)
		}},
		"folder_in_a_folder_in_a_folder": {4200, 16, func(h *hostile, i uint64) {
			if i == 0 {
				h.must(sysChdir, h.text("/tmp"))
			}
			name := strings.Repeat("x", 1000)
			if i%2 == 0 {
				name = strings.Repeat("x", 200)
			}
			h.Call(sysMkdir, h.text(name))
			h.Call(sysChdir, h.text(name))
		}},
		"system_calls_of_all_numbers": {2_000_000, 16, func(h *hostile, i uint64) { h.Call(1000 + i*7) }},
		"open_lists_of_a_big_folder": {4300, 16, func(h *hostile, i uint64) {
			if i < 4000 {
				h.must(sysClose, h.must(sysOpen, h.text(fmt.Sprintf("/tmp/%d", i)), 0102, 0644))
				return
			}
			if fd := h.Call(sysOpen, h.text("/tmp"), 0, 0); fd >= 0 {
				h.must(sysGetdents, uint64(fd), 0x7fffffe00000-64*kB, 4*kB)
			}
		}},
		"open_texts_of_proc": {9250, 16, func(h *hostile, i uint64) {
			switch {
			case i == 0:
				h.must(sysMmap, far, 1<<40, 0, private|fixed|anonymous)
			case i < 9000:
				h.Call(sysMprotect, far+i*(8*kB), 4*kB, 1)
			default:
				h.must(sysOpen, h.text("/proc/self/maps"), 0, 0)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, e := range engine.Names() {
				h := open(t, e)
				before := held()
				for i := range again.times {
					again.do(h, uint64(i))
				}
				runtime.KeepAlive(h)
				grown := held() - before
				require.Less(t, grown, again.most*mB, "%s", e)
				require.LessOrEqual(t, h.Noted(), 256*mB/process.PageSize, "%s", e)
				require.LessOrEqual(t, len(h.Maps()), process.MaxMappings+2)
				h.Close()
			}
		})
	}
}

// held is Go's memory that is in use.
func held() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// No number that a program gives is an index, a length or a shift here before it has been looked at.
func TestNumbersThatAProgramGives(t *testing.T) {
	const top = 1 << 63
	for name, c := range map[string]struct {
		do   func(h *hostile) int64
		want errno.Errno
	}{
		"pwrite_before_the_start": {func(h *hostile) int64 { return h.Call(sysPwrite, h.file("/tmp/f", 8), data, 1, -5&math.MaxUint64) }, errno.EINVAL},
		"pread_before_the_start":  {func(h *hostile) int64 { return h.Call(sysPread, h.file("/tmp/f", 8), data, 1, -5&math.MaxUint64) }, errno.EINVAL},
		"sendfile_from_before_the_start": {func(h *hostile) int64 {
			return h.Call(sysSendfile, 1, h.file("/tmp/f", 8), h.words(-5&math.MaxUint64), 4)
		}, errno.EINVAL},
		"write_of_nothing_far_past_the_end": {func(h *hostile) int64 {
			fd := h.file("/tmp/f", 8)
			h.must(sysSeek, fd, 1<<40, 0)
			return h.Call(sysWrite, fd, data, 0)
		}, 0},
		"write_far_past_the_end": {func(h *hostile) int64 {
			fd := h.file("/tmp/f", 8)
			h.must(sysSeek, fd, 1<<62, 0)
			return h.Call(sysWrite, fd, data, 1)
		}, errno.EFBIG},
		"length_that_wraps_munmap":   {func(h *hostile) int64 { return h.Call(sysMunmap, -0x1000&math.MaxUint64, 0x3000) }, errno.EINVAL},
		"length_that_wraps_mprotect": {func(h *hostile) int64 { return h.Call(sysMprotect, -0x1000&math.MaxUint64, 0x3000, 1) }, errno.ENOMEM},
		"length_that_wraps_madvise":  {func(h *hostile) int64 { return h.Call(sysMadvise, -0x1000&math.MaxUint64, 0x3000, 4) }, errno.EINVAL},
		"munmap_to_the_last_byte":    {func(h *hostile) int64 { return h.Call(sysMunmap, 0x1000, 0x7fffffffe000) }, 0},
		"munmap_past_the_last_byte":  {func(h *hostile) int64 { return h.Call(sysMunmap, 0x1000, 0x7fffffffe001) }, errno.EINVAL},
		"munmap_of_more_than_all":    {func(h *hostile) int64 { return h.Call(sysMunmap, 0x1000, math.MaxUint64) }, errno.EINVAL},
		"mremap_to_the_last_page":    {func(h *hostile) int64 { return h.Call(sysMremap, 0x402000, 0x1000, 0x3000, 3, -0x1000&math.MaxUint64) }, errno.EINVAL},
		"mmap_at_the_last_page": {func(h *hostile) int64 {
			return h.Call(sysMmap, -0x1000&math.MaxUint64, 0x3000, 3, private|fixed|anonymous)
		}, errno.EINVAL},
		"readv_of_a_negative_length": {func(h *hostile) int64 { return h.Call(sysReadv, 0, h.words(data, top), 1) }, errno.EINVAL},
		"seek_below_zero":            {func(h *hostile) int64 { return h.Call(sysSeek, h.file("/tmp/f", 8), top, 0) }, errno.EINVAL},
		"seek_of_a_folder_to_the_end_of_time": {func(h *hostile) int64 {
			fd := h.must(sysOpen, h.text("/"), 0, 0)
			h.must(sysSeek, fd, math.MaxInt64, 0)
			return h.Call(sysGetdents, fd, 0x7fffffe00000-64*kB, 4*kB)
		}, 0},
		"truncate_to_a_negative_length": {func(h *hostile) int64 { return h.Call(sysFtruncate, h.file("/tmp/f", 8), top) }, errno.EINVAL},
		"name_that_is_too_long":         {func(h *hostile) int64 { return h.Call(sysMkdir, h.text("/tmp/"+strings.Repeat("x", 256))) }, errno.ENAMETOOLONG},
	} {
		t.Run(name, func(t *testing.T) {
			for _, e := range engine.Names() {
				h := open(t, e)
				got := c.do(h)
				if c.want != 0 {
					require.Equal(t, -int64(c.want), got)
				} else {
					require.GreaterOrEqual(t, got, int64(0))
				}
			}
		})
	}
}

// A process that has ended and was not waited for keeps no memory: each of the children touches as
// much as fits, in its own way, and lets another run meanwhile.
func TestMemoryOfEndedProcessesIsBounded(t *testing.T) {
	const yield = "mov $0x18,%eax\nsyscall\n"
	text := "mov $0x28,%ebx\nagain: mov $0x39,%eax\nsyscall\ntest %eax,%eax\nje child\n" + strings.Repeat(yield, 5) +
		"dec %ebx\njne again\nmov $0x22,%eax\nsyscall\n" + // pause, so that the children stay
		"child: mov $0xc,%eax\nxor %edi,%edi\nsyscall\nmov %rax,%rsi\nlea 0x1000000(%rax),%rdi\nmov $0xc,%eax\nsyscall\n" +
		"fill: mov %rbx,(%rsi)\nadd $0x1000,%rsi\ncmp %rdi,%rsi\njb fill\n" + yield + yield + "xor %edi,%edi\nmov $0xe7,%eax\nsyscall"
	onEngines(t, process.Config{Program: build(t, text)}, func(t *testing.T, _ *process.Process, _ process.Exit, err error) {
		require.EqualError(t, err, "the program waits, and nobody could wake it")
		require.Less(t, held(), int64(160*mB))
	})
}
