package machine_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	. "kprobelab/machine"
	"kprobelab/x86"
)

// Goroutines that take turns share a machine: the engine has no memory of the
// thread that it ran on, in handlers' runs neither.
func TestGoroutinesTakeTurns(t *testing.T) {
	img := int3Image()
	m := boot(t, img, &Options{CPUs: 2})
	m.SetTraps(&trapFuncs{OnInt3: func(r *x86.PtRegs) bool {
		got, err := m.Call("twice", r.DI)
		r.DI = got
		return err == nil
	}})
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range uint64(16) {
		wg.Go(func() {
			for k := range uint64(50) {
				mu.Lock()
				got, err := m.Call("probed", i+k)
				mu.Unlock()
				if err != nil || got != 2*(i+k+1)+1 {
					t.Errorf("%d, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

// A goroutine that uses a machine while another one's call runs is refused: the
// engine would run on two threads at once. The call goes on.
func TestGoroutinesThatDoNotTakeTurns(t *testing.T) {
	img := int3Image()
	spin := img.Add("spin", 0xeb, 0xfe)
	budget := uint64(1 << 30)
	if engine.name == "interp" {
		budget = 1 << 26
	}
	m := boot(t, img, &Options{Budget: budget})
	inside, on := make(chan bool), make(chan bool)
	var once sync.Once
	m.SetTraps(&trapFuncs{OnInt3: func(r *x86.PtRegs) bool {
		once.Do(func() { inside <- true; <-on })
		_, err := m.Call("twice", r.DI) // the handler's own run is no other goroutine's
		return err == nil
	}})
	var wg sync.WaitGroup
	wg.Go(func() {
		got, err := m.Call("probed", 1)
		if err != nil || got != 3 {
			t.Errorf("the call: %d, %v", got, err)
		}
	})
	<-inside
	refused := func() {
		_, err := m.CallAddr(spin)
		require.ErrorIs(t, err, ErrShared)
		require.ErrorIs(t, m.Run(), ErrShared)
		require.ErrorIs(t, m.PokeText(spin, []byte{0xc3}), ErrShared)
		require.ErrorIs(t, m.Close(), ErrInUse)
	}
	if engine.name == "unicorn" { // in Go, nothing tells whose call a handler's is
		refused()
	}
	on <- true
	wg.Wait()
	got, err := m.Call("probed", 1)
	require.NoError(t, err)
	require.Equal(t, uint64(3), got)

	// Nor while guest code runs outside any handler.
	var done atomic.Bool
	wg.Go(func() {
		_, err := m.CallAddr(spin)
		if !errors.Is(err, ErrBudget) {
			t.Errorf("the loop: %v", err)
		}
		done.Store(true)
	})
	for !m.Taken() && !done.Load() {
	}
	if !done.Load() {
		_, err := m.CallAddr(spin)
		if !done.Load() {
			require.ErrorIs(t, err, ErrShared)
		}
	}
	wg.Wait()
}
