package machine_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	. "kprobelab/machine"
	"kprobelab/x86"
)

func TestCallPassesArgumentsByTheABI(t *testing.T) {
	img := &tinyImage{}
	// Each returns one argument; the seventh and eighth lie on the stack.
	img.Add("arg1", 0x48, 0x89, 0xf8, 0xc3)             // mov %rdi,%rax; ret
	img.Add("arg2", 0x48, 0x89, 0xf0, 0xc3)             // mov %rsi,%rax; ret
	img.Add("arg3", 0x48, 0x89, 0xd0, 0xc3)             // mov %rdx,%rax; ret
	img.Add("arg4", 0x48, 0x89, 0xc8, 0xc3)             // mov %rcx,%rax; ret
	img.Add("arg5", 0x4c, 0x89, 0xc0, 0xc3)             // mov %r8,%rax; ret
	img.Add("arg6", 0x4c, 0x89, 0xc8, 0xc3)             // mov %r9,%rax; ret
	img.Add("arg7", 0x48, 0x8b, 0x44, 0x24, 0x08, 0xc3) // mov 8(%rsp),%rax; ret
	img.Add("arg8", 0x48, 0x8b, 0x44, 0x24, 0x10, 0xc3) // mov 16(%rsp),%rax; ret
	img.Add("al", 0xc3)                                 // ret
	img.Add("sp", 0x48, 0x89, 0xe0, 0xc3)               // mov %rsp,%rax; ret
	img.Add("flags", 0x9c, 0x58, 0xc3)                  // pushf; pop %rax; ret
	img.Add("cs", 0x8c, 0xc8, 0xc3)                     // mov %cs,%eax; ret
	img.Add("ss", 0x8c, 0xd0, 0xc3)                     // mov %ss,%eax; ret
	img.Add("cr0", 0x0f, 0x20, 0xc0, 0xc3)              // mov %cr0,%rax; ret
	m := boot(t, img, nil)
	args := []any{-1, uint8(2), int32(-3), true, x86.Addr(5), (*Buf)(nil), 7, 8}
	want := map[string]uint64{
		"arg1": ^uint64(0), "arg2": 2, "arg3": ^uint64(2), "arg4": 1, "arg5": 5,
		"arg6": 0, "arg7": 7, "arg8": 8, "al": 0, "flags": 0x246, "cs": x86.KernelCS,
		"ss": x86.KernelDS, "cr0": 0x80050033,
	}
	for name, w := range want {
		got, err := m.Call(name, args...)
		require.NoError(t, err, name)
		require.Equal(t, w, got, name)
	}
	for n := range len(args) + 1 {
		sp, err := m.Call("sp", args[:n]...)
		require.NoError(t, err)
		require.Equal(t, uint64(8), sp%16, "%d arguments", n)
	}
	require.Equal(t, uint64(m.OuterEnd()), m.Regs().IP)
}

func TestCallBuffers(t *testing.T) {
	img := &tinyImage{}
	// strlen: xor %eax,%eax; 1: cmpb $0,(%rdi,%rax); je 2f; inc %rax; jmp 1b; 2: ret
	img.Add("strlen", 0x31, 0xc0, 0x80, 0x3c, 0x07, 0x00, 0x74, 0x05, 0x48, 0xff, 0xc0, 0xeb, 0xf5, 0xc3)
	// store: mov %sil,(%rdi); ret
	img.Add("store", 0x40, 0x88, 0x37, 0xc3)
	m := boot(t, img, nil)
	n, err := m.Call("strlen", "hello")
	require.NoError(t, err)
	require.Equal(t, uint64(5), n)

	b := []byte("abc")
	_, err = m.Call("store", b, 'X')
	require.NoError(t, err)
	require.Equal(t, "Xbc", string(b), "a []byte is copied back")

	buf, err := m.NewBuf(4)
	require.NoError(t, err)
	_, err = buf.Write([]byte("1234"))
	require.NoError(t, err)
	_, err = m.Call("store", buf, 'Y')
	require.NoError(t, err)
	require.Equal(t, "Y234", string(buf.Bytes()))
	used := m.HeapNext()
	for range 100 {
		_, err = m.Call("strlen", "scratch is released")
		require.NoError(t, err)
	}
	require.LessOrEqual(t, m.HeapNext().Sub(used), int64(64))
}

func TestCallRefusals(t *testing.T) {
	img := &tinyImage{}
	img.Add("twice", 0xc3)
	img.Add("twice", 0xc3)
	img.Add("ret", 0xc3)
	img.Add("hlt", 0xf4)
	img.Add("loop", 0xeb, 0xfe)
	m := boot(t, img, &Options{Budget: 1000})
	_, err := m.Call("nothing")
	require.ErrorIs(t, err, ErrNoSymbol)
	require.ErrorIs(t, err, errno.ENOENT)
	_, err = m.Call("twice")
	require.ErrorIs(t, err, ErrAmbiguous)
	_, err = m.Call("ret", 1.5)
	require.EqualError(t, err, "ret: argument 1: a float64 cannot be passed: invalid argument")
	_, err = m.Call("hlt")
	require.ErrorIs(t, err, ErrHalted)
	_, err = m.Call("loop")
	var over *BudgetError
	require.True(t, errors.As(err, &over))
	require.ErrorIs(t, err, ErrBudget)
	require.Equal(t, "loop+0x0/0x40", over.Symbol)
	_, err = m.Call("ret")
	require.NoError(t, err, "the machine is usable after each")
	m.Close()
	m.Close()
	_, err = m.Call("ret")
	require.ErrorIs(t, err, ErrClosed)
	_, err = m.Alloc(16)
	require.ErrorIs(t, err, ErrClosed)
	_, err = m.AllocExec(16, "page")
	require.ErrorIs(t, err, ErrClosed)
	require.Zero(t, m.Now()+m.Instructions()+m.Crossings()+uint64(m.CPU()+m.Task())+uint64(m.GSBase(0)), "a closed machine can be asked")
	require.Nil(t, m.Console())
}

func TestEveryCPUModelOpens(t *testing.T) {
	img := &tinyImage{}
	img.Add("ret", 0xc3)
	for _, name := range engine.models() {
		t.Run(name, func(t *testing.T) {
			m := boot(t, img, &Options{CPUModel: name})
			_, err := m.Call("ret")
			require.NoError(t, err)
		})
	}
	_, err := open(img, &Options{CPUModel: "z80"})
	require.ErrorContains(t, err, `cpu model "z80" is not one of`)
}
