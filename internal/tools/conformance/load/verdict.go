package load

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"kprobelab/bpf/answer"
)

// verdict is an answer about one program.
type verdict struct {
	loads         bool
	insns, states int
	// log is the verifier's, without times and figures.
	log string
	// said is this side's sentence. unasked: the loader cannot load the program.
	said    string
	unasked bool
	// judged: the verifier has looked at the program, and its log has its figures.
	judged bool
}

var (
	processing = regexp.MustCompile(`(?m)^PROCESSING (\S+)/(\S+), DURATION US: \d+, VERDICT: (\w+), VERIFIER LOG:\n`)
	processed  = regexp.MustCompile(`(?m)^processed (\d+) insns .*total_states (\d+) .*$`)
	address    = regexp.MustCompile(`0xffff[0-9a-f]{12}`)
	typeID     = regexp.MustCompile(`(function \w+)#\d+`)
	source     = regexp.MustCompile(`(?m)^; .*\n?`)
	safe       = regexp.MustCompile(`(?m)^Func#\d+ \('\w+'\) is safe for any args that match its prototype\n?`)
	figures    = regexp.MustCompile(`(?m)^(verification time|stack depth|processed|subprog \d+ \() ?.*\n?`)
)

// parse reads what veristat -v writes: of each program a line and the verifier's log, of each object a table.
func parse(text string) map[string]map[string]*verdict {
	answers := map[string]map[string]*verdict{}
	at := processing.FindAllStringSubmatchIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		file, name := path.Base(text[m[2]:m[3]]), text[m[4]:m[5]]
		if answers[file] == nil {
			answers[file] = map[string]*verdict{}
		}
		log, _, _ := strings.Cut(text[m[1]:end], "\nfile_name,")
		answers[file][name] = verdictOfLog(text[m[6]:m[7]] == "success", log)
	}
	return answers
}

func verdictOfLog(loads bool, log string) *verdict {
	text := address.ReplaceAllString(figures.ReplaceAllString(log, ""), "ADDRESS")
	v := &verdict{loads: loads, log: strings.TrimSpace(typeID.ReplaceAllString(text, "$1"))} // each loader numbers an object's types
	if m := processed.FindAllStringSubmatch(log, -1); m != nil {
		last := m[len(m)-1]
		v.judged = true
		v.insns, _ = strconv.Atoi(last[1])
		v.states, _ = strconv.Atoi(last[2])
	}
	return v
}

func verdictOf(p *answer.Program) *verdict {
	v := verdictOfLog(p.Loads, p.Log)
	v.said, v.unasked = p.Error, p.Unasked
	return v
}

// differs says what differs of two verdicts; "" if nothing does. The log of a program that loads has nothing to compare.
func (v *verdict) differs(our *verdict) string {
	switch {
	case v.loads != our.loads:
		return fmt.Sprintf("loads: %t there, %t here: %s", v.loads, our.loads, short(v.log+our.said))
	case v.insns != our.insns || v.states != our.states:
		return fmt.Sprintf("%d instructions and %d states there, %d and %d here: %s", v.insns, v.states, our.insns, our.states, our.said)
	case !v.loads:
		return firstOf(strings.Split(v.log, "\n"), strings.Split(our.log, "\n"))
	}
	return ""
}

// firstOf shows the first lines from the end that differ; "" if none does..
func firstOf(theirs, ours []string) string {
	for i := range min(len(theirs), enough) {
		var our string
		if i < len(ours) {
			our = ours[len(ours)-1-i]
		}
		if their := theirs[len(theirs)-1-i]; their != our {
			return fmt.Sprintf("the log there: %q; here: %q", their, our)
		}
	}
	return ""
}

// Parts of the explanation at the end of 7.3's logs: the heads of places, and what happened at a place, which is below its lines of C where there are some.
var (
	placed   = regexp.MustCompile(`^  (insn \d+|\S+ @ .*:\d+:\d+)$`)
	happened = regexp.MustCompile(`^\s*\| +\^-- (.*)$`)
	goesOn   = regexp.MustCompile(`^\s*\| +(\S.*)$`)
)

// withoutLines is a log as the verifier writes it about a program without lines of C.
func withoutLines(log string) (lines []string) {
	inSource, event := false, false
	for _, line := range strings.Split(source.ReplaceAllString(log, ""), "\n") {
		now := happened.FindStringSubmatch(line)
		more := goesOn.FindStringSubmatch(line)
		switch {
		case strings.TrimSpace(line) == "Source context:":
			inSource = true
		case placed.MatchString(line):
		case now != nil:
			lines = append(lines, now[1])
		case event && more != nil:
			lines[len(lines)-1] += " " + more[1]
			continue
		case strings.TrimSpace(line) == "Instruction context:":
			inSource = false
			lines = append(lines, line)
		case !inSource:
			lines = append(lines, line)
		}
		event = now != nil
	}
	return lines
}

// withoutPrefix is withoutLines, with the names of maps of variables as they are in an object.
func withoutPrefix(log string) []string {
	lines := withoutLines(log)
	for i := range lines {
		lines[i] = prefix.ReplaceAllString(lines[i], "$1")
	}
	return lines
}

var prefix = regexp.MustCompile(`\b\w{1,15}(\.(data|rodata|bss)\b)`)

// enough lines of the end are compared: the beginning of a long log is cut on both sides.
const enough = 40

// Words of both sides for a record of CO-RE that the kernel's types cannot give: libbpf puts its own into the verifier's log.
const theirCORE, ourCORE = "failed to resolve CO-RE relocation", "bad CO-RE relocation"

// cause names why two verdicts may differ, "" if nothing does.
func (v *verdict) cause(our *verdict) string {
	switch {
	case our.unasked:
		return "not asked here"
	case v.insns > 0 && v.insns == our.insns && v.states == our.states && v.loads == our.loads && firstOf(withoutPrefix(v.log), withoutLines(our.log)) == "":
		return "the same but for names of maps of variables: libbpf puts the object's before them"
	case !v.loads && !v.judged && our.judged:
		return "not compared: libbpf refuses the object before the verifier is asked, for another program's function of bpf_testmod, or for a map"
	case !v.loads && our.loads && v.insns > 0 && v.insns == our.insns && v.states == our.states && safe.ReplaceAllString(v.log, "") == "":
		return "verified alike; then libbpf refuses the object, for a map that it cannot fill"
	case v.loads || our.loads:
		return ""
	case v.insns > 0 && v.insns == our.insns && v.states == our.states && !source.MatchString(v.log) && firstOf(withoutLines(v.log), withoutLines(our.log)) == "":
		return "the same but for lines of C: libbpf leaves them out of an object with a type that the kernel refuses"
	case v.insns == 0 && our.insns == 0:
		return "refused before the verifier, on both sides"
	case strings.Contains(v.log, theirCORE) && strings.HasPrefix(our.said, ourCORE):
		return "refused for a record of CO-RE, in each library's words"
	}
	return ""
}
