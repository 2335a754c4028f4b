package registers

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/errno"
	"kprobelab/x86"
)

const (
	text  x86.Addr = 0xffffffff81000000
	noted x86.Addr = 0xffffffff81000100 // on the blacklist
	gdt   x86.Addr = 0xffff888000001000
)

var root = Asker{Privileged: true}

func kernel() Kernel {
	return Kernel{
		CPUs: 3, Offline: []int{2}, Paranoid: 2,
		Entry:       []x86.Range{{Start: gdt, End: gdt + 128}},
		Blacklisted: func(at x86.Addr) bool { return at == noted },
	}
}

// Each rule has a row, named after it.
func TestRefusals(t *testing.T) {
	user := Asker{Others: func(task int) bool { return task == 9 }}
	word := Attr{Type: Write, Addr: 0x1000, Len: 4, ExcludeKernel: true}
	with := func(change func(a *Attr)) Attr { a := word; change(&a); return a }
	strict, lax := kernel(), kernel()
	strict.Restricted, strict.Paranoid = true, 3
	lax.Paranoid = 1
	for _, c := range []struct {
		rule      Rule
		errno     errno.Errno
		k         Kernel
		by        Asker
		a         Attr
		task, cpu int
	}{
		{NotForAll, errno.EACCES, strict, user, word, 0, Any},
		{NotTheKernel, errno.EACCES, kernel(), user, with(func(a *Attr) { a.ExcludeKernel = false }), 0, Any},
		{NoTask, errno.ESRCH, kernel(), root, word, 5, Any},
		{NoCPU, errno.EINVAL, kernel(), root, word, Any, Any},
		{NoCPU, errno.EINVAL, kernel(), root, word, 0, 3},
		{NoCPU, errno.EINVAL, kernel(), root, word, 0, -2},
		{NoAccess, errno.EINVAL, kernel(), root, with(func(a *Attr) { a.Type = Empty }), 0, Any},
		{NoAccess, errno.EINVAL, kernel(), root, with(func(a *Attr) { a.Type = Invalid }), 0, Any},
		{NoRegister, errno.ENOSPC, kernel(), root, with(func(a *Attr) { a.Addr++ }), 7, Any}, // before the address is looked at
		{PastTheEnd, errno.EINVAL, kernel(), root, with(func(a *Attr) { a.Len = 0 }), 0, Any},
		{PastTheEnd, errno.EINVAL, kernel(), root, with(func(a *Attr) { a.Addr = ^x86.Addr(0) - 2 }), 0, Any},
		{EntryMemory, errno.EINVAL, kernel(), root, with(func(a *Attr) { a.Addr = gdt + 124 }), Any, 0},
		{EntryMemory, errno.EINVAL, kernel(), root, with(func(a *Attr) { a.Addr = gdt - 1 }), Any, 0},
		{NoKprobe, errno.EINVAL, kernel(), root, Attr{Type: Execute, Addr: noted, Len: 8}, Any, 0},
		{ExecuteLong, errno.EINVAL, kernel(), root, Attr{Type: Execute, Addr: text, Len: 1}, Any, 0},
		{NoSuchAccess, errno.EINVAL, kernel(), root, with(func(a *Attr) { a.Type = Read }), 0, Any},
		{NoSuchAccess, errno.EINVAL, kernel(), root, with(func(a *Attr) { a.Type = Write | Execute }), 0, Any},
		{NoSuchLength, errno.EINVAL, kernel(), root, with(func(a *Attr) { a.Len = 3 }), 0, Any},
		{NoSuchLength, errno.EINVAL, Kernel{CPUs: 1}, root, with(func(a *Attr) { a.Addr, a.Len = 0, 0 }), 0, Any},
		{Unaligned, errno.EINVAL, kernel(), root, with(func(a *Attr) { a.Addr++ }), 0, Any},
		{NoRanges, errno.EOPNOTSUPP, kernel(), root, with(func(a *Attr) { a.Len = 16 }), 0, Any},
		{Excluded, errno.EINVAL, kernel(), root, with(func(a *Attr) { a.Addr = text }), 0, Any},
		{Excluded, errno.EINVAL, kernel(), root, with(func(a *Attr) { a.Addr = x86.UserEnd }), 0, Any},
		{Privileged, errno.EPERM, lax, user, with(func(a *Attr) { a.Addr, a.ExcludeKernel = text, false }), 0, Any},
		{CPUWide, errno.EACCES, kernel(), user, word, Any, 0},
		{OthersTask, errno.EACCES, kernel(), user, word, 9, Any},
		{CPUOffline, errno.ENODEV, kernel(), root, word, Any, 2},
	} {
		s := New(c.k)
		s.Exit(5)
		taken := 0
		for ; c.task == 7 && taken < Count; taken++ {
			_, err := s.Open(root, word, 7, Any)
			require.NoError(t, err)
		}
		_, err := s.Open(c.by, c.a, c.task, c.cpu)
		var r *Refusal
		require.ErrorAs(t, err, &r, c.rule)
		require.Equal(t, c.rule, r.Rule)
		require.ErrorIs(t, err, c.errno, c.rule)
		require.NotEmpty(t, r.Text)
		require.Len(t, s.All(), taken)
	}
}

