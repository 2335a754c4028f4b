package terminal

import (
	"bytes"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// quiet is the time that a stage has to last before its progress is shown.
const quiet = time.Second

// redraw is the least time between two drawings of a bar.
const redraw = 65 * time.Millisecond

// Progress shows how many bytes of a stage are done, once it has taken a while; total
// is 0 where it is not known. It writes to a terminal only.
func (t *Term) Progress(stage string, done, total int64) { t.Count(stage, "bytes", done, total) }

// Count is Progress for other units than bytes: points, kernels.
func (t *Term) Count(stage, unit string, done, total int64) {
	if !t.ErrIsTerminal {
		return
	}
	if stage != t.stage {
		t.ProgressDone()
		t.stage, t.since = stage, time.Now()
		t.bar = t.newBar(unit, total)
	}
	_ = t.bar.Set64(done)
}

// Counter returns Count for one stage.
func (t *Term) Counter(stage, unit string) func(done, total int64) {
	return func(done, total int64) { t.Count(stage, unit, done, total) }
}

// newBar makes a bar that counts from now on, so that its speed is right when it is shown.
func (t *Term) newBar(unit string, total int64) *progressbar.ProgressBar {
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
type afterQuiet Term

func (t *afterQuiet) Write(b []byte) (int, error) {
	if t.drawn = t.drawn || time.Since(t.since) >= quiet; !t.drawn {
		return len(b), nil
	}
	return t.bare.Write(b)
}

// ProgressDone takes the bar away, so that what is printed next stands alone.
func (t *Term) ProgressDone() {
	if t.drawn {
		_ = t.bar.Clear()
	}
	t.bar, t.drawn = nil, false
	t.stage = ""
}

// Lines is a writer that shows as progress how many lines were written to it, until End. It may be used by several
// goroutines.
type Lines struct {
	// Stage is the progress's name.
	Stage string
	T     *Term

	mu    sync.Mutex
	lines int64
	over  bool
}

// Write implements io.Writer.
func (l *Lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.lines += int64(bytes.Count(text, []byte("\n")))
		l.T.Count(l.Stage, "lines", l.lines, 0)
	}
	return len(text), nil
}

// End takes the progress away; lines that are written later are not shown.
func (l *Lines) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.over = true
		l.T.ProgressDone()
	}
}
