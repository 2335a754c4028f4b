package tracing

import (
	"errors"
	"fmt"
	"strings"

	"kprobelab/internal/tracing/definition"
	"kprobelab/internal/tracing/filter"
)

// errorLog is the file error_log: the last refusals, oldest first (docs/spec 9.8).
type errorLog struct{ entries []string }

// maxErrors is the number of refusals that are kept (TRACING_LOG_ERRS_MAX).
const maxErrors = 8

const commandPrefix = "  Command: "

// logError appends the kernel's message about a refusal, if it has one. who is the part of the
// kernel that refuses.
func (t *Tracing) logError(l *errorLog, who string, err error) {
	var e *definition.Error
	var f *filter.Error
	switch {
	case errors.As(err, &e) && e.ID != definition.NotLogged:
		if e.Earlier != nil {
			t.logError(l, who, e.Earlier)
		}
		l.add(t, who+": error", e.ID.Text(t.c), e.Command(), e.Column)
	case errors.As(err, &f) && f.Msg == "":
		l.add(t, who+": error", filter.NoDetail, f.Text, 0)
	case errors.As(err, &f):
		l.add(t, who+": error", f.Msg, f.Text, f.Pos)
	}
}

// add appends an entry: where it comes from, the message, the command, and
// the caret's column in it.
func (l *errorLog) add(t *Tracing, who, msg, command string, column int) {
	if !t.c.ErrorLog {
		return
	}
	command = "\n" + commandPrefix + command + "\n"
	if most := t.c.ErrorCommandMax; most > 0 {
		command = command[:min(len(command), most-1)]
		column &= 0xff
	}
	now := t.m.Now()
	l.entries = append(l.entries, fmt.Sprintf("[%5d.%06d] %s: %s%s%s^\n", now/1e9, now%1e9/1e3,
		who, msg, command, strings.Repeat(" ", len(commandPrefix)+column)))
	if len(l.entries) > maxErrors {
		l.entries = l.entries[1:]
	}
}

func (l *errorLog) String() string { return strings.Join(l.entries, "") }

func (l *errorLog) clear() { l.entries = nil }