func TestAccepted(t *testing.T) {
	ranges := kernel()
	ranges.Ranges = true
	for name, c := range map[string]struct {
		k Kernel
		a Attr
	}{
		"execution is not aligned":     {kernel(), Attr{Type: Execute, Addr: text + 1, Len: 8}},
		"the last word of a program":   {kernel(), Attr{Type: Write, Addr: x86.UserEnd - 8, Len: 8, ExcludeKernel: true}},
		"execution of its last byte":   {kernel(), Attr{Type: Execute, Addr: x86.UserEnd - 1, Len: 8, ExcludeKernel: true}},
		"the last byte of all":         {kernel(), Attr{Type: Write, Addr: ^x86.Addr(0), Len: 1}},
		"a range, with BPEXT":          {ranges, Attr{Type: Write, Addr: 0x1000, Len: 4096, ExcludeKernel: true}},
		"data on the blacklist":        {kernel(), Attr{Type: Read | Write, Addr: noted, Len: 8}},
		"beside the ways of the entry": {kernel(), Attr{Type: Write, Addr: gdt + 128, Len: 8}},
	} {
		_, err := New(c.k).Open(root, c.a, 0, Any)
		require.NoError(t, err, name)
	}
}

// Who shares the four with whom.
func TestRoom(t *testing.T) {
	type ask struct{ task, cpu int }
	for name, c := range map[string]struct {
		open []ask
		next ask
		room bool
	}{
		"a task's fifth":                                {[]ask{{1, Any}, {1, Any}, {1, Any}, {1, Any}}, ask{1, Any}, false},
		"another task's first":                          {[]ask{{1, Any}, {1, Any}, {1, Any}, {1, Any}}, ask{2, Any}, true},
		"a CPU's, beside a task that has all":           {[]ask{{1, Any}, {1, Any}, {1, Any}, {1, Any}}, ask{Any, 0}, false},
		"a CPU's, beside tasks that have three each":    {[]ask{{1, Any}, {1, Any}, {1, Any}, {2, Any}, {2, Any}, {2, Any}}, ask{Any, 0}, true},
		"a task's, beside four of one CPU":              {[]ask{{Any, 0}, {Any, 0}, {Any, 0}, {Any, 0}}, ask{1, Any}, false},
		"a task's on another CPU":                       {[]ask{{Any, 0}, {Any, 0}, {Any, 0}, {Any, 0}}, ask{1, 1}, true},
		"a task's fifth on another CPU":                 {[]ask{{1, 0}, {1, 0}, {1, 0}, {1, 0}}, ask{1, 1}, true},
		"a task's everywhere, beside four of it on one": {[]ask{{1, 0}, {1, 0}, {1, 0}, {1, 0}}, ask{1, Any}, false},
		"two and two, by CPU and task":                  {[]ask{{Any, 0}, {Any, 0}, {1, Any}, {1, 0}}, ask{1, Any}, false},
		"two and one":                                   {[]ask{{Any, 0}, {Any, 0}, {1, Any}}, ask{1, Any}, true},
	} {
		s := New(kernel())
		word := Attr{Type: Write, Addr: 0x1000, Len: 4}
		for _, a := range c.open {
			_, err := s.Open(root, word, a.task, a.cpu)
			require.NoError(t, err, name)
		}
		e, err := s.Open(root, word, c.next.task, c.next.cpu)
		require.Equal(t, c.room, err == nil, "%s: %v", name, err)
		if !c.room {
			require.ErrorIs(t, err, errno.ENOSPC, name)
			s.Close(s.All()[0])
			e, err = s.Open(root, word, c.next.task, c.next.cpu)
			require.NoError(t, err, name)
		}
		s.Close(e)
	}
}

func TestWideIsOnEachCPUOrNone(t *testing.T) {
	s := New(kernel())
	word := Attr{Type: Write, Addr: text, Len: 4}
	list, err := s.RegisterWide(word)
	require.NoError(t, err)
	require.Len(t, list, 2) // one is offline
	for range 3 {
		_, err := s.Register(word, Any, 1)
		require.NoError(t, err)
	}
	_, err = s.RegisterWide(word)
	require.ErrorIs(t, err, errno.ENOSPC)
	require.Len(t, s.All(), 5)
}

