package page

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/callsyntax"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// Scenario is a user's description of a machine: its calls and its probes.
type Scenario struct {
	// Release names the rules; "" means the image's.
	Release string `json:"release"`
	// Probes are lines: kprobe PLACE [post] [goto PLACE] [call FUNCTION], kretprobe PLACE[:N],
	// jprobe SYMBOL HANDLER.
	Probes string `json:"probes"`
	// Calls are lines, one for each CPU: what is called there, one after the other.
	Calls string `json:"calls"`
	// Careless: the jump is written in two stores without an int3, and without waiting for any task.
	Careless bool `json:"careless"`
}

// Named is a scenario that the page offers.
type Named struct {
	Name string `json:"name"`
	Scenario
	// Lead is a schedule that begins what everybody in turn do, so that what the name says happens.
	Lead string `json:"lead"`
}

var scenarios = []Named{
	{"an int3 and a step", Scenario{Probes: "kprobe strlen+0x5 post", Calls: `strlen("hello")`}, ""},
	{"two CPUs, one probe", Scenario{Probes: "kprobe gcd+0x5", Calls: "gcd(12, 18)\ngcd(7, 21)"}, ""},
	{"a return probe", Scenario{Probes: "kretprobe fib:3", Calls: "fib(3)"}, ""},
	{"a jump in place of the int3", Scenario{Probes: "kprobe opt_yes", Calls: "opt_yes(1)\nopt_yes(2)"}, "ma8w13"},
	{"a jump, written carelessly", Scenario{Probes: "kprobe opt_yes", Calls: "opt_yes(1)\nopt_yes(2)", Careless: true}, "amw2a"},
	{"a handler that changes ip", Scenario{Probes: "kprobe leaf goto leaf2", Calls: "leaf(1)"}, ""},
}

// probe is a line of Scenario.Probes.
type probe struct {
	text string
	callsyntax.Probe
	post bool
	// to is the function to which the pre handler sends the CPU, "" if it sends it nowhere.
	to string
	// calls is a function that the pre handler calls, "" for none.
	calls string
	// handler is the handler of a jprobe.
	handler string
}

// lines returns the lines of a text that are not empty.
func lines(text string) (list []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}

func (s *Scenario) probes() (list []probe, err error) {
	for _, line := range lines(s.Probes) {
		p, err := readProbe(line)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	if len(list) > bounded.PageProbes {
		return nil, fmt.Errorf("%d probes are too many: a machine here has at most %d", len(list), bounded.PageProbes)
	}
	return list, nil
}

func readProbe(line string) (p probe, err error) {
	words := strings.Fields(line)
	wrong := fmt.Errorf("%q is no probe: write kprobe PLACE, kretprobe PLACE:MAXACTIVE, or jprobe SYMBOL HANDLER", line)
	if len(words) < 2 {
		return p, wrong
	}
	p.text = line
	kind, place, more := words[0], words[1], words[2:]
	switch kind {
	case "kprobe":
		p.Probe, err = callsyntax.ParseKprobe(place)
	case "kretprobe":
		p.Probe, err = callsyntax.ParseKretprobe(place)
	case "jprobe":
		if len(more) != 1 {
			return p, wrong
		}
		p.handler = more[0]
		p.Probe, err = callsyntax.ParseKprobe(place)
		return p, err
	default:
		return p, wrong
	}
	for ; err == nil && len(more) > 0; more = more[1:] {
		switch {
		case more[0] == "post" && kind == "kprobe":
			p.post = true
		case more[0] == "call" && kind == "kprobe" && len(more) > 1:
			p.calls, more = more[1], more[1:]
		case more[0] == "goto" && kind == "kprobe" && len(more) > 1:
			p.to, more = more[1], more[1:]
		default:
			return p, fmt.Errorf("%q: %s is not understood; after a kprobe's place come post, goto and another place, or call and a function", line, more[0])
		}
	}
	return p, err
}

// planted is a probe that can be registered and unregistered.
type planted struct {
	probe
	kp *kprobes.Kprobe
	rp *kprobes.Kretprobe
	jp *kprobes.Jprobe
	// planned is the address that the probe's text names.
	planned x86.Addr
	// hits counts the runs of its handlers.
	hits int
}

// kprobe is the probe itself, or the one inside a return probe or a jprobe.
func (p *planted) kprobe() *kprobes.Kprobe {
	switch {
	case p.kp != nil:
		return p.kp
	case p.rp != nil:
		return &p.rp.KP
	}
	return &p.jp.KP
}

// at is the probed address, 0 before the first registration.
func (p *planted) at() x86.Addr { return p.kprobe().Addr }

// missed is the kernel's nmissed.
func (p *planted) missed() uint64 {
	switch {
	case p.kp != nil:
		return p.kp.Nmissed
	case p.rp != nil:
		return p.rp.Nmissed + p.rp.KP.Nmissed
	}
	return p.jp.KP.Nmissed
}

// turns is a part of a schedule: who takes n steps. In a schedule such as "mw3a12", "m" is
// the module that registers the probes and, the second time, unregisters them; "w" the
// optimizer's worker; "a" CPU 0, "b" CPU 1, and so on.
type turns struct {
	who byte
	n   int
}

var errSteps = fmt.Errorf("this machine has taken its %d steps: go back, or begin again", bounded.PageSteps)

func readSchedule(text string) (list []turns, err error) {
	total := 0
	for text != "" {
		t := turns{who: text[0], n: 1}
		if text = text[1:]; !strings.ContainsRune("mw", rune(t.who)) && (t.who < 'a' || t.who >= 'a'+bounded.PageCPUs) {
			return nil, errRequest
		}
		digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
		if digits > 0 {
			if t.n, err = strconv.Atoi(text[:digits]); err != nil || t.n < 1 || t.n > bounded.PageSteps {
				return nil, errRequest
			}
			text = text[digits:]
		}
		if total += t.n; total > bounded.PageSteps {
			return nil, errSteps
		}
		list = append(list, t)
	}
	return list, nil
}

// steps are a schedule's steps, one by one.
func steps(list []turns) (all []byte) {
	for _, t := range list {
		for range t.n {
			all = append(all, t.who)
		}
	}
	return all
}

// writeSchedule writes the steps.
func writeSchedule(all []byte) string {
	var b strings.Builder
	for i := 0; i < len(all); {
		n := 1
		for i+n < len(all) && all[i+n] == all[i] {
			n++
		}
		b.WriteByte(all[i])
		if n > 1 {
			b.WriteString(strconv.Itoa(n))
		}
		i += n
	}
	return b.String()
}

var errNoCalls = errors.New("nothing is called: write a call, such as gcd(12, 18)")
