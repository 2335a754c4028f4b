package main

import (
	"context"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v3"
	xterm "golang.org/x/term"

	"kprobelab/internal/colour"
	"kprobelab/internal/printable"
)

// term is the program's standard output and standard error, and the progress bar on it.
type term struct {
	out, err io.Writer
	// bar draws on bare. All other output to err passes printable.Writer.
	bare io.Writer
	// rawOut and rawErr get what a program writes, as it is where they are no terminals or --raw says so.
	rawOut, rawErr io.Writer
	// rawFile is the file of -o, which a script's output goes to; nil for none.
	rawFile            io.Writer
	outStyle, errStyle colour.Style
	// written is standard output, writtenErr standard error: all that is written there passes them, but for the bar.
	written, writtenErr *latch
	// ends ends the command by its context; nil if the process is ended instead.
	ends context.CancelCauseFunc
	// exit ends the process.
	exit func(code int)
	// ended is whether the command has ended by itself.
	ended *atomic.Bool
	// errIsTerminal is whether progress is shown.
	errIsTerminal bool

	// compared are the images that --decoder both has read.
	compared []*compared

	// bar is the bar of stage, which began at since; drawn says whether the bar was ever shown.
	bar   *progressbar.ProgressBar
	drawn bool
	stage string
	since time.Time
}

func newTerm(stdout, stderr io.Writer) *term {
	written, writtenErr := &latch{w: stdout}, &latch{w: stderr}
	t := &term{
		out: &printable.Writer{W: written, Colour: coloured(stdout)}, outStyle: colour.Style(coloured(stdout)),
		err: &printable.Writer{W: writtenErr, Colour: coloured(stderr)}, errStyle: colour.Style(coloured(stderr)),
		bare: stderr, written: written, writtenErr: writtenErr, rawOut: written, rawErr: writtenErr,
		errIsTerminal: isTerminal(stderr), exit: os.Exit, ended: &atomic.Bool{},
	}
	if isTerminal(stdout) {
		t.rawOut = &printable.Writer{W: written} // colours are the command's own
	}
	if isTerminal(stderr) {
		t.rawErr = &printable.Writer{W: writtenErr}
	}
	return t
}

// rawFlag lets what programs write reach a terminal as it is.
func rawFlag(t *term) cli.Flag {
	return &cli.BoolFlag{Name: "raw", Usage: "print what programs write as it is on a terminal, too; control characters are shown as \\u001b there else",
		Action: func(_ context.Context, _ *cli.Command, raw bool) error {
			if raw {
				t.rawOut, t.rawErr = t.written, t.writtenErr
			}
			return nil
		}}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && xterm.IsTerminal(int(f.Fd()))
}

// coloured follows no-color.org and leaves dumb terminals alone.
func coloured(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// quiet is the time that a stage has to last before its progress is shown.
const quiet = time.Second

// redraw is the least time between two drawings of a bar.
const redraw = 65 * time.Millisecond

// progress shows how many bytes of a stage are done, once it has taken a while; total
// is 0 where it is not known. It writes to a terminal only.
func (t *term) progress(stage string, done, total int64) { t.count(stage, "bytes", done, total) }

// count is progress for other units than bytes: points, kernels.
func (t *term) count(stage, unit string, done, total int64) {
	if !t.errIsTerminal {
		return
	}
	if stage != t.stage {
		t.progressDone()
		t.stage, t.since = stage, time.Now()
		t.bar = t.newBar(unit, total)
	}
	_ = t.bar.Set64(done)
}

// newBar makes a bar that counts from now on, so that its speed is right when it is shown.
func (t *term) newBar(unit string, total int64) *progressbar.ProgressBar {
	if total == 0 {
		total = -1
	}
	speed := progressbar.OptionShowBytes(true)
	if unit != "bytes" {
		speed = func(b *progressbar.ProgressBar) {
			progressbar.OptionShowIts()(b)
			progressbar.OptionSetItsString(unit)(b)
		}
	}
	return progressbar.NewOptions64(total, progressbar.OptionSetWriter((*afterQuiet)(t)),
		progressbar.OptionSetDescription(t.stage), speed,
		progressbar.OptionClearOnFinish(),
		progressbar.OptionThrottle(redraw),
		// The default would start a goroutine that does not end with the bar.
		progressbar.OptionSetSpinnerChangeInterval(0))
}

// afterQuiet is the writer of a bar. It discards what the bar writes until the bar's stage has lasted for quiet.
type afterQuiet term

func (t *afterQuiet) Write(b []byte) (int, error) {
	if t.drawn = t.drawn || time.Since(t.since) >= quiet; !t.drawn {
		return len(b), nil
	}
	return t.bare.Write(b)
}

// progressDone takes the bar away, so that what is printed next stands alone.
func (t *term) progressDone() {
	if t.drawn {
		_ = t.bar.Clear()
	}
	t.bar, t.drawn = nil, false
	t.stage = ""
}

// indent moves every line in by two spaces.
func indent(text string) string {
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}
