package boot

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"kprobelab/internal/qemu"
)

// Error says why a kernel did not boot, or ended before its work was done.
type Error struct {
	// Why is one sentence.
	Why string
	// Console is the end of the output of the kernel, or of QEMU.
	Console []string
	err     error
}

// Error implements error.
func (e *Error) Error() string { return e.Why }

// Unwrap returns the error of QEMU, or of the connection to it.
func (e *Error) Unwrap() error { return e.err }

// consoleLines is the number of lines of the console that an error shows.
const consoleLines = 12

// ErrCPU is the error of a machine whose processor QEMU does not know.
var ErrCPU = errors.New("QEMU does not know the processor")

// panicLine is the beginning of a kernel's last message.
const panicLine = "Kernel panic - not syncing: "

// explain finds the reason in the end of the machine. An error of follow that is no broken
// connection is the reason itself.
func explain(e *qemu.Ended, o *Options, arrived bool, follows error) error {
	lines := strings.Split(strings.TrimSpace(e.Console), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], "\r")
	}
	last := lines[len(lines)-1]
	why := &Error{err: e.Err}
	if last != "" {
		why.Console = lines[max(0, len(lines)-consoleLines):]
	}
	panicked := ""
	for _, line := range lines {
		if _, text, ok := strings.Cut(line, panicLine); ok {
			panicked = text
		}
	}
	switch {
	case errors.Is(e.Cause, context.DeadlineExceeded) && arrived:
		why.Why = "the kernel has booted, but what it was to do is not done after " + o.Limit.String()
	case errors.Is(e.Cause, context.DeadlineExceeded):
		why.Why = "the kernel has not come to its init after " + o.Limit.String() + "; --timeout is the limit, -v shows its console"
	case e.Cause != nil:
		why.Why, why.Console, why.err = "interrupted", nil, e.Cause
	case panicked != "":
		why.Why = "the kernel panicked: " + panicked
	case follows != nil && !broken(follows):
		return follows
	case strings.HasPrefix(last, "qemu-system"):
		_, text, _ := strings.Cut(last, ": ")
		why.Why, why.Console = "QEMU does not start the machine: "+text, nil
		if strings.Contains(text, "CPU model") || strings.Contains(text, "-cpu.") { // a model, or a property of one
			why.err = ErrCPU
		}
	case !broken(e.Err):
		why.Why = "the kernel did not come to its init: " + e.Err.Error()
	case arrived:
		why.Why = "the machine has reset itself, or QEMU has ended"
	default:
		why.Why = "the machine ended before the kernel came to its init: no memory for it (--memory), another CPU needed (--cpu), or a damaged image"
	}
	return why
}

// broken reports whether an error comes from a connection to a QEMU that has ended.
func broken(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, qemu.ErrGone) || errors.As(err, &op)
}
