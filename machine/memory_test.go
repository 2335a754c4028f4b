package machine_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	. "kprobelab/machine"
	"kprobelab/x86"
)

func TestMemoryIsChecked(t *testing.T) {
	img := &tinyImage{}
	img.Add("ret", 0xc3)
	m := boot(t, img, nil)
	data := dataBase + PageSize
	for name, c := range map[string]struct {
		addr     x86.Addr
		n        int
		r, w, px bool
	}{
		"text":              {textBase, 8, true, false, true},
		"read_only_data":    {dataBase, 8, true, false, false},
		"data":              {data, 8, true, true, false},
		"across_two_pages":  {data + PageSize - 4, 8, true, true, false},
		"past_the_end":      {data + 2*PageSize - 4, 8, false, false, false},
		"read_only_to_data": {data - 4, 8, true, false, false},
		"null":              {0, 1, false, false, false},
		"nothing":           {0, 0, true, true, true},
		"top":               {^x86.Addr(0), 8, false, false, false},
		"stack_guard":       {VmallocBase + ThreadSize - 8, 8, false, false, false},
		"stack":             {VmallocBase + ThreadSize, 8, true, true, false},
		"heap_not_taken":    {DirectMap + 1<<20, 8, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(ok bool, err error) {
				t.Helper()
				if ok {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, errno.EFAULT)
				}
			}
			b := make([]byte, c.n)
			check(c.r, m.ReadMem(c.addr, b))
			check(c.w, m.WriteMem(c.addr, b))
			check(c.px, m.PokeText(c.addr, b))
		})
	}
}

func TestHeapIsFull(t *testing.T) {
	img := &tinyImage{}
	img.Add("ret", 0xc3)
	m := boot(t, img, &Options{HeapSize: 1 << 20})
	_, err := m.Alloc(1 << 20)
	require.ErrorIs(t, err, ErrNoMemory)
	require.ErrorIs(t, err, errno.ENOMEM)
	a, err := m.Alloc(1 << 19)
	require.NoError(t, err)
	_, err = m.Alloc(1 << 19)
	require.ErrorIs(t, err, ErrNoMemory)
	m.Free(a)
	m.Free(a)
	b, err := m.Alloc(1 << 19)
	require.NoError(t, err)
	require.Equal(t, a, b)
	_, err = m.Alloc(-1)
	require.ErrorIs(t, err, errno.EINVAL)
	_, err = m.AllocExec(ExecSize+1, "x")
	require.ErrorIs(t, err, errno.EINVAL)
	_, err = m.AllocExec(ExecSize, "x")
	require.ErrorIs(t, err, ErrNoMemory, "the stub page is there already")
}

// A process's memory for a system call lies below the kernel's half, is freed after the call, and
// is copied back with the guest's writes.
func TestUserMemory(t *testing.T) {
	img := &tinyImage{}
	img.Add("first", 0x48, 0x8b, 0x07, 0xc6, 0x07, 'X', 0xc3) // mov (%rdi),%rax; movb $'X',(%rdi); ret
	img.Add("where", 0x48, 0x89, 0xf8, 0xc3)                  // mov %rdi,%rax; ret
	m := boot(t, img, nil)
	arg := UserString("abcdefg")
	got, err := m.Call("first", arg)
	require.NoError(t, err)
	require.Equal(t, binary.LittleEndian.Uint64([]byte("abcdefg\x00")), got)
	require.Equal(t, User("Xbcdefg\x00"), arg)

	at, err := m.Call("where", arg)
	require.NoError(t, err)
	require.True(t, x86.Addr(at).In(UserEnd-UserSize, UserEnd), "%#x", at)
	again, err := m.Call("where", arg)
	require.NoError(t, err)
	require.Equal(t, at, again, "the first was released")

	s, err := m.Snapshot()
	require.NoError(t, err)
	a, err := m.AllocUser(UserSize)
	require.ErrorIs(t, err, ErrNoMemory, "%v", a)
	a, err = m.AllocUser(100)
	require.NoError(t, err)
	require.NoError(t, m.WriteMem(a, []byte("kept?")))
	require.NoError(t, m.Restore(s))
	b, err := m.AllocUser(100)
	require.NoError(t, err)
	require.Equal(t, a, b)
	text := make([]byte, 5)
	require.NoError(t, m.ReadMem(b, text))
	require.Equal(t, make([]byte, 5), text)
}

func TestAllocatedMemoryIsZeroed(t *testing.T) {
	img := &tinyImage{}
	img.Add("ret", 0xc3)
	m := boot(t, img, nil)
	b, err := m.NewBuf(100)
	require.NoError(t, err)
	_, err = b.Write(make([]byte, 101))
	require.ErrorIs(t, err, errno.EINVAL)
	_, err = b.Write([]byte("dirty"))
	require.NoError(t, err)
	b.Free()
	c, err := m.NewBuf(100)
	require.NoError(t, err)
	require.Equal(t, b.Addr, c.Addr)
	require.Equal(t, make([]byte, 100), c.Bytes())
}

