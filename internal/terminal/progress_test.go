package terminal

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProgressWaitsAndClears(t *testing.T) {
	var b bytes.Buffer
	tm := New(&b, &b)
	tm.ErrIsTerminal = true
	tm.Progress("read", 1, 100)
	require.Empty(t, b.String(), "nothing in the first second")
	late := func() {
		tm.since = time.Now().Add(-2 * quiet)
		time.Sleep(2 * redraw)
	}
	late()
	tm.Progress("read", 50, 100)
	require.Contains(t, b.String(), "read")
	tm.Progress("decompress", 1, 0)
	require.NotContains(t, b.String(), "decompress", "a new stage waits again")
	late()
	tm.Progress("decompress", 2, 0)
	require.Contains(t, b.String(), "decompress")
	tm.ProgressDone()
	require.Nil(t, tm.bar)
	require.Contains(t, b.String(), "B/s")

	b.Reset()
	tm.Count("scan", "points", 1, 100)
	late()
	tm.Count("scan", "points", 50, 100)
	require.Contains(t, b.String(), "points/s")
	require.NotContains(t, b.String(), "B/s")
	tm.ProgressDone()
}

func TestProgressNeedsATerminal(t *testing.T) {
	var b bytes.Buffer
	tm := New(&b, &b)
	tm.Progress("read", 1, 100)
	tm.since = time.Now().Add(-2 * quiet)
	tm.Progress("read", 50, 100)
	require.Empty(t, b.String())
}

// Lines of a console are counted until the machine has booted.
func TestLinesAreCounted(t *testing.T) {
	var b bytes.Buffer
	tm := New(&b, &b)
	tm.ErrIsTerminal = true
	l := &Lines{Stage: "boot", T: tm}
	for _, text := range []string{"one\ntw", "o\n", "three"} {
		n, err := l.Write([]byte(text))
		require.NoError(t, err)
		require.Equal(t, len(text), n)
	}
	require.EqualValues(t, 2, l.lines)
	require.Equal(t, "boot", tm.stage)
	l.End()
	require.Empty(t, tm.stage)
	_, _ = l.Write([]byte("late\n"))
	l.End()
	require.Empty(t, tm.stage)
	require.EqualValues(t, 2, l.lines)
}
