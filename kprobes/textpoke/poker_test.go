package textpoke

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/x86"
)

// text is memory of 16 bytes from address 0 on, with a log of the operations on it.
type text struct {
	b   [16]byte
	log []string
	err error
}

func (t *text) NumCPU() int      { return 2 }
func (t *text) SyncCore(cpu int) { t.log = append(t.log, fmt.Sprintf("sync%d", cpu)) }
func (t *text) PokeTextNoSync(at x86.Addr, b []byte) error {
	t.log = append(t.log, fmt.Sprintf("%d:%x", at, b))
	copy(t.b[at:], b)
	return t.err
}

func jump(at x86.Addr) Change {
	return Change{At: at, New: []byte{0xe9, 1, 2, 3, 4}, Landing: at + 100}
}

// Each protocol makes the steps of its table, and the log has them.
func TestProtocols(t *testing.T) {
	for name, c := range map[string]struct {
		steps Protocol
		want  string
	}{
		"optimize":        {Optimize, "0:cc sync0 sync1 1:01020304 sync0 sync1 0:e9 sync0 sync1"},
		"undo":            {Undo, "0:cc sync0 sync1 1:01020304 sync0 sync1"},
		"undo_announced":  {UndoAnnounced, "0:cc sync0 sync1 1:01020304 sync0 sync1"},
		"stopped":         {Stopped, "0:e901020304 sync0 sync1"},
		"arm":             {Arm, "0:e9 sync0 sync1"},
		"disarm":          {Disarm, "0:e9 sync0 sync1"},
		"nothing_is_done": {Protocol{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := &text{}
			p := New(m)
			require.NoError(t, p.Start(c.steps, jump(0)).All())
			require.Equal(t, c.want, strings.Join(m.log, " "))
			require.False(t, p.Busy())
		})
	}
}

// The int3 handler knows a change from the announcement to the withdrawal.
func TestLandingWhileAnnounced(t *testing.T) {
	m := &text{}
	p := New(m)
	r := p.Start(Optimize, jump(3))
	for !r.Done() {
		s, err := r.Step()
		require.NoError(t, err)
		c := p.Met(3)
		require.Equal(t, s != Withdraw, c != nil, s)
		require.True(t, c == nil || c.Landing == 103)
		require.Nil(t, p.Met(4))
	}
}

// missed are the changes of a batch that the search does not find.
func missed(p *Poker, list ...Change) (lost []x86.Addr) {
	r := p.Start(Batch, list...)
	_, _ = r.Step()
	for _, c := range list {
		if p.Met(c.At) == nil {
			lost = append(lost, c.At)
		}
	}
	return lost
}

func TestSearchNeedsAnOrder(t *testing.T) {
	p := New(&text{})
	for n := range 12 {
		var list []Change
		for i := range n {
			list = append(list, jump(x86.Addr(10*i)))
		}
		require.Empty(t, missed(&p, list...))
	}
	require.NotEmpty(t, missed(&p, jump(20), jump(10)))
}

func TestErrorOfAWriteIsKept(t *testing.T) {
	m := &text{err: errors.New("no")}
	p := New(m)
	require.ErrorIs(t, p.Start(Optimize, jump(0)).All(), m.err)
	require.False(t, p.Busy(), "the announcement is withdrawn all the same")
}