// Text that was changed without a sync is stale on the CPUs that ran it, and
// only there.
func TestPokedTextIsStaleUntilSyncCore(t *testing.T) {
	img := &tinyImage{}
	fn := img.Add("five", 0xb8, 5, 0, 0, 0, 0xc3)
	m := boot(t, img, &Options{CPUs: 3})
	on := func(cpu int) uint64 {
		task, err := m.Go("on", Invocation{Addr: fn})
		require.NoError(t, err)
		require.NoError(t, task.Pin(cpu))
		require.NoError(t, m.Run())
		return task.Results()[0].Ret
	}
	require.Equal(t, uint64(5), on(0))
	require.Equal(t, uint64(5), on(1))
	require.NoError(t, m.PokeTextNoSync(fn+1, []byte{6}))
	require.Equal(t, uint64(5), on(0))
	require.Equal(t, uint64(6), on(2), "this one had never fetched it")
	m.SyncCore(0)
	require.Equal(t, uint64(6), on(0))
	require.Equal(t, uint64(5), on(1))
	m.SyncCore(1)
	require.Equal(t, uint64(6), on(1))
	require.NoError(t, m.PokeText(fn+1, []byte{7}))
	for cpu := range 3 {
		require.Equal(t, uint64(7), on(cpu))
		require.Empty(t, m.Stale(cpu))
	}
}

// A handler pokes the code that is running, on both sides of a page's end.
func TestPokeWhileRunning(t *testing.T) {
	img := &tinyImage{}
	img.Add("ret", 0xc3)
	m := boot(t, img, nil)
	page, err := m.AllocExec(2*PageSize, "pages")
	require.NoError(t, err)
	at := page + PageSize - 3 // mov $1,%eax crosses; int3 before it
	require.NoError(t, m.PokeText(at-1, []byte{0xcc, 0xb8, 1, 0, 0, 0, 0xc3}))
	n := byte(10)
	m.SetTraps(&trapFuncs{OnInt3: func(*x86.PtRegs) bool {
		n++
		require.NoError(t, m.PokeText(at+1, []byte{n, 0, n, 0}))
		return true
	}})
	for want := uint64(11); want < 20; want++ {
		got, err := m.CallAddr(at - 1)
		require.NoError(t, err)
		require.Equal(t, want|want<<16, got)
	}
}

func TestSnapshotRestoresWhatWasWritten(t *testing.T) {
	img := &tinyImage{}
	store := img.Add("store", 0x48, 0x89, 0x37, 0x48, 0x8b, 0x07, 0xc3) // mov %rsi,(%rdi); mov (%rdi),%rax; ret
	five := img.Add("five", 0xb8, 5, 0, 0, 0, 0xc3)
	m := boot(t, img, &Options{CPUs: 2})
	data := dataBase + PageSize
	call := func(addr x86.Addr, args ...uint64) uint64 {
		got, err := m.CallAddr(addr, args...)
		require.NoError(t, err)
		return got
	}
	stack := m.Tasks()[0].Stack()
	changed := func(s *Snapshot) (list []x86.Range) {
		for _, r := range m.Dirty(s) {
			if !r.Overlaps(stack) {
				list = append(list, r)
			}
		}
		return list
	}
	call(store, uint64(data), 1)
	require.Equal(t, uint64(5), call(five))
	first, err := m.Snapshot()
	require.NoError(t, err)
	require.Empty(t, m.Dirty(first))
	call(store, uint64(data), 1)
	require.Empty(t, changed(first), "written, and as it was")
	call(store, uint64(data), 2)
	require.Equal(t, []x86.Range{{Start: data, End: data + PageSize}}, changed(first))

	second, err := m.Snapshot()
	require.NoError(t, err)
	call(store, uint64(data+PageSize), 3)
	require.NoError(t, m.PokeText(five+1, []byte{9}))
	require.Equal(t, uint64(9), call(five))
	require.Equal(t, []x86.Range{{Start: textBase, End: textBase + PageSize}, {Start: data + PageSize, End: data + 2*PageSize}}, changed(second))
	require.Equal(t, []x86.Range{{Start: textBase, End: textBase + PageSize}, {Start: data, End: data + 2*PageSize}}, changed(first))

	require.NoError(t, m.Restore(second))
	require.Empty(t, m.Dirty(second))
	require.Equal(t, uint64(5), call(five))
	b := make([]byte, 1)
	require.NoError(t, m.ReadMem(data, b))
	require.Equal(t, byte(2), b[0])

	require.NoError(t, m.Restore(first))
	require.NoError(t, m.ReadMem(data, b))
	require.Equal(t, byte(1), b[0])
	require.ErrorIs(t, m.Restore(second), errno.EINVAL)
	call(store, uint64(data), 8)
	require.NotEmpty(t, changed(first))
	require.NoError(t, m.Restore(first), "more than once")
	require.Empty(t, m.Dirty(first))

	at, err := m.AllocExec(10, "page")
	require.NoError(t, err)
	require.NoError(t, m.Restore(first))
	require.Error(t, m.ReadMem(at, b))
	_, err = m.CallAddr(at)
	require.ErrorContains(t, err, "page fault")
}

func TestDiscardedSnapshotCostsNothing(t *testing.T) {
	img := &tinyImage{}
	store := img.Add("store", 0x48, 0x89, 0x37, 0xc3) // mov %rsi,(%rdi); ret
	m := boot(t, img, nil)
	data := dataBase + PageSize
	write := func(v uint64) {
		_, err := m.CallAddr(store, uint64(data), v)
		require.NoError(t, err)
	}
	first, err := m.Snapshot()
	require.NoError(t, err)
	write(1)
	second, err := m.Snapshot()
	require.NoError(t, err)
	write(2)
	m.Discard(second)
	m.Discard(second)
	require.ErrorIs(t, m.Restore(second), errno.EINVAL)
	require.NotEmpty(t, m.Dirty(first))
	m.Discard(first)
	require.Zero(t, m.SavedPages())
	write(3)
	require.Zero(t, m.SavedPages())

	again, err := m.Snapshot()
	require.NoError(t, err)
	write(4)
	require.NoError(t, m.Restore(again))
	b := make([]byte, 1)
	require.NoError(t, m.ReadMem(data, b))
	require.Equal(t, byte(3), b[0])
	require.Empty(t, m.Dirty(again))
}
