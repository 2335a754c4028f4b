package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
	xterm "golang.org/x/term"

	"kprobelab/internal/colour"
	"kprobelab/internal/printable"
)

// Term is a program's standard output and standard error, and the progress bar on it.
type Term struct {
	Out, Err           io.Writer
	OutStyle, ErrStyle colour.Style
	// RawOut and RawErr get what a guest's program writes, as it is if they are no terminals or after Raw.
	RawOut, RawErr io.Writer
	// ErrIsTerminal is whether progress is shown.
	OutIsTerminal, ErrIsTerminal bool
	// Report prints an error and returns the exit code; Exit ends the process. Limits call both.
	Report func(error) int
	Exit   func(code int)

	// bare is standard error for the bar. All other output to Err passes printable.Writer.
	bare io.Writer
	// file takes the place of Out and RawOut for a script's output; nil for none.
	file io.Writer
	// written is standard output, writtenErr standard error: all that is written there passes them, but for the bar.
	written, writtenErr *latch
	// cancel ends the command by its context; nil if the process is ended instead.
	cancel context.CancelCauseFunc
	// ended is whether the command has ended by itself.
	ended *atomic.Bool

	// bar is the bar of stage, which began at since; drawn says whether the bar was ever shown.
	bar   *progressbar.ProgressBar
	drawn bool
	stage string
	since time.Time
}

// New returns the terminal of two outputs, which may be files. The caller sets Report before Limit is called.
func New(stdout, stderr io.Writer) *Term {
	written, writtenErr := &latch{w: stdout}, &latch{w: stderr}
	t := &Term{
		Out: &printable.Writer{W: written, Colour: coloured(stdout)}, OutStyle: colour.Style(coloured(stdout)),
		Err: &printable.Writer{W: writtenErr, Colour: coloured(stderr)}, ErrStyle: colour.Style(coloured(stderr)),
		bare: stderr, written: written, writtenErr: writtenErr, RawOut: written, RawErr: writtenErr,
		OutIsTerminal: isTerminal(stdout), ErrIsTerminal: isTerminal(stderr), Exit: os.Exit, ended: &atomic.Bool{},
	}
	if isTerminal(stdout) {
		t.RawOut = &printable.Writer{W: written} // colours are the command's own
	}
	if isTerminal(stderr) {
		t.RawErr = &printable.Writer{W: writtenErr}
	}
	return t
}

// Raw lets what programs write reach a terminal as it is.
func (t *Term) Raw() { t.RawOut, t.RawErr = t.written, t.writtenErr }

// Sayf tells what happens, beside the output.
func (t *Term) Sayf(format string, args ...any) { fmt.Fprintf(t.Err, format+"\n", args...) }

// Written returns the number of bytes that both outputs have got.
func (t *Term) Written() uint64 { return t.written.n + t.writtenErr.n }

// Uncount forgets what standard error has got: the limit of a command counts the command's own output only.
func (t *Term) Uncount() { t.writtenErr.n = 0 }

// Ended says that the command has ended by itself, and returns the first error of standard output.
func (t *Term) Ended() error {
	t.ended.Store(true)
	return t.written.err
}

// ToFile returns the terminal with a file in the place of its output, itself for "". closed closes the file and returns the
// first error of writing it.
func (t *Term) ToFile(name string) (to *Term, closed func() error, err error) {
	if name == "" {
		return t, func() error { return nil }, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, nil, err
	}
	w := &latch{w: f, most: t.written.most, over: t.written.over}
	out := *t
	out.Out, out.file = w, w
	return &out, func() error { return errors.Join(w.err, f.Close()) }, nil
}

// Bytes returns the output for bytes that are data, as a script's: the file of ToFile, or RawOut.
func (t *Term) Bytes() io.Writer {
	if t.file != nil {
		return t.file
	}
	return t.RawOut
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && xterm.IsTerminal(int(f.Fd()))
}

// coloured follows no-color.org and leaves dumb terminals alone.
func coloured(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
