package machine

import (
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A guest that writes to more memory than the bound ends with an error, in the same run. A guest
// that stays below the bound does not, however often the memory is checked.
func TestAGuestThatWritesAllItsMemory(t *testing.T) {
	const most = 1000
	for name, c := range map[string]struct {
		has  func(look int64) int64 // the process's memory at each check; the first check is at the first run
		ends bool
	}{
		"at_once":       {func(n int64) int64 { return 50 + n*10*most }, true},
		"slowly":        {func(n int64) int64 { return 50 + n*100 }, true},
		"one_too_many":  {func(n int64) int64 { return 50 + min(n, 1)*(most+1) }, true},
		"just_as_much":  {func(n int64) int64 { return 50 + min(n, 1)*most }, false},
		"gives_it_back": {func(n int64) int64 { return 50 + n%3*400 }, false},
		"not_told":      {func(int64) int64 { return 0 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := &Machine{}
			var looks atomic.Int64
			ended, looked := make(chan struct{}, 1), make(chan struct{})
			stop := m.watchOwned(func() int64 {
				n := looks.Add(1) - 1
				if n == 30 {
					close(looked)
				}
				return c.has(n)
			}, time.Microsecond, most, func() { ended <- struct{}{} })
			if c.ends {
				<-ended
				require.True(t, m.wroteTooMuch.Load())
			} else if name != "not_told" {
				<-looked
				require.False(t, m.wroteTooMuch.Load())
			}
			stop()
			// The next run begins anew, with the memory that the first had.
			stop = m.watchOwned(func() int64 { return 50 }, time.Hour, most, func() {})
			require.False(t, m.wroteTooMuch.Load())
			stop()
		})
	}
}

// Memory that is written becomes the process's own. What others give back meanwhile is less by as much.
func TestWrittenMemoryIsOwned(t *testing.T) {
	if owned() == 0 {
		t.Skip("this system does not tell what memory a process has")
	}
	for range 10 {
		debug.FreeOSMemory()
		before := owned()
		b := make([]byte, 64<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		grown := owned() - before
		require.NotZero(t, b[4096])
		if grown > 32<<20 {
			return
		}
	}
	t.Fatal("64 MiB were written ten times, and the process's own memory has not grown by half of that")
}
