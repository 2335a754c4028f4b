package process_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/internal/engine"
	"kprobelab/internal/process"
)

const (
	sysDup, sysDup2, sysEpollCreate1 = 32, 33, 291
	sysSigaction, sysSigmask         = 13, 14
	sysQueueInfo                     = 129
)

// counted counts how often a system call succeeds until it fails, and returns its error.
func counted(t *testing.T, most int, call func(i int) int64) (int, errno.Errno) {
	t.Helper()
	for i := range most {
		if n := call(i); n < 0 {
			return i, errno.Errno(-n)
		}
	}
	t.Fatalf("it has succeeded %d times", most)
	return 0, 0
}

// A program that makes more and more of a thing gets the kernel's errno at the bound, and can go on
// once some are freed.
func TestNumbersOfAProgramAreBounded(t *testing.T) {
	const std = 3 // descriptors that a program begins with
	for name, c := range map[string]struct {
		want  int
		errno errno.Errno
		make  func(h *hostile) func(i int) int64
		back  func(h *hostile)
	}{
		"descriptors_by_dup": {bounded.Descriptors - std, errno.EMFILE,
			func(h *hostile) func(int) int64 { return func(int) int64 { return h.Call(sysDup, 1) } },
			func(h *hostile) { h.must(sysClose, 7) }},
		"descriptors_by_open": {bounded.Descriptors - std, errno.EMFILE,
			func(h *hostile) func(int) int64 {
				return func(int) int64 { return h.Call(sysOpen, h.text("/tmp"), 0, 0) }
			},
			func(h *hostile) { h.must(sysClose, 7) }},
		"descriptors_by_eventfd": {bounded.Descriptors - std, errno.EMFILE,
			func(h *hostile) func(int) int64 { return func(int) int64 { return h.Call(sysEventFD, 0, 0) } },
			func(h *hostile) { h.must(sysClose, 7) }},
		"pipes_in_one_process": {(bounded.Descriptors - std) / 2, errno.EMFILE,
			func(h *hostile) func(int) int64 { return func(int) int64 { return h.Call(sysPipe, data) } },
			func(h *hostile) { h.must(sysClose, 3); h.must(sysClose, 4) }},
		"epoll_instances": {bounded.Descriptors - std, errno.EMFILE,
			func(h *hostile) func(int) int64 { return func(int) int64 { return h.Call(sysEpollCreate1, 0) } },
			func(h *hostile) { h.must(sysClose, 7) }},
		"folders": {bounded.MadeNames, errno.ENOSPC,
			func(h *hostile) func(int) int64 {
				return func(i int) int64 { return h.Call(sysMkdir, h.text(fmt.Sprintf("/tmp/%d", i))) }
			}, nil},
		"bytes_of_files": {bounded.MadeFiles / (4 * mB), errno.ENOSPC,
			func(h *hostile) func(int) int64 {
				return func(i int) int64 {
					fd := h.must(sysOpen, h.text(fmt.Sprintf("/tmp/%d", i)), 0102, 0644)
					return h.Call(sysFtruncate, fd, 4*mB)
				}
			}, nil},
		"signals_that_wait": {bounded.Signals, errno.EAGAIN,
			func(h *hostile) func(int) int64 {
				h.must(sysSigmask, 0, h.words(^uint64(0)), 0, 8)
				info := make([]byte, 128)
				binary.LittleEndian.PutUint32(info[8:], ^uint32(0)) // SI_QUEUE
				require.NoError(h.t, h.Write(data, info))
				return func(int) int64 { return h.Call(sysQueueInfo, uint64(h.PID()), 40, data) }
			}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, e := range engine.Names() {
				h := open(t, e)
				do := c.make(h)
				n, err := counted(t, 2*c.want+10, do)
				require.Equal(t, c.errno, err, "%s", e)
				require.LessOrEqual(t, n, c.want, "%s", e)
				require.GreaterOrEqual(t, n, c.want-10, "%s: the tree and the standard descriptors have some", e)
				if c.back != nil {
					c.back(h)
					require.GreaterOrEqual(t, do(n), int64(0), "%s: after something was given back", e)
				}
				h.Close()
			}
		})
	}
}

