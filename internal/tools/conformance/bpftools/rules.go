package bpftools

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// rule is a reason for which outputs may differ. Its function takes that out of one of them.
type rule struct {
	name  string
	apply func(lines []string) []string
}

// The rules, in the order in which they are applied.
var (
	clock     = &rule{"times of day", replace(`\b\d\d?:\d\d?:\d\d\b`, "TIME")}
	load      = &rule{"load averages", replace(`loadavg: .*`, "loadavg")}
	processes = &rule{"process numbers", rename(byLine, "PID", "PPID", "TID", "TPID")}
	ranks     = &rule{"process numbers", rename(byNumber, "PID", "PPID")}
	who       = &rule{"which of the script's processes asks", mask("PROCESS", "PID")}
	ends      = &rule{"which end of a connection runs", mask("PROCESS", "PID")}
	ports     = &rule{"local ports", replace(`\b(3[3-9]\d{3}|32[89]\d\d|327[7-9]\d|3276[89]|[45]\d{4}|60\d{3})\b`, "PORT")}
	objects   = &rule{"addresses of objects", replace(`\b(0x)?ffff[0-9a-f]{12}\b`, "ADDRESS")}
	durations = &rule{"durations", mask("DURATION", "AGE(s)", "LAT(ms)", "MS", "TIME(s)", "DELTA(ms)")}
	buckets   = &rule{"how durations are distributed", histograms}
	counts    = &rule{"counts in an interval", numbers}
	order     = &rule{"the order of lines", sorted}
	folders   = &rule{"folders of processes that may have ended", lastOfPath}
	waits     = &rule{"whether a packet waits for its reader: only the head is compared", head}
	samples   = &rule{"what a sample meets: only the head is compared", head}
	sleeps    = &rule{"the stacks of who sleeps: only the exit code is compared", func([]string) []string { return nil }}

	all = []*rule{clock, load, processes, ranks, ends, who, buckets, ports, objects, durations, counts, folders, order, waits, samples, sleeps}
)

// more has the rules of tools beyond those of all tools.
var more = map[string][]*rule{
	// The time between intervals and the workload, or the kernel's own work in them, decides the counts.
	"cachestat": {counts}, "numamove": {counts}, "softirqs": {counts}, "hardirqs": {counts}, "vfsstat": {counts},
	"runqlen": {counts},
	// The two ends of a connection run beside each other.
	"tcpstates": {ends, order}, "tcptracer": {order}, "tcplife": {ends, order},
	"tcppktlat": {waits},
	// sid's tool reads the folder of a relative path from /proc, after the call.
	"statsnoop": {folders},
	// Two processes that were started one after the other run beside each other.
	"execsnoop": {ranks, order},
	// Each process asks several times, and the tool sees one more or less after its SIGINT.
	"capable": {who, order},
	// Equal counts of a map come in the order of its hashes, which are of random numbers.
	"wildcard": {order}, "kretprobe": {order}, "funccount": {counts, order},
	// Both sides list what came most often, and by how long it took.
	"klockstat": {samples}, "ksnoop": {samples}, "memleak": {samples}, "syscount": {samples}, "wakeuptime": {samples},
	"filetop": {samples}, "slabratetop": {samples}, "tcptop": {samples}, "biotop": {samples}, "offcputime": {sleeps}, "profile": {samples}, "biostacks": {samples},
}

// general are the rules of all tools.
var general = []*rule{clock, load, processes, buckets, ports, objects, durations}

// rulesOf lists the rules of a tool, in order.
func rulesOf(tool string) []*rule {
	of := slices.Clone(general)
	if slices.Contains(more[tool], ranks) {
		of = slices.DeleteFunc(of, func(r *rule) bool { return r == processes })
	}
	for _, r := range all {
		if slices.Contains(more[tool], r) {
			of = append(of, r)
		}
	}
	return of
}

// compare reports whether two answers are the same, and names the fewest rules that make them so.
func compare(tool string, a, b *answer) (names []string, same bool) {
	if a.code != b.code {
		return nil, false
	}
	need := rulesOf(tool)
	if !equal(need, a, b) {
		return nil, false
	}
	for i := len(need) - 1; i >= 0; i-- {
		without := slices.Delete(slices.Clone(need), i, i+1)
		if equal(without, a, b) {
			need = without
		}
	}
	for _, r := range need {
		names = append(names, r.name)
	}
	return names, true
}

func equal(rules []*rule, a, b *answer) bool {
	return slices.Equal(applied(rules, a.out), applied(rules, b.out)) && slices.Equal(applied(rules, a.err), applied(rules, b.err))
}

func applied(rules []*rule, lines []string) []string {
	for _, r := range rules {
		lines = r.apply(lines)
	}
	return lines
}

