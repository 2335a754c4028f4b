package machine_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage"
	. "kprobelab/machine"
	"kprobelab/x86"
)

var guestImage = sync.OnceValues(func() (*kimage.Image, error) {
	return kimage.Open("../testdata/guest.elf", nil)
})

func bootGuest(t testing.TB, o *Options) *Machine {
	t.Helper()
	img, err := guestImage()
	require.NoError(t, err)
	return boot(t, img, o)
}

func word64(t testing.TB, m *Machine, name string) uint64 {
	t.Helper()
	at, err := m.Function(name)
	require.NoError(t, err)
	var b [8]byte
	require.NoError(t, m.ReadMem(at, b[:]))
	return binary.LittleEndian.Uint64(b[:])
}

func workSum(n uint64) (sum uint64) {
	for i := range n {
		sum += i&15 + i
	}
	return sum
}

func TestTasksShareCPUs(t *testing.T) {
	for _, cpus := range []int{1, 2, 3} {
		for _, fn := range []string{"worker", "busy_worker", "sleepy_worker"} {
			m := bootGuest(t, &Options{CPUs: cpus, Seed: 7, Slice: 50, EveryInstruction: cpus == 3})
			var tasks []*Task
			for i := range 5 {
				task, err := m.Go("w", Invoke(fn, 20+i), Invoke("current_task_number"))
				require.NoError(t, err)
				tasks = append(tasks, task)
			}
			require.NoError(t, m.Run())
			for i, task := range tasks {
				require.True(t, task.Done())
				require.Equal(t, []Result{{Ret: workSum(uint64(20 + i))}, {Ret: uint64(i + 1)}}, task.Results(), "%s on %d cpus", fn, cpus)
			}
		}
	}
}

func TestTaskExitIsTold(t *testing.T) {
	m := bootGuest(t, &Options{CPUs: 2})
	traps := &trapFuncs{}
	m.SetTraps(traps)
	a, err := m.Go("a", Invoke("do_exit", 3))
	require.NoError(t, err)
	_, err = m.Go("b", Invoke("leaf"))
	require.NoError(t, err)
	require.NoError(t, m.Run())
	require.ElementsMatch(t, []int{1, 2}, traps.Exits)
	require.NoError(t, a.Err())
	_, err = m.Call("do_exit", 0)
	require.ErrorIs(t, err, ErrTaskExited)
}

func TestUnlockedCountsAreLostAndLockedOnesNot(t *testing.T) {
	for name, exact := range map[string]bool{"racy_inc": false, "atomic_add_test": true} {
		m := bootGuest(t, &Options{CPUs: 2, Seed: 1, Slice: 7, EveryInstruction: true})
		for range 4 {
			_, err := m.Go("inc", Invoke(name, 500))
			require.NoError(t, err)
		}
		require.NoError(t, m.Run())
		got := word64(t, m, "shared_counter")
		if exact {
			require.Equal(t, uint64(2000), got)
		} else {
			require.Less(t, got, uint64(2000))
			require.GreaterOrEqual(t, got, uint64(500))
		}
	}
}

// order runs tasks with a probe on work_item and returns who came in turn.
func order(t *testing.T, seed int64) []int {
	m := bootGuest(t, &Options{CPUs: 2, Seed: seed, Slice: 40})
	at, err := m.Function("work_item")
	require.NoError(t, err)
	first := make([]byte, 1)
	require.NoError(t, m.ReadMem(at, first))
	var seen []int
	page, err := m.AllocExec(PageSize, "kprobe_insn_page")
	require.NoError(t, err)
	copyOf := make([]byte, 15)
	require.NoError(t, m.ReadMem(at, copyOf))
	require.NoError(t, m.PokeText(page, copyOf))
	require.NoError(t, m.PokeText(at, []byte{0xcc}))
	m.SetTraps(&trapFuncs{
		OnInt3: func(r *x86.PtRegs) bool {
			seen = append(seen, m.Task()<<8|m.CPU())
			r.Flags = r.Flags&^x86.FlagIF | x86.FlagTF
			r.IP = uint64(page)
			return true
		},
		OnDebug: func(r *x86.PtRegs) bool {
			r.Flags = r.Flags&^x86.FlagTF | x86.FlagIF
			r.IP = r.IP - uint64(page) + uint64(at)
			return true
		},
	})
	for range 3 {
		_, err := m.Go("w", Invoke("busy_worker", 20))
		require.NoError(t, err)
	}
	require.NoError(t, m.Run())
	require.Len(t, seen, 60)
	return append(seen, int(m.Now()))
}

func TestRunsRepeatToTheNanosecond(t *testing.T) {
	first := order(t, 3)
	require.Equal(t, first, order(t, 3))
	require.NotEqual(t, first, order(t, 4))
}