// Pipes are bounded over all processes, epoll's entries over all instances: a bound per process
// would be multiplied by the number of processes.
func TestPipesAndEpollsOfManyProcessesAreBounded(t *testing.T) {
	// Each child makes pipes until it cannot, and tells by its exit code whether it was for want of descriptors (24) or of
	// pipes (23); it stays until the others have come.
	const children = 16
	pipes := "mov $" + fmt.Sprint(children) + ",%ebx\nagain: mov $0x39,%eax\nsyscall\ntest %eax,%eax\nje child\ndec %ebx\njne again\n" +
		"mov $" + fmt.Sprint(children) + ",%ebx\nxor %r12d,%r12d\nwait: sub $0x10,%rsp\nmov $0x3d,%eax\nmov $-1,%rdi\nmov %rsp,%rsi\nxor %edx,%edx\nxor %r10d,%r10d\nsyscall\n" +
		"mov 0x1(%rsp),%al\nadd $0x10,%rsp\ncmp $23,%al\njne other\ninc %r12d\nother: dec %ebx\njne wait\nmov %r12d,%edi\nmov $0xe7,%eax\nsyscall\n" +
		"child: sub $0x10,%rsp\nmore: mov %rsp,%rdi\nmov $0x16,%eax\nsyscall\ntest %eax,%eax\nje more\nmov %eax,%r13d\nneg %r13d\n" +
		"mov $200,%r14d\nyield: mov $0x18,%eax\nsyscall\ndec %r14d\njne yield\nmov %r13d,%edi\nmov $0xe7,%eax\nsyscall"
	onEngines(t, process.Config{Program: build(t, pipes)}, func(t *testing.T, p *process.Process, end process.Exit, err error) {
		require.NoError(t, err)
		one := (bounded.Descriptors - 3) / 2
		require.GreaterOrEqual(t, end.Code, children-bounded.Pipes/one-1, "so many processes had to be refused by the bound on pipes")
	})
	// Two children have instances and things to watch for all their descriptors: one of them is refused (28).
	epolls := "mov $2,%ebx\nagain: mov $0x39,%eax\nsyscall\ntest %eax,%eax\nje child\ndec %ebx\njne again\n" +
		"mov $2,%ebx\nxor %r12d,%r12d\nwait: sub $0x10,%rsp\nmov $0x3d,%eax\nmov $-1,%rdi\nmov %rsp,%rsi\nxor %edx,%edx\nxor %r10d,%r10d\nsyscall\n" +
		"mov 0x1(%rsp),%al\nadd $0x10,%rsp\ncmp $28,%al\njne other\ninc %r12d\nother: dec %ebx\njne wait\nmov %r12d,%edi\nmov $0xe7,%eax\nsyscall\n" +
		"child: mov $126,%ebp\ninst: xor %edi,%edi\nmov $0x123,%eax\nsyscall\ndec %ebp\njne inst\n" + // 3 to 128
		"mov $127,%ebp\nev: xor %edi,%edi\nxor %esi,%esi\nmov $0x122,%eax\nsyscall\ndec %ebp\njne ev\n" + // 129 to 255
		"push $0\npush $1\nmov $3,%ebp\nrow: mov $129,%r15d\ncol: mov %ebp,%edi\nmov $1,%esi\nmov %r15d,%edx\nmov %rsp,%r10\nmov $0xe9,%eax\nsyscall\ntest %eax,%eax\njne full\n" +
		"inc %r15d\ncmp $256,%r15d\njne col\ninc %ebp\ncmp $129,%ebp\njne row\nxor %eax,%eax\n" +
		"full: mov %eax,%r13d\nneg %r13d\nmov $200,%r14d\nyield: mov $0x18,%eax\nsyscall\ndec %r14d\njne yield\nmov %r13d,%edi\nmov $0xe7,%eax\nsyscall"
	onEngines(t, process.Config{Program: build(t, epolls)}, func(t *testing.T, p *process.Process, end process.Exit, err error) {
		require.NoError(t, err)
		require.GreaterOrEqual(t, end.Code, 1, "126 times 127 entries of two processes are more than the bound")
	})
}

