package machine_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	. "kprobelab/machine"
	"kprobelab/x86"
)

// Machines share nothing: many run at once.
func TestMachinesRunInParallel(t *testing.T) {
	var wg sync.WaitGroup
	errs := make(chan error, 16)
	for i := range 16 {
		wg.Go(func() { errs <- oneMachine(uint64(i)) })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
}

func oneMachine(i uint64) error {
	for range 5 {
		m, err := open(int3Image(), &Options{CPUs: 2})
		if err != nil {
			return err
		}
		defer m.Close()
		hits := uint64(0)
		m.SetTraps(&trapFuncs{OnInt3: func(r *x86.PtRegs) bool {
			hits++
			if got, err := m.Call("twice", r.DI); err == nil {
				r.DI = got
			}
			return true
		}})
		for k := range uint64(50) {
			got, err := m.Call("probed", i+k)
			if err != nil {
				return err
			}
			if want := 2*(i+k+1) + 1; got != want || hits != k+1 {
				return fmt.Errorf("machine %d: %d, want %d, %d hits", i, got, want, hits)
			}
		}
	}
	return nil
}

// What a callout's handler calls fails in each way that an engine can stop;
// the callout itself goes on.
func TestFailuresInsideACallout(t *testing.T) {
	img := faultImage()
	// sub $168,%rsp; mov %rsp,%rdi; mov $1,%ebx; cmp $1,%ebx; call *%rsi; sete %al; movzx %al,%eax; add $168,%rsp; ret
	img.Add("calls_rsi", 0x48, 0x81, 0xec, 0xa8, 0, 0, 0, 0x48, 0x89, 0xe7, 0xbb, 1, 0, 0, 0, 0x83, 0xfb, 1,
		0xff, 0xd6, 0x0f, 0x94, 0xc0, 0x0f, 0xb6, 0xc0, 0x48, 0x81, 0xc4, 0xa8, 0, 0, 0, 0xc3)
	img.Add("sleep", 0xe6, 0xe2, 0xc3)
	img.Add("hlt", 0xf4)
	m := boot(t, img, nil)
	var inner error
	name, n := "", 0
	stub, err := m.Callout("stub", func(x86.Addr, *x86.PtRegs) {
		n++
		_, inner = m.Call(name, uint64(unmapped), dataBase+PageSize, textBase)
	})
	require.NoError(t, err)
	names := []string{"sleep", "hlt"}
	for _, c := range faultCases {
		names = append(names, c.name)
	}
	for i := range names {
		name = names[i]
		got, err := m.Call("calls_rsi", 0, stub)
		require.NoError(t, err, name)
		require.Error(t, inner, name)
		require.Equal(t, uint64(1), got, "%s: the flags are as before", name)
		require.Equal(t, i+1, n, name)
	}
	name = "pad"
	_, err = m.Call("calls_rsi", 0, stub)
	require.NoError(t, err)
	require.NoError(t, inner)
}

func TestCalloutRefusals(t *testing.T) {
	img := &tinyImage{}
	img.Add("out", 0xe6, 0xe0, 0xc3)
	img.Add("call", 0xff, 0xe6) // jmp *%rsi
	m := boot(t, img, nil)
	stub, err := m.Callout("stub", func(x86.Addr, *x86.PtRegs) {})
	require.NoError(t, err)
	_, err = m.Call("out")
	require.ErrorContains(t, err, "callout at out+0x0/0x40, where no stub is")
	for _, frame := range []x86.Addr{0, textBase, dataBase, dataBase + 3*PageSize - 100, ^x86.Addr(0)} {
		_, err = m.Call("call", frame, stub)
		require.ErrorContains(t, err, "which is no writable memory")
	}
	_, err = m.Call("call", dataBase+PageSize, stub)
	require.NoError(t, err)
}

// Guest code that a handler calls may not sleep or end its task.
func TestHandlerMayNotSleep(t *testing.T) {
	img := int3Image()
	img.Add("sleep", 0xe6, 0xe2, 0xc3)
	img.Add("exit", 0xe6, 0xe3, 0x0f, 0x0b)
	m := boot(t, img, nil)
	for _, name := range []string{"sleep", "exit"} {
		var inner error
		m.SetTraps(&trapFuncs{OnInt3: func(*x86.PtRegs) bool {
			_, inner = m.Call(name)
			require.ErrorIs(t, m.Run(), ErrNested)
			_, err := m.Snapshot()
			require.ErrorIs(t, err, ErrNested)
			return true
		}})
		got, err := m.Call("probed", 1)
		require.NoError(t, err)
		require.Equal(t, uint64(3), got)
		require.ErrorIs(t, inner, ErrAtomic)
	}
}