// difference shows the first line that is not the same, after all rules.
func difference(tool string, a, b *answer) string {
	var s strings.Builder
	if a.code != b.code {
		fmt.Fprintf(&s, "  exit codes %d and %d\n", a.code, b.code)
	}
	for _, pair := range [][2][]string{{a.out, b.out}, {a.err, b.err}} {
		x, y := applied(rulesOf(tool), pair[0]), applied(rulesOf(tool), pair[1])
		for i := range max(len(x), len(y)) {
			if i < len(x) && i < len(y) && x[i] == y[i] {
				continue
			}
			s.WriteString("  theirs: " + at(x, i) + "\n  ours:   " + at(y, i) + "\n")
			break
		}
	}
	return s.String()
}

func replace(pattern, by string) func([]string) []string {
	re := regexp.MustCompile(pattern)
	return func(lines []string) []string {
		return each(lines, func(line string) string { return re.ReplaceAllString(line, by) })
	}
}

// columns calls f for the fields under the heads in names. Of a line with such fields, blanks are one each.
func columns(lines []string, names []string, f func(field string) string) []string {
	var under []int
	return each(lines, func(line string) string {
		fields := strings.Fields(line)
		var here []int
		for i, field := range fields {
			if slices.Contains(names, field) {
				here = append(here, i)
			}
		}
		if here != nil {
			under = here
			return strings.Join(fields, " ")
		}
		if len(under) == 0 || under[0] >= len(fields) {
			return line
		}
		for _, i := range under {
			if i < len(fields) {
				fields[i] = f(fields[i])
			}
		}
		return strings.Join(fields, " ")
	})
}

// mask replaces all fields under these heads.
func mask(by string, names ...string) func([]string) []string {
	return func(lines []string) []string {
		return columns(lines, names, func(string) string { return by })
	}
}

// byLine gives processes numbers in the order of the lines, byNumber in the order of their own numbers.
func byLine(fields []string) {}

func byNumber(fields []string) {
	slices.SortStableFunc(fields, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
}

// rename numbers the processes under these heads.
func rename(arrange func(fields []string), names ...string) func([]string) []string {
	return func(lines []string) []string {
		var found []string
		columns(lines, names, func(field string) string {
			if number.MatchString(field) && field != "0" && !slices.Contains(found, field) {
				found = append(found, field)
			}
			return field
		})
		arrange(found)
		return columns(lines, names, func(field string) string {
			if i := slices.Index(found, field); i >= 0 {
				return "P" + strconv.Itoa(i+1)
			}
			return field
		})
	}
}

var (
	number = regexp.MustCompile(`^\d+$`)
	digits = regexp.MustCompile(`\d+(\.\d+)?`)
	bucket = regexp.MustCompile(`^ *\d+( -> \d+)? +: \d+ +\|\**[ +]*\|$`)
)

// histograms leaves one line of a histogram's buckets.
func histograms(lines []string) []string {
	return slices.CompactFunc(each(lines, func(line string) string {
		if bucket.MatchString(line) {
			return "BUCKETS"
		}
		return line
	}), func(a, b string) bool { return a == "BUCKETS" && b == "BUCKETS" })
}

// numbers takes out all numbers, and lines that are then repeated.
func numbers(lines []string) []string {
	return slices.Compact(each(lines, func(line string) string {
		return strings.Join(strings.Fields(digits.ReplaceAllString(line, "N")), " ")
	}))
}

// sorted sorts the lines and leaves one of each.
func sorted(lines []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(lines)))
}

// pathAtEnd is a path at a line's end: its folders, and its last part, which is empty after a slash.
var pathAtEnd = regexp.MustCompile(`\s+/(\S*/)?([^/\s]*)$`)

// lastOfPath takes the folders from the path at each line's end.
func lastOfPath(lines []string) []string {
	return each(lines, func(line string) string { return strings.TrimRight(pathAtEnd.ReplaceAllString(line, " $2"), " ") })
}

// lost is a line about stacks that had no room.
var lost = regexp.MustCompile(`^missed kernel stack|^WARNING: \d+ stack traces could not be displayed due to memory shortage`)

// head leaves the first line, without stacks that were lost.
func head(lines []string) []string {
	lines = slices.DeleteFunc(slices.Clone(lines), lost.MatchString)
	return lines[:min(1, len(lines))]
}

func each(lines []string, f func(string) string) []string {
	to := make([]string, len(lines))
	for i, line := range lines {
		to[i] = f(line)
	}
	return to
}

func at(lines []string, i int) string {
	if i >= len(lines) {
		return "(nothing)"
	}
	return lines[i]
}
