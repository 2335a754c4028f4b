package main

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"kprobelab/internal/explore"
)

// An exploration says nothing for two seconds, then its bounds, and less and less often how far it is.
func TestExploringSaysHowFarItIs(t *testing.T) {
	var said bytes.Buffer
	e := newExploring(newTerm(io.Discard, &said), 5000)
	begin := time.Unix(0, 0)
	e.since = begin
	at := func(seconds int, runs int) string {
		said.Reset()
		e.now = func() time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
		e.progress(explore.Counts{Runs: runs, States: 2 * runs})
		return said.String()
	}
	assert.Empty(t, at(1, 50))
	assert.Equal(t, "explore: it is not known how many runs there are; it ends after 5000 runs or 8000000 states at most (--max-runs, --bound), and Ctrl-C ends it with what was found\n"+
		"explore: 100 runs, 200 states after 2s\n", at(2, 100))
	assert.Empty(t, at(3, 150))
	assert.Equal(t, "explore: 200 runs, 400 states after 4s\n", at(4, 200))
	assert.Empty(t, at(7, 250))
	assert.Equal(t, "explore: 300 runs, 600 states after 9s\n", at(9, 300))
	// The next scenario of --all has its own time; the bounds are not said again.
	e.of("four-hits")
	begin = time.Unix(9, 0)
	assert.Empty(t, at(1, 50))
	assert.Equal(t, "explore four-hits: 100 runs, 200 states after 2s\n", at(2, 100))
}
