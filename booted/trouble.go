package booted

import (
	"errors"
	"fmt"
	"regexp"

	"kprobelab/internal/printk"
	"kprobelab/machine"
)

// PanicError is the end of a kernel that panicked. It wraps machine.ErrPanicked.
type PanicError struct {
	// Log holds the lines that the kernel logged since the run began.
	Log []string
	Err error
}

// Error is one line.
func (e *PanicError) Error() string { return e.Err.Error() }

// Unwrap is the machine's error.
func (e *PanicError) Unwrap() error { return e.Err }

// since is the place in a kernel's log from which on it is new.
type since struct {
	log *printk.Log
	seq uint64
}

// logged is the end of the log now.
func (k *Kernel) logged() since {
	l, err := printk.Of(k.image, k.machine.ReadMem)
	if err != nil {
		return since{}
	}
	list, err := l.Since(0)
	if err != nil {
		return since{}
	}
	s := since{log: l}
	if len(list) > 0 {
		s.seq = list[len(list)-1].Seq + 1
	}
	return s
}

// lines are the messages since then, as far as they can be read.
func (s since) lines() (list []string) {
	if s.log == nil {
		return nil
	}
	records, _ := s.log.Since(s.seq) // what cannot be read is left out
	for _, r := range records {
		list = append(list, r.String())
	}
	return list
}

// troubles begin what a kernel logs of its own faults (lib/bug.c, arch/x86/kernel/dumpstack.c, kernel/panic.c, mm/oom_kill.c).
var troubles = regexp.MustCompile(`\] (------------\[ cut here|BUG: |kernel BUG at |Oops: |WARNING: |INFO: task |general protection fault|Kernel panic|watchdog: BUG|rcu: INFO|Out of memory)`)

// trouble are the messages from the first of a fault on.
func (s since) trouble() []string {
	list := s.lines()
	for i, line := range list {
		if troubles.MatchString(line) {
			return list[i:]
		}
	}
	return nil
}

// panicOf makes the error of a kernel that panicked one with its log.
func panicOf(err error, s since) error {
	if errors.Is(err, machine.ErrPanicked) {
		err = &PanicError{s.lines(), fmt.Errorf("%w", err)}
	}
	return err
}

// oopses begin what a kernel logs when its own code failed, not only warned.
var oopses = regexp.MustCompile(`\] (BUG: .*|Oops: .*|general protection fault.*|kernel BUG at .*|Kernel panic.*)`)

// Oops is the first line of a log's trouble that says that the kernel's own code failed; "" without one.
func Oops(trouble []string) string {
	for _, line := range trouble {
		if m := oopses.FindStringSubmatch(line); m != nil {
			return m[1]
		}
	}
	return ""
}
