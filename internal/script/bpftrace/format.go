package bpftrace

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// directive is a part of a format for one argument.
type directive struct {
	from, to         int // in the format
	left, zero       bool
	width, precision int
	verb             string
}

var (
	formatRE       = regexp.MustCompile(`%(-?)([0-9]*)(\.[0-9]+)?(rx|rh|r|s|c|(?:hh|h|ll|l|j|z|t)?[duoxXp])`)
	newestFormatRE = regexp.MustCompile(`%(-?)([0-9]*)(\.[0-9]+)?(rx|rh|r|s|c|l?gr|(?:hh|h|ll|l|j|z|t)?[duoxXp])`)
)

// directives returns the conversions of a format, in order; each prints one argument.
func (l Language) directives(format string) (list []directive) {
	re := formatRE
	if l.newest() {
		re = newestFormatRE
	}
	for _, m := range re.FindAllStringSubmatchIndex(format, -1) {
		d := directive{from: m[0], to: m[1], left: m[2] != m[3], width: -1, precision: -1, verb: format[m[8]:m[9]]}
		if w := format[m[4]:m[5]]; w != "" {
			d.zero = w[0] == '0'
			d.width, _ = strconv.Atoi(w)
			d.width = min(d.width, 1<<12)
		}
		if m[6] >= 0 {
			d.precision, _ = strconv.Atoi(format[m[6]+1 : m[7]])
			d.precision = min(d.precision, 1<<12)
		}
		list = append(list, d)
	}
	return list
}

// checkFormat returns the message for a mistake in a format or its arguments, "" for none.
func (l Language) checkFormat(n *node) string {
	list, args := l.directives(n.kids[0].text), n.kids[1:]
	switch {
	case len(args) < len(list):
		return fmt.Sprintf("%s: Not enough arguments for format string (%d supplied, %d expected)", n.text, len(args), len(list))
	case len(args) > len(list):
		return fmt.Sprintf("%s: Too many arguments for format string (%d supplied, %d expected)", n.text, len(args), len(list))
	}
	for i, a := range args {
		want := Integer
		switch list[i].verb {
		case "s":
			want = String
		case "r", "rx", "rh":
			want = Buffer
		}
		have := a.typ.kind()
		switch {
		case have == Ksym || have == Usym || have == Username || have == Kstack || have == Ustack || have == Inet || have == Timestamp ||
			have == Mac || have == CgroupPath || have == Strerror:
			have = String
		case have == Pointer:
			have = Integer
		}
		if have != want && !(a.typ.enum() && want == String) {
			return fmt.Sprintf("%s: %%%s specifier expects a value of type %s (%s supplied)", n.text, list[i].verb, want, have)
		}
	}
	return ""
}

// plain returns a format's text outside of directives. As in C, %% becomes one %.
func plain(s string) string { return strings.ReplaceAll(s, "%%", "%") }
