package conformance

// stops finds what stops a machine when it is enabled: a kernel takes probes that
// it does not survive. The machine boots again without the last one that it
// enabled. Stops it again soon, one before was the cause, and more are left
// off, twice as many each time.
type stops struct {
	// left are the names of what is not enabled, in no order.
	left         []string
	last, window int
	// unheard counts the boots that ended before init ran.
	unheard int
}

// mostUnheard bounds unheard. On a busy host a kernel's test of its timer sometimes fails, and the kernel stops.
const mostUnheard = 3

// early reports whether a machine that ended is to boot again as it is: init did not run, and that is not
// its way.
func (s *stops) early(ran bool) bool {
	if !ran {
		s.unheard++
	}
	return !ran && s.unheard <= mostUnheard
}

// near is a number of probes. A stop at most near probes after the place of the last stop has the same cause.
const near = 8

// stopped leaves some off, after the machine said that it enables these, one after
// another, and stopped. It returns false where there is none to blame.
func (s *stops) stopped(enabled []string) bool {
	if len(enabled) == 0 {
		return false
	}
	if s.window == 0 || len(enabled) > s.last+near {
		s.window = 1
	} else {
		s.window *= 2
	}
	s.last = len(enabled)
	s.left = append(s.left, enabled[max(0, len(enabled)-s.window):]...)
	return true
}
