package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
)

// TestOutputIsBounded: no more bytes than the bound are written, however they come, and they are counted as they are shown.
func TestOutputIsBounded(t *testing.T) {
	for _, pieces := range [][]string{{"0123456789abc"}, {"01234", "56789", "a"}, {"0123456789", "a"}, {"0", "", "123456789abc"}} {
		var b strings.Builder
		over := 0
		l := &latch{w: &b, most: 10}
		l.over = func() { over++ }
		for _, p := range pieces {
			_, _ = l.Write([]byte(p))
		}
		require.Equal(t, "0123456789", b.String(), pieces)
		require.Equal(t, 1, over, pieces)
		require.EqualValues(t, 10, l.n)
	}
	var out, err strings.Builder
	term := newTerm(&out, &err)
	codes := []int{}
	term.exit = func(code int) { codes = append(codes, code) }
	term.limit(0, 20)
	_, _ = term.out.Write([]byte("\x00\x1b\x07\x01"))
	require.Equal(t, `\u0000\u001b\u0007\u`, out.String(), "a control character counts as it is shown")
	require.Equal(t, []int{exitRefused}, codes)
	require.Contains(t, err.String(), "the output has reached --max-output 20")
}

// Each command that prints what a file or a script can make large has both flags.
func TestCommandsHaveLimits(t *testing.T) {
	app := newApp(newTerm(&strings.Builder{}, &strings.Builder{}))
	for _, name := range []string{"run", "stap", "bpftrace", "sample", "probe", "explore", "explain", "pack", "check", "scan", "info", "symbols", "hazards", "bench", "decode", "mount", "serve", "selfcheck", "boot", "kernels"} {
		c := app.Command(name)
		require.NotNil(t, c, name)
		flags := map[string]cli.Flag{}
		for _, f := range c.Flags {
			flags[f.Names()[0]] = f
		}
		require.Contains(t, flags, "timeout", name)
		require.Contains(t, flags, "max-output", name)
		if l, ok := limitsOf[name]; ok {
			require.Contains(t, []uint64{bounded.Output, bounded.Listing}, l.output, name)
		}
	}
}

// Its time ends a command, not the process that has run it before.
func TestTimeOfACommandThatHasEnded(t *testing.T) {
	tm := newTerm(io.Discard, io.Discard)
	exits := make(chan int, 2)
	tm.exit = func(code int) { exits <- code }
	tm.limit(time.Nanosecond, 0)
	require.Equal(t, exitRefused, <-exits)
	tm.ended.Store(true)
	tm.limit(time.Nanosecond, 0)
	passed := make(chan bool)
	time.AfterFunc(time.Millisecond, func() { close(passed) }) // timers fire in order
	<-passed
	require.Empty(t, exits)
}
