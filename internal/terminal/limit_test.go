package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// limited returns a terminal whose exit codes come over a channel: 7 for a limit.
func limited(out, err io.Writer) (*Term, chan int) {
	t, exits := New(out, err), make(chan int, 2)
	t.Exit = func(code int) { exits <- code }
	t.Report = func(err error) int {
		t.Sayf("%v", err)
		if l := (*LimitError)(nil); errors.As(err, &l) {
			return 7
		}
		return 1
	}
	return t, exits
}

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
	var out, errs strings.Builder
	term, exits := limited(&out, &errs)
	term.Limit(0, 20)
	_, _ = term.Out.Write([]byte("\x00\x1b\x07\x01"))
	require.Equal(t, `\u0000\u001b\u0007\u`, out.String(), "a control character counts as it is shown")
	require.Len(t, exits, 1)
	require.Equal(t, 7, <-exits)
	require.Contains(t, errs.String(), "the output has reached --max-output 20")
}

// Its time ends a command, not the process that has run it before.
func TestTimeOfACommandThatHasEnded(t *testing.T) {
	tm, exits := limited(io.Discard, io.Discard)
	tm.Limit(time.Nanosecond, 0)
	require.Equal(t, 7, <-exits)
	require.NoError(t, tm.Ended())
	tm.Limit(time.Nanosecond, 0)
	passed := make(chan bool)
	time.AfterFunc(time.Millisecond, func() { close(passed) }) // timers fire in order
	<-passed
	require.Empty(t, exits)
}

// A command that ends with its context gets the limit as the cause, and the process goes on.
func TestALimitEndsTheContextFirst(t *testing.T) {
	tm, exits := limited(io.Discard, io.Discard)
	ctx, cancel := context.WithCancelCause(context.Background())
	tm.EndBy(cancel)
	tm.Limit(0, 3)
	_, err := tm.Out.Write([]byte("four"))
	require.Error(t, err)
	<-ctx.Done()
	require.EqualError(t, context.Cause(ctx), "the output has reached --max-output 3, and the command had not ended")
	require.Empty(t, exits)
	require.NoError(t, tm.Ended())
}

// The bytes that were said before a command began do not count.
func TestBytesBeforeTheCommandDoNotCount(t *testing.T) {
	var errs strings.Builder
	tm, exits := limited(io.Discard, &errs)
	tm.Sayf("this command line is old")
	tm.Uncount()
	tm.Limit(0, 10)
	tm.Sayf("123456789")
	require.Empty(t, exits)
	require.EqualValues(t, 10, tm.Written())
}

// full is an output without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// Tables do not look at errors of writing: the first one comes at the end.
func TestTheFirstErrorOfOutputIsKept(t *testing.T) {
	tm := New(full{}, io.Discard)
	_, _ = tm.Out.Write([]byte("a"))
	_, _ = tm.Out.Write([]byte("b"))
	require.EqualError(t, tm.Ended(), "no space left on device")
}

// The output of a script goes into its file as it is, within the limit of standard output.
func TestOutputToAFile(t *testing.T) {
	var out strings.Builder
	tm, exits := limited(&out, io.Discard)
	tm.Limit(0, 5)
	same, closed, err := tm.ToFile("")
	require.NoError(t, err)
	require.Same(t, tm, same)
	require.Equal(t, tm.RawOut, same.Bytes())
	require.NoError(t, closed())

	name := filepath.Join(t.TempDir(), "out")
	to, closed, err := tm.ToFile(name)
	require.NoError(t, err)
	_, _ = to.Bytes().Write([]byte("\x1b[1"))
	_, _ = to.Out.Write([]byte("mxyz"))
	require.Len(t, exits, 1)
	require.Equal(t, 7, <-exits)
	require.NoError(t, closed())
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "\x1b[1mx", string(b))
	require.Empty(t, out.String())
	_, _, err = tm.ToFile(filepath.Join(name, "x"))
	require.Error(t, err)
}

// A long line of an error loses its middle, and no character is cut.
func TestLongLinesOfErrors(t *testing.T) {
	text := ErrorText(errors.New("short\n"+strings.Repeat("é", 100_000)), nil)
	require.True(t, strings.HasPrefix(text, "short\né"))
	require.Contains(t, text, " bytes … é")
	require.Less(t, len(text), bounded.ErrorLine+100)
	require.Equal(t, "  a\n  b", Indent("a\nb"))
}