// A sleep that would lead past the end of the clock does not come back, and the clock does not turn over; sleeps that lead
// there together neither.
func TestHugeSleepsSaturateTheClock(t *testing.T) {
	sleep := func(sec string) string {
		return "push $0\nmovabs $" + sec + ",%rax\npush %rax\nmov %rsp,%rdi\nxor %esi,%esi\nmov $0x23,%eax\nsyscall\ntest %rax,%rax\njne bad\n"
	}
	const end, ever = "xor %edi,%edi\nmov $0xe7,%eax\nsyscall\nbad: mov $1,%edi\nmov $0xe7,%eax\nsyscall", "the program waits, and nobody could wake it"
	const half, third, most = "4611686019", "3074457345", "9223372036" // seconds of a little more than 2^62, of 2^63/3 and nearly of 2^63 nanoseconds
	// The clock (CLOCK_MONOTONIC) after is not before what it was: %r15 has the seconds.
	clock := "sub $0x10,%rsp\nmov $1,%edi\nmov %rsp,%rsi\nmov $0xe4,%eax\nsyscall\nmov (%rsp),%rax\nadd $0x10,%rsp\ncmp %r15,%rax\njl bad\nmov %rax,%r15\n"
	start := "xor %r15d,%r15d\n" + clock
	for name, c := range map[string]struct{ text, err string }{
		"one":                   {start + sleep(half) + clock, ""},
		"two":                   {start + sleep(half) + clock + sleep(half) + clock, ever},
		"three_of_a_third":      {start + sleep(third) + clock + sleep(third) + clock + sleep(third) + clock, ""},
		"four_of_a_third":       {start + sleep(third) + sleep(third) + sleep(third) + clock + sleep(third), ever},
		"the_longest":           {start + sleep(most), ever},
		"longest_number":        {start + sleep("9223372036854775807"), ever},
		"after_a_huge_one":      {start + sleep(half) + clock + sleep("1") + clock, ""},
		"negative":              {start + sleep("-1"), "1"},
		"nanoseconds_too_large": {start + "push $1000000000\npush $0\nmov %rsp,%rdi\nxor %esi,%esi\nmov $0x23,%eax\nsyscall\ntest %rax,%rax\njne bad\n", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			onEngines(t, process.Config{Program: build(t, c.text+end)}, func(t *testing.T, _ *process.Process, end process.Exit, err error) {
				switch c.err {
				case "":
					require.NoError(t, err)
					require.Zero(t, end.Code, "a sleep has failed, or the clock went back")
				case "1":
					require.NoError(t, err)
					require.Equal(t, 1, end.Code)
				default:
					require.EqualError(t, err, c.err)
				}
			})
		})
	}
}

// A call waits for an object that is ready, but not for it: the program waits, and the run goes on or ends. It is not made
// again and again.
func TestCallsThatReadinessDoesNotHelp(t *testing.T) {
	const exitZero = "xor %edi,%edi\nmov $0xe7,%eax\nsyscall\n"
	// An eventfd of 1, in %ebx; a number that it has no room for, at %rsp.
	event := "mov $1,%edi\nxor %esi,%esi\nmov $0x122,%eax\nsyscall\nmov %eax,%ebx\npush $-2\n"
	write := "mov %ebx,%edi\nmov %rsp,%rsi\nmov $8,%edx\nmov $1,%eax\nsyscall\n"
	read := "sub $8,%rsp\nmov %ebx,%edi\nmov %rsp,%rsi\nmov $8,%edx\nxor %eax,%eax\nsyscall\nadd $8,%rsp\n"
	fork := "mov $0x39,%eax\nsyscall\ntest %eax,%eax\nje child\n"
	again := "mov $50,%r14d\nyield: mov $0x18,%eax\nsyscall\ndec %r14d\njne yield\n"
	const ever = "the program waits, and nobody could wake it"
	for name, c := range map[string]struct{ text, err string }{
		"nobody_makes_room":       {event + write + exitZero, ever},
		"two_wait":                {event + fork + write + exitZero + "child: " + write + exitZero, ever},
		"another_yields_and_ends": {event + fork + write + exitZero + "child: " + again + exitZero, ever},
		"another_makes_room":      {event + fork + write + "cmp $8,%eax\njne bad\n" + exitZero + "bad: mov $1,%edi\nmov $0xe7,%eax\nsyscall\nchild: " + again + read + exitZero, ""},
		"a_signal_ends_it":        {event + fork + write + exitZero + "child: " + again + "mov $0x6e,%eax\nsyscall\nmov %eax,%edi\nmov $15,%esi\nmov $0x3e,%eax\nsyscall\n" + exitZero, "15"},
		"nonblocking":             {"mov $1,%edi\nmov $0x800,%esi\nmov $0x122,%eax\nsyscall\nmov %eax,%ebx\npush $-2\n" + write + "cmp $-11,%eax\njne bad\n" + exitZero + "bad: mov $1,%edi\nmov $0xe7,%eax\nsyscall\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			onEngines(t, process.Config{Program: build(t, c.text)}, func(t *testing.T, _ *process.Process, end process.Exit, err error) {
				switch c.err {
				case ever:
					require.EqualError(t, err, ever)
				case "15":
					require.NoError(t, err)
					require.EqualValues(t, 15, end.Signal)
				default:
					require.NoError(t, err)
					require.Zero(t, end.Code)
				}
			})
		})
	}
}