func TestSleepersWakeInTime(t *testing.T) {
	m := bootGuest(t, &Options{CPUs: 2})
	long, err := m.Go("long", Invoke("sleepy_worker", 3, 1_000_000))
	require.NoError(t, err)
	short, err := m.Go("short", Invoke("sleepy_worker", 3, 10_000), Invoke("ktime_get"))
	require.NoError(t, err)
	start := m.Now()
	require.NoError(t, m.Run())
	took := m.Now() - start
	require.GreaterOrEqual(t, took, uint64(3_000_000))
	require.Less(t, took, uint64(3_010_000))
	require.Less(t, short.Results()[1].Ret, uint64(100_000))
	require.Equal(t, workSum(3), long.Results()[0].Ret)
	require.Equal(t, uint64(5), short.Switches()+long.Switches()-3)
}

func TestSleepForeverIsADeadlock(t *testing.T) {
	m := bootGuest(t, nil)
	_, err := m.Go("sleeper", Invoke("sleep_ns", ^uint64(0)))
	require.NoError(t, err)
	require.ErrorIs(t, m.Run(), ErrDeadlock)
}

func TestAFailingTaskEndsAlone(t *testing.T) {
	m := bootGuest(t, &Options{CPUs: 2})
	bad, err := m.Go("bad", Invoke("fault_null_read"))
	require.NoError(t, err)
	good, err := m.Go("good", Invoke("worker", 10))
	require.NoError(t, err)
	err = m.Run()
	var f *Fault
	require.True(t, errors.As(err, &f))
	require.Equal(t, x86.Addr(8), f.Addr)
	require.Equal(t, 1, f.Task)
	require.ErrorContains(t, err, "task 1 (bad): page fault at fault_null_read+")
	require.Error(t, bad.Err())
	require.NoError(t, m.Run(), "told once")
	require.Equal(t, workSum(10), good.Results()[0].Ret)
}

func TestManyTasksOneAfterTheOther(t *testing.T) {
	m := bootGuest(t, nil)
	for i := range 3 * MaxTasks {
		task, err := m.Go("t", Invoke("current_task_number"), Invoke("schedule"))
		require.NoError(t, err)
		require.NoError(t, m.Run(), i)
		require.Equal(t, uint64(task.Number()), task.Results()[0].Ret)
	}
	for range MaxTasks - 1 {
		_, err := m.Go("t", Invoke("leaf"))
		require.NoError(t, err)
	}
	_, err := m.Go("t", Invoke("leaf"))
	require.ErrorIs(t, err, ErrNoMemory)
	require.NoError(t, m.Run())
}

func TestRunawayTasksHaveABudget(t *testing.T) {
	m := bootGuest(t, &Options{CPUs: 2, Budget: 50_000})
	buf, err := m.NewBuf(8)
	require.NoError(t, err)
	_, err = m.Go("spinner", Invoke("spin_until", buf))
	require.NoError(t, err)
	require.ErrorIs(t, m.Run(), ErrBudget)
}

func TestCallWaitsForOtherTasks(t *testing.T) {
	m := bootGuest(t, &Options{Slice: 100})
	buf, err := m.NewBuf(8)
	require.NoError(t, err)
	// The boot task spins until another one has written.
	_, err = m.Go("setter", Invoke("spin", 500), Invoke("ex_store", buf, 1))
	require.NoError(t, err)
	n, err := m.Call("spin_until", buf)
	require.NoError(t, err)
	require.NotZero(t, n)
}

func TestPinnedTasksStay(t *testing.T) {
	m := bootGuest(t, &Options{CPUs: 3, Seed: 2})
	var tasks []*Task
	for i := range 6 {
		task, err := m.Go("p", Invoke("worker", 5), Invoke("smp_processor_id_test"), Invoke("this_cpu_inc_test"))
		require.NoError(t, err)
		require.NoError(t, task.Pin(i%3))
		tasks = append(tasks, task)
	}
	require.Error(t, tasks[0].Pin(3))
	require.NoError(t, m.Run())
	var counts []uint64
	for i, task := range tasks {
		require.Equal(t, uint64(i%3), task.Results()[1].Ret)
		counts = append(counts, task.Results()[2].Ret)
	}
	require.ElementsMatch(t, []uint64{1, 1, 1, 2, 2, 2}, counts, "each cpu counts in its own area")
}

