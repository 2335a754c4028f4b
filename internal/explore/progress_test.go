package explore

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// An exploration says nothing for two seconds, then its bounds, and less and less often how far it is.
func TestExploringSaysHowFarItIs(t *testing.T) {
	var said strings.Builder
	begin := time.Unix(0, 0)
	now := begin
	e := &Progress{MaxRuns: 5000, Say: func(line string) { said.WriteString(line + "\n") }, now: func() time.Time { return now }}
	e.Begin("")
	at := func(seconds int, runs int) string {
		said.Reset()
		now = begin.Add(time.Duration(seconds) * time.Second)
		e.Show(Counts{Runs: runs, States: 2 * runs})
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
	e.Begin("four-hits")
	begin = now
	assert.Empty(t, at(1, 50))
	assert.Equal(t, "explore four-hits: 100 runs, 200 states after 2s\n", at(2, 100))
	// A bar is drawn each time.
	runs := []int(nil)
	e.Bar = func(what string, n int) { assert.Equal(t, "explore four-hits", what); runs = append(runs, n) }
	assert.Empty(t, at(3, 150)+at(9, 200))
	assert.Equal(t, []int{150, 200}, runs)
}
