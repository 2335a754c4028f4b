package bpftrace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kprobelab/internal/script/host"
)

// watched is the memory of a watchpoint: ADDR:LEN:MODE, or FUNC+argN:LEN:MODE. With FUNC the
// address is argument N at a call of a program's function.
type watched struct {
	function string
	arg      uint64
	addr     uint64
	size     uint64
	mode     string
}

// readWatch reads the three parts of a watchpoint. It returns the message for a mistake, "" for none.
func (pt *point) readWatch(parts []string) string {
	w := &watched{mode: parts[2]}
	pt.watched = w
	place := strings.Split(parts[0], "+")
	if len(place) != 2 || place[0] == "" {
		n, err := unsigned(parts[0])
		switch {
		case len(place) > 1:
			return "Invalid function/address argument"
		case err != "":
			return err + "\nInvalid function/address argument"
		}
		w.addr = n
	} else {
		number, ok := strings.CutPrefix(place[1], "arg")
		if !ok || number == "" {
			return "Invalid function argument"
		}
		n, err := unsigned(number)
		if err != "" {
			return err + "\nInvalid function argument"
		}
		w.function, w.arg = place[0], n
	}
	n, err := unsigned(parts[1])
	if err != "" {
		return err + "\nInvalid length argument"
	}
	w.size = n
	return ""
}

// unsigned reads a number as C++'s stoull does, of any base and with a sign.
func unsigned(text string) (v uint64, err string) {
	digits, negative := strings.CutPrefix(text, "-")
	if !negative {
		digits = strings.TrimPrefix(digits, "+")
	}
	end := 0
	for end < len(digits) && isDigit(digits, end) {
		end++
	}
	v, e := strconv.ParseUint(digits[:end], 0, 64)
	switch {
	case e != nil:
		return 0, "stoull"
	case end < len(digits):
		return 0, "Found trailing non-numeric characters"
	case negative:
		v = -v
	}
	return v, ""
}

// isDigit reports whether a number goes on at a place.
func isDigit(s string, at int) bool {
	hex := len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'x'
	c := s[at] | 0x20
	switch {
	case hex && at == 1:
		return true
	case hex:
		return s[at] >= '0' && s[at] <= '9' || c >= 'a' && c <= 'f'
	case len(s) > 1 && s[0] == '0':
		return s[at] >= '0' && s[at] <= '7'
	}
	return s[at] >= '0' && s[at] <= '9'
}

// maxArgument is the last argument that a function has in a register.
const maxArgument = 5

// checkWatch reports the mistakes in a watchpoint after readWatch. The processor limits the accesses: it has no
// watchpoint for reads alone, and none for execution together with others.
func (c *checker) checkWatch(pt *point) {
	bad := func(format string, a ...any) { c.error(pt.at, format, a...) }
	w := pt.watched
	switch {
	case pt.provider == "asyncwatchpoint" && w.function == "":
		bad("asyncwatchpoint requires a function name")
	case w.function == "" && w.addr == 0:
		bad("watchpoint must be attached to a non-zero address")
	}
	if w.function != "" {
		if !c.o.Command {
			bad("-p PID or -c CMD required for watchpoint")
		}
		if w.arg > maxArgument {
			bad("x86_64 doesn't support arg%d", w.arg)
		}
	}
	if w.size != 1 && w.size != 2 && w.size != 4 && w.size != 8 {
		bad("watchpoint length must be one of (1,2,4,8)")
	}
	modes := []byte(w.mode)
	slices.Sort(modes)
	w.mode = string(modes)
	if w.mode == "" || strings.Trim(w.mode, "rwx") != "" {
		bad("watchpoint mode must be combination of (r,w,x)")
	}
	if len(slices.Compact(modes)) != len(w.mode) {
		bad("watchpoint modes may not be duplicated")
	}
	if slices.Contains([]string{"r", "rx", "wx", "rwx"}, w.mode) {
		bad("invalid watchpoint mode: %s", w.mode)
	}
	if w.function != "" && c.o.Command {
		bad("%s: a program's functions are not probed here; give an address", pt.provider)
	}
}

// watch is a watchpoint's probe. With -c it is of that process, as bpftrace asks the kernel for it.
func (c *checker) watch(pt *point) *host.Probe {
	w, program := pt.watched, ""
	if c.o.Program != "" {
		program = c.o.Program + ":"
	}
	return &host.Probe{
		Kind: host.Data, Point: fmt.Sprintf("%s:%s%d:%d:%s", pt.provider, program, w.addr, w.size, w.mode),
		Watched: &host.Watched{Addr: w.addr, Len: uint32(w.size), Reads: w.mode == "rw", Executes: w.mode == "x", Target: c.o.Command},
	}
}