func TestGuestKernelFaults(t *testing.T) {
	m := bootGuest(t, nil)
	for name, want := range map[string]string{
		"fault_null_read": "read of 0x8", "fault_null_write": "write of 0x0",
		"fault_text_write": "page fault at fault_text_write+", "fault_rodata_write": "write of 0x",
		"fault_ud2": "invalid opcode at fault_ud2+", "fault_noncanonical": "general protection fault at fault_noncanonical+",
		"fault_int3": "int3 at fault_int3+", "fault_jump_null": "page fault at 0x0: fetch of 0x0",
		"fault_exec_data": "fetch of 0x", "fault_stack_overflow": "page fault at fault_stack_overflow+",
	} {
		_, err := m.Call(name, 1, 2)
		require.ErrorContains(t, err, want, name)
	}
	got, err := m.Call("ex_load", 0x10, nil, 77)
	require.NoError(t, err)
	require.Equal(t, uint64(77), got)
	got, err = m.Call("ex_divide", 5, 0, 78)
	require.NoError(t, err)
	require.Equal(t, uint64(78), got)
	got, err = m.Call("ex_divide", 50, 7, 78)
	require.NoError(t, err)
	require.Equal(t, uint64(7), got)
	// 12 bytes before the end of the heap's mapped memory: the rest is left.
	src, err := m.NewBuf(PageSize)
	require.NoError(t, err)
	left, err := m.Call("ex_copy", make([]byte, 64), src.Addr+PageSize-12, 20)
	require.NoError(t, err)
	require.LessOrEqual(t, left, uint64(8))
}

func TestTaskStateMovesWithTheTask(t *testing.T) {
	img := &tinyImage{}
	// movq %rdi,%xmm3; push %rdi; fildll (%rsp); mov $100,%ecx
	// 1: out %al,$0xe1; dec %ecx; jne 1b
	// fistpll (%rsp); pop %rax; movq %xmm3,%rdx; sub %rdx,%rax; ret
	code := []byte{0x66, 0x48, 0x0f, 0x6e, 0xdf, 0x57, 0xdf, 0x2c, 0x24, 0xb9, 100, 0, 0, 0,
		0xe6, 0xe1, 0xff, 0xc9, 0x75, 0xfa,
		0xdf, 0x3c, 0x24, 0x58, 0x66, 0x48, 0x0f, 0x7e, 0xda, 0x48, 0x29, 0xd0, 0xc3}
	if engine.name == "interp" { // which has no x87: nops of three bytes
		copy(code[6:], []byte{0x0f, 0x1f, 0x00})
		copy(code[20:], []byte{0x0f, 0x1f, 0x00})
	}
	img.Add("xmm", code...)
	m := boot(t, img, &Options{CPUs: 2, Slice: 13, Seed: 5})
	var tasks []*Task
	for i := range 4 {
		task, err := m.Go("x", Invoke("xmm", 1000+i))
		require.NoError(t, err)
		tasks = append(tasks, task)
	}
	require.NoError(t, m.Run())
	for _, task := range tasks {
		require.Equal(t, []Result{{}}, task.Results())
	}
}

func TestLinesOfTasksStayWhole(t *testing.T) {
	m := bootGuest(t, &Options{CPUs: 2, Seed: 3, Slice: 20})
	want := map[string]int{}
	for i := range 4 {
		_, err := m.Go("printer", Invoke("printk", "task %d prints a line that is not short\n", i),
			Invoke("printk", "and %d", i), Invoke("printk", " has a second\n"))
		require.NoError(t, err)
		want[fmt.Sprintf("task %d prints a line that is not short", i)]++
		want[fmt.Sprintf("and %d has a second", i)]++
	}
	require.NoError(t, m.Run())
	got := map[string]int{}
	for line := range strings.Lines(string(m.Console())) {
		got[strings.TrimSuffix(line, "\n")]++
	}
	require.Equal(t, want, got)
	_, err := m.Call("printk", "no end")
	require.NoError(t, err)
	require.Equal(t, "no end", string(m.Console()))
}

func TestSwitchesAreTold(t *testing.T) {
	m := bootGuest(t, &Options{CPUs: 2})
	seen := map[string]bool{}
	m.OnSwitch(func(cpu int, task *Task) { seen[fmt.Sprintf("%s on %d", task.Name, cpu)] = true })
	for i := range 2 {
		task, err := m.Go(fmt.Sprintf("task%d", i), Invoke("worker", 3))
		require.NoError(t, err)
		require.NoError(t, task.Pin(i))
	}
	require.NoError(t, m.Run())
	require.Equal(t, map[string]bool{"task0 on 0": true, "task1 on 1": true}, seen)
}

// A task without calls is done, and stops no other task.
func TestTaskWithoutCalls(t *testing.T) {
	m := bootGuest(t, nil)
	none, err := m.Go("none")
	require.NoError(t, err)
	require.True(t, none.Done())
	one, err := m.Go("one", Invoke("gcd", 12, 18))
	require.NoError(t, err)
	require.NoError(t, m.Run())
	require.Empty(t, none.Results())
	require.Equal(t, []Result{{Ret: 6}}, one.Results())
}
