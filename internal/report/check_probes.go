package report

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/tracing/definition"
	"kprobelab/kprobes/probepoint"
)

// Via is the way in which a tool asks for its probe. Each way has other reasons to refuse it.
type Via string

// The ways.
const (
	// ViaRegister calls register_kprobe or register_kretprobe, as a module does.
	ViaRegister Via = "register"
	// ViaEvents writes to kprobe_events.
	ViaEvents Via = "kprobe_events"
	// ViaPerf opens a perf event of the kprobe unit, as loaders of BPF programs
	// do for sections kprobe/ and kretprobe/.
	ViaPerf Via = "perf_event"
	// ViaMulti makes a link of a BPF program to many functions (fprobe).
	ViaMulti Via = "kprobe.multi"
	// ViaTrampoline puts a BPF program's trampoline at a function's fentry site, by the
	// function's number in BTF (fentry, fexit, fmod_ret, lsm).
	ViaTrampoline Via = "trampoline"
	// ViaTracepoint opens the perf event of a tracepoint's event, ViaRaw attaches a
	// BPF program to the tracepoint itself.
	ViaTracepoint Via = "tracepoint"
	ViaRaw        Via = "raw_tracepoint"
	// ViaIterator makes a link of a BPF program to an iterator (iter/NAME).
	ViaIterator Via = "iterator"
)

// Vias are the ways for functions that a text names, by the users' names of the ways.
var Vias = map[string]Via{"module": ViaRegister, "events": ViaEvents, "bpf": ViaPerf}

// Probe is one probe that a tool asks for.
type Probe struct {
	// Text is the tool's name for it: the line, or the section.
	Text string `json:"probe"`
	// Program is a BPF program's name, "" for another probe.
	Program string `json:"program,omitempty"`
	// Return asks for a return probe.
	Return bool `json:"return"`
	Via    Via  `json:"via"`
	// Line is its line number in a text, from 1 on. A program's is in its C source, File, if the object tells; else 0.
	Line int    `json:"line,omitempty"`
	File string `json:"file,omitempty"`
	// Optional: the section begins with a question mark, and a loader loads the program only if the tool wants it.
	Optional bool `json:"optional,omitempty"`
	// place is SYM[+OFF], ADDR[+OFF] or, for ViaMulti, a pattern of functions.
	place string
	// line is a definition for kprobe_events where defines is true, a probe in the words of the source where
	// said is: each kernel's own debugging information turns that into definitions.
	line          definition.Line
	defines, said bool
	// any are the alternatives of a group: one that attaches is enough.
	any []Probe
	// kind is a BPF program's kind, as its section's name begins.
	kind string
	// unasked says why the program has no answer; "" if it has one.
	unasked string
	// syscall: place is a system call's name without its prefix.
	syscall bool
	// asleep: the program may sleep.
	asleep bool
	// request is a place that is not to be read from place again.
	request *probepoint.Request
	// badSection says why a loader does not take a section.
	badSection string
	// bad says why the line is no probe.
	bad string
}

// ReadProbes reads a list of probes: a compiled BPF object, or text with a probe a line. A
// probe is SYM[+OFF] or ADDR[+OFF], with %return after it for a return probe, a definition
// for kprobe_events (p:… and r:…), or a probe in the words of the source (vfs_read count,
// vfs_read:11). Empty lines and comments (#) are left out. A line that is no probe is a
// Probe that no kernel takes. The error is the reader's, or says that there is no probe.
func ReadProbes(r io.Reader) ([]Probe, error) {
	b, err := bounded.ReadAll(r, bounded.CheckInput)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(b, []byte("\x7fELF")) {
		return bpfProbes(b)
	}
	if err := noList(b); err != nil {
		return nil, err
	}
	var list []Probe
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, bounded.ListLine)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if l := definition.ReadLine(text); !l.Empty() {
			p := textProbe(l)
			p.Line = n
			list = append(list, p)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("it names no probe; a line is SYM+OFF, or p:NAME SYM+OFF as in kprobe_events")
	}
	return list, nil
}

// AskBy sets another way for probes without a way of their own, which a module would register.
func AskBy(probes []Probe, via Via) {
	for i := range probes {
		if p := &probes[i]; p.Via == ViaRegister {
			p.Via = via
		}
		AskBy(probes[i].any, via)
	}
}

// textProbe reads one line, of at least one word.
func textProbe(l definition.Line) Probe {
	words := l.Words
	p := Probe{Text: printable(l.Command()), Via: ViaRegister, place: words[0]}
	if alternatives := strings.Split(l.Command(), "|"); len(alternatives) > 1 && !l.Defines() {
		return groupProbe(p, alternatives)
	}
	switch {
	case l.Defines():
		p.Via, p.Return, p.line, p.defines = ViaEvents, words[0][0] == 'r', l, true
		if len(words) > 1 {
			p.place = words[1]
		}
	case l.Deletes():
		p.bad = "a deletion is no probe"
	case isSaid(words):
		p.Via, p.line, p.said = ViaEvents, definition.LineOf(words...), true
		p.Return = strings.HasSuffix(words[0], "%return")
		return p
	}
	if at, ok := strings.CutSuffix(p.place, "%return"); ok {
		p.place, p.Return = at, true
	}
	return p
}

// groupProbe reads a group. It is a return probe if all its alternatives are.
func groupProbe(p Probe, alternatives []string) Probe {
	p.Return = true
	for _, text := range alternatives {
		l := definition.ReadLine(text)
		if l.Empty() {
			p.bad = "an alternative is missing beside the |"
			return p
		}
		one := textProbe(l)
		if p.any = append(p.any, one); one.bad != "" {
			p.bad = one.bad
		}
		p.Return = p.Return && one.Return
	}
	return p
}

// isSaid tells a probe in the words of the source: one with arguments, a name of its own, a
// file or a line.
func isSaid(words []string) bool {
	if len(words) > 1 || strings.ContainsAny(words[0], "@=") {
		return true
	}
	_, line, some := strings.Cut(words[0], ":")
	return some && line != "" && strings.Trim(line, "0123456789") == ""
}

// symbol takes the place apart.
func (p *Probe) symbol() (module, name, off string) {
	name, off, _ = strings.Cut(p.place, "+")
	if m, rest, ok := strings.Cut(name, ":"); ok {
		return m, rest, off
	}
	return "", name, off
}
