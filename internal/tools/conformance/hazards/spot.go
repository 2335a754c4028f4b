package hazards

import (
	"bytes"
	"regexp"
)

// spotter reads what a kernel says, and finds the first oops in it.
type spotter struct {
	line []byte
	// head is the outcome that the last report's heading means; the RIP lines that follow
	// belong to it. "" before the first heading.
	head  Outcome
	found chan spotted
}

// spotted is an oops, or what the kernel calls a lockup, and where.
type spotted struct {
	outcome Outcome
	where   string
}

var (
	lockup  = regexp.MustCompile(`soft lockup|hard LOCKUP|rcu.*stall`)
	warning = regexp.MustCompile(`WARNING:`)
	oops    = regexp.MustCompile(`BUG:|Oops|kernel BUG|general protection|invalid opcode|int3:|divide error|stack segment|double fault|Kernel panic|stack-protector`)
	rip     = regexp.MustCompile(`RIP: 0010:(\S+?)(?:/0x\S+)?\s`)
)

// Write takes the next part of it.
func (s *spotter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		line, rest, ok := bytes.Cut(p, []byte("\n"))
		s.line = append(s.line, line...)
		if !ok {
			return n, nil
		}
		s.read(append(s.line, '\n'))
		s.line, p = s.line[:0], rest
	}
}

func (s *spotter) read(line []byte) {
	switch m := rip.FindSubmatch(line); {
	case m != nil && s.head != "" && s.head != Complained:
		select {
		case s.found <- spotted{s.head, string(m[1])}:
		default:
		}
	case m != nil:
	case lockup.Match(line):
		s.head = Hung
	case warning.Match(line):
		s.head = Complained
	case oops.Match(line):
		s.head = Oopsed
	}
}
