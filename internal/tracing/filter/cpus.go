package filter

import (
	"math"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/tracing/event"
	"kprobelab/internal/tracing/word"
)

// cpusWord begins a list of CPUs as a value: CPUS{0,2-3} (6.6 and later).
const cpusWord = "CPUS"

// cpusValue reads CPUS{LIST}. A list of one CPU is that CPU's number, and & then tests for
// equality.
func (p *parser) cpusValue(o operand, op string) (node, error) {
	if o.text() || o.kind == kindStack || op != "==" && op != "!=" && op != "&" {
		return nil, p.fail(errno.EINVAL, msgIllegalFieldOp, p.i+1)
	}
	p.i += len(cpusWord)
	open := p.at(p.i) == '{'
	p.i++
	if !open {
		return nil, p.fail(errno.EINVAL, msgBraceOpen, p.i+1)
	}
	start := p.i
	for p.i < len(p.text) && p.text[p.i] != '}' {
		p.i++
	}
	if p.at(p.i) != '}' {
		return nil, p.fail(errno.EINVAL, msgBraceClose, p.i+1)
	}
	set, ok := cpuList(p.text[start:p.i], p.rules.CPUs)
	if !ok || p.i == start {
		return nil, p.fail(errno.EINVAL, msgCPUList, p.i+1)
	}
	p.i++
	if o.kind == kindOpaque {
		return never{}, nil
	}
	if cpu, single := set.single(); single {
		if op == "&" {
			op = "=="
		}
		o.signed = o.signed && o.kind == kindCPU
		return newNumberPredicate(o, op, uint64(cpu)), nil
	}
	return &cpusPredicate{o, op, set}, nil
}

// cpuSet has true at the number of each CPU that it holds.
type cpuSet []bool

// single is the only CPU of the set.
func (s cpuSet) single() (cpu int, ok bool) {
	for i, in := range s {
		if in && ok {
			return 0, false
		}
		if in {
			cpu, ok = i, true
		}
	}
	return cpu, ok
}

// cpusPredicate compares a CPU's number with a set that is not of one CPU: only & can
// hold, or fail to.
type cpusPredicate struct {
	operand
	op  string
	set cpuSet
}

func (p *cpusPredicate) need() int {
	if p.kind == kindCPU {
		return 0
	}
	return p.offset + p.width
}

func (p *cpusPredicate) match(rec []byte, c Current) bool {
	cpu := uint64(c.CPU)
	if p.kind != kindCPU {
		cpu = event.Number(rec[p.offset:], p.width, false)
	}
	switch {
	case cpu >= uint64(len(p.set)):
		return false
	case p.op == "&":
		return p.set[cpu]
	}
	return p.op == "!="
}

// cpuList reads a list as the kernel does (bitmap_parselist): regions divided by commas
// or white space. A region is a number, N for the last CPU, FIRST-LAST, or all; after
// the latter two, :USED/GROUP takes the first USED of every GROUP.
func cpuList(text string, cpus int) (cpuSet, bool) {
	set := make(cpuSet, cpus)
	text, _, _ = strings.Cut(text, "\n")
	for _, region := range word.SplitAt(text, func(c byte) bool { return c == ',' || word.IsSpace(c) }) {
		if !set.add(region) {
			return nil, false
		}
	}
	return set, true
}

// add adds a region.
func (s cpuSet) add(text string) bool {
	last := uint64(len(s) - 1)
	first, end, ok := uint64(0), last, true
	if len(text) >= 3 && strings.EqualFold(text[:3], "all") {
		text = text[3:]
	} else {
		if first, text, ok = listNumber(text, last); !ok {
			return false
		}
		end = first
		if rest, is := strings.CutPrefix(text, "-"); is {
			if end, text, ok = listNumber(rest, last); !ok {
				return false
			}
		} else if text != "" {
			return false
		}
	}
	used, group := end+1, end+1
	if text != "" {
		rest, is := strings.CutPrefix(text, ":")
		if !is {
			return false
		}
		if used, rest, ok = listNumber(rest, last); !ok {
			return false
		}
		if rest, is = strings.CutPrefix(rest, "/"); !is {
			return false
		}
		if group, rest, ok = listNumber(rest, last); !ok || rest != "" {
			return false
		}
	}
	if first > end || group == 0 || used > group || end > last {
		return false
	}
	for at := first; at <= end; at += group {
		for i := at; i <= end && i < at+used; i++ {
			s[i] = true
		}
	}
	return true
}

// listNumber reads a decimal number, or N.
func listNumber(text string, last uint64) (v uint64, rest string, ok bool) {
	if rest, is := strings.CutPrefix(text, "N"); is {
		return last, rest, true
	}
	i := 0
	for ; i < len(text) && isDigit(text[i]); i++ {
		if v = v*10 + uint64(text[i]-'0'); v > math.MaxUint32 {
			return 0, "", false
		}
	}
	return v, text[i:], i > 0
}
