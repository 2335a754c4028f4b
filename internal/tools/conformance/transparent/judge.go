package transparent

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// In what a run differs from those without probes (testdata/init/transparent.c).
var differences = []string{"exit status", "output", "maps", "memory"}

func inWhat(bits uint64) string {
	var list []string
	for i, what := range differences {
		if bits&(1<<i) != 0 {
			list = append(list, what)
		}
	}
	return strings.Join(list, " and ")
}

// inMemory is the bit of memory.
const inMemory = 8

// answers holds the answers of a kernel.
type answers struct {
	status, words, masked, control uint64
	output                         string
	together, calls                run
	alone                          []run
	// of says what there was at all.
	of map[string]bool
}

// run is one with probes: offset 0 is all.
type run struct {
	offset    uint32
	hits      int64 // an errno below 0
	different uint64
}

func read(r io.Reader) (*answers, error) {
	a := &answers{of: map[string]bool{}}
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		f := strings.Fields(s.Text())
		want := map[string]int{"program": 5, "control": 2}[first(f)]
		if want == 0 {
			want = 3
		}
		if len(f) != want {
			return nil, fmt.Errorf("%q is no answer", s.Text())
		}
		if err := a.add(f); err != nil {
			return nil, fmt.Errorf("%q is no answer: %w", s.Text(), err)
		}
	}
	return a, s.Err()
}

func first(f []string) string {
	if len(f) == 0 {
		return ""
	}
	return f[0]
}

func (a *answers) add(f []string) (err error) {
	number := func(i int) (n int64) {
		if err == nil {
			n, err = strconv.ParseInt(f[i], 10, 64)
		}
		return n
	}
	switch f[0] {
	case "program":
		a.status, a.words, a.masked = uint64(number(1)), uint64(number(2)), uint64(number(3))
		var b []byte
		if err == nil {
			b, err = hex.DecodeString(f[4])
		}
		a.output = string(b)
	case "control":
		a.control = uint64(number(1))
	case "together":
		a.together = run{hits: number(1), different: uint64(number(2))}
	case "calls":
		a.calls = run{hits: number(1), different: uint64(number(2))}
	default:
		a.alone = append(a.alone, run{uint32(number(0)), number(1), uint64(number(2))})
		return err
	}
	a.of[f[0]] = true
	return err
}

// judge says what came of the runs, and fails where a probe made a difference or was not tried.
func (k *known) judge(r io.Reader, w io.Writer) error {
	a, err := read(r)
	if err != nil {
		return err
	}
	for _, what := range []string{"program", "control", "together", "calls"} {
		if !a.of[what] {
			return fmt.Errorf("the answers end before the line %q", what)
		}
	}
	if len(a.alone) != len(k.Places) {
		return fmt.Errorf("%d answers to %d places", len(a.alone), len(k.Places))
	}
	bad := 0
	wrong := func(format string, args ...any) {
		if bad++; bad <= 20 {
			fmt.Fprintf(w, format+"\n", args...)
		}
	}
	if a.status != uint64(k.Code)<<8 || a.output != k.Output {
		wrong("without probes: status %#x and output\n%s, where here it ends with %d and writes\n%s", a.status, a.output, k.Code, k.Output)
	}
	if a.control != inMemory {
		wrong("other random bytes make a difference in %q, not in memory alone", inWhat(a.control))
	}
	executed, both, total := 0, 0, int64(0)
	hits := map[uint32]int64{}
	for i, one := range a.alone {
		switch {
		case one.offset != k.Places[i]:
			return fmt.Errorf("an answer to %#x in place of %#x", one.offset, k.Places[i])
		case one.hits < 0:
			wrong("%#x: refused with errno %d", one.offset, -one.hits)
			continue
		case one.different == inMemory && slices.Contains(k.AsCalls, one.offset):
		case one.different != 0:
			wrong("%#x, alone, hit %d times: a difference in %s", one.offset, one.hits, inWhat(one.different))
		}
		hits[one.offset] = one.hits
		if !slices.Contains(k.AsCalls, one.offset) {
			total += one.hits
		}
		if one.hits > 0 {
			executed++
			if k.Hits[i] > 0 {
				both++
			}
		}
	}
	if executed == 0 {
		wrong("no probe was hit")
	}
	if a.together.different != 0 {
		wrong("all at once: a difference in %s", inWhat(a.together.different))
	}
	if a.calls.different&^inMemory != 0 {
		wrong("all nops that become calls: a difference in %s", inWhat(a.calls.different))
	}
	// A syscall that is stepped takes the next instruction with it.
	taken := int64(0)
	for _, at := range k.SyscallBefore {
		taken += min(hits[at], hits[at-2])
	}
	if want := total - taken; a.together.hits < want || a.together.hits > want && k.NotAlone == 0 {
		wrong("all at once: %d hits, not %d", a.together.hits, want)
	}
	fmt.Fprintf(w, "memory: %d words, of which %d are masked\n", a.words, a.masked)
	fmt.Fprintf(w, "%d places one at a time, %d of them executed (%d also here) with %d hits; %d places all at once with %d hits\n",
		len(a.alone), executed, both, total, len(a.alone)+k.NotAlone-len(k.AsCalls), a.together.hits)
	if n := len(k.AsCalls); n > 0 {
		fmt.Fprintf(w, "%d nops that become calls, of which memory is not judged; all at once with %d traps\n", n, a.calls.hits)
	}
	fmt.Fprintf(w, "%d differ\n", bad)
	if bad > 0 {
		return errDiffer
	}
	return nil
}