// What a debugger writes is read back, and takes registers.
func TestPoke(t *testing.T) {
	const dr0, dr6, dr7 = DebugRegs, DebugRegs + 48, DebugRegs + 56
	type poke struct {
		at, word uint64
		errno    errno.Errno
	}
	for name, c := range map[string]struct {
		pokes []poke
		taken int
		peek  map[uint64]uint64
	}{
		"an address takes one, though it is off":    {[]poke{{dr0, 0x1001, 0}}, 1, map[uint64]uint64{dr0: 0x1001, dr7: 0}},
		"a kernel address":                          {[]poke{{dr0, uint64(text), errno.EINVAL}}, 0, map[uint64]uint64{dr0: 0}},
		"DR4 is none":                               {[]poke{{dr0 + 32, 0, errno.EIO}}, 0, map[uint64]uint64{dr0 + 32: 0}},
		"an offset inside a register":               {[]poke{{dr0 + 1, 0, errno.EIO}}, 0, nil},
		"an offset before them":                     {[]poke{{dr0 - 8, 0, errno.EIO}}, 0, map[uint64]uint64{dr0 - 8: 0}},
		"an offset after struct user":               {[]poke{{UserSize, 0, errno.EIO}}, 0, nil},
		"DR6 at first":                              {nil, 0, map[uint64]uint64{dr6: 0xffff0ff0}},
		"DR6 is kept":                               {[]poke{{dr6, 5, 0}}, 0, map[uint64]uint64{dr6: 5}},
		"DR7 takes the enabled registers":           {[]poke{{dr7, 0x110005, 0}}, 2, map[uint64]uint64{dr7: 0x110005, dr0: 0}},
		"DR7 watches input and output":              {[]poke{{dr7, 0x20001, errno.EINVAL}}, 0, map[uint64]uint64{dr7: 0}},
		"DR7 executes more than a byte":             {[]poke{{dr7, 0x40001, errno.EINVAL}}, 0, nil},
		"an address that is no multiple":            {[]poke{{dr0, 0x1001, 0}, {dr7, 0xd0001, errno.EINVAL}}, 1, map[uint64]uint64{dr7: 0}},
		"an address after its length":               {[]poke{{dr7, 0xd0001, 0}, {dr0, 0x1001, errno.EINVAL}, {dr0, 0x1004, 0}}, 1, map[uint64]uint64{dr0: 0x1004}},
		"off, it stays taken":                       {[]poke{{dr7, 0x10001, 0}, {dr7, 0, 0}}, 1, map[uint64]uint64{dr7: 0}},
		"refused, it is as before; one stays taken": {[]poke{{dr7, 0x200005, errno.EINVAL}}, 1, map[uint64]uint64{dr7: 0}},
		"reserved bits are kept, and not looked at": {[]poke{{dr7, 0xffffffff0000fc00, 0}}, 0, map[uint64]uint64{dr7: 0xffffffff0000fc00}},
	} {
		s := New(kernel())
		for _, p := range c.pokes {
			err := s.Poke(1, p.at, p.word)
			var e errno.Errno
			errors.As(err, &e)
			require.Equal(t, p.errno, e, "%s: %#x: %v", name, p.at, err)
		}
		require.Len(t, s.All(), c.taken, name)
		for at, want := range c.peek {
			v, err := s.Peek(1, at)
			require.NoError(t, err, name)
			require.Equal(t, want, v, "%s: %d", name, at)
		}
		s.Exit(1)
		require.Empty(t, s.All(), name)
	}
	for _, at := range []uint64{DebugRegs + 1, UserSize, ^uint64(7)} {
		_, err := New(kernel()).Peek(1, at)
		require.ErrorIs(t, err, errno.EIO)
	}
}

// Whatever was accepted, no CPU needs a fifth register for any of the tasks.
func TestNeverAFifth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New(kernel())
		for range rapid.IntRange(1, 60).Draw(t, "asked") {
			task, cpu := rapid.IntRange(-1, 3).Draw(t, "task"), rapid.IntRange(-1, 3).Draw(t, "cpu")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				if all := s.All(); len(all) > 0 {
					s.Close(all[rapid.IntRange(0, len(all)-1).Draw(t, "which")])
				}
			case 1:
				at := rapid.Uint64Range(DebugRegs/8-1, UserSize/8).Draw(t, "at") * 8
				_ = s.Poke(max(task, 0), at, rapid.Uint64().Draw(t, "word"))
			default:
				_, _ = s.Open(root, Attr{Type: Write, Addr: 0x1000, Len: 4}, task, cpu)
			}
			for cpu := range s.Kernel.CPUs {
				own, of := 0, map[int]int{}
				for _, e := range s.All() {
					if e.CPU == Any || e.CPU == cpu {
						if e.Task == Any {
							own++
						} else {
							of[e.Task]++
						}
					}
				}
				for task, n := range of {
					require.LessOrEqual(t, own+n, Count, "cpu %d task %d", cpu, task)
				}
				require.LessOrEqual(t, own, Count)
			}
		}
	})
}
