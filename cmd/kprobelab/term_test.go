package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProgressWaitsAndClears(t *testing.T) {
	var b bytes.Buffer
	tm := newTerm(&b, &b)
	tm.errIsTerminal = true
	tm.progress("read", 1, 100)
	require.Empty(t, b.String(), "nothing in the first second")
	late := func() {
		tm.since = time.Now().Add(-2 * quiet)
		time.Sleep(2 * redraw)
	}
	late()
	tm.progress("read", 50, 100)
	require.Contains(t, b.String(), "read")
	tm.progress("decompress", 1, 0)
	require.NotContains(t, b.String(), "decompress", "a new stage waits again")
	late()
	tm.progress("decompress", 2, 0)
	require.Contains(t, b.String(), "decompress")
	tm.progressDone()
	require.Nil(t, tm.bar)
	require.Contains(t, b.String(), "B/s")

	b.Reset()
	tm.count("scan", "points", 1, 100)
	late()
	tm.count("scan", "points", 50, 100)
	require.Contains(t, b.String(), "points/s")
	require.NotContains(t, b.String(), "B/s")
	tm.progressDone()
}

func TestProgressNeedsATerminal(t *testing.T) {
	var b bytes.Buffer
	tm := newTerm(&b, &b)
	tm.progress("read", 1, 100)
	tm.since = time.Now().Add(-2 * quiet)
	tm.progress("read", 50, 100)
	require.Empty(t, b.String())
}
