package page

import (
	"errors"
	"fmt"
	"strings"

	"kprobelab/internal/report"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// Lesson is one machine and one question about it.
type Lesson struct {
	Title    string   `json:"title"`
	Text     []string `json:"text"`
	Question string   `json:"question"`
	// Form is an example of an answer's form.
	Form     string   `json:"form"`
	Scenario Scenario `json:"scenario"`
	// After is shown once the answer is right.
	After string `json:"after"`

	// solve reads the answer off the machine, which has taken no step yet.
	solve func(r *run) (string, error)
}

var lessons = []Lesson{
	{
		Title: "The int3 and the step",
		Text: []string{
			"A kprobe replaces the first byte of an instruction by cc, the instruction int3. A CPU that comes there traps, and the kernel calls the probe's pre handler.",
			"Then the original instruction has to run after all. The kernel keeps a copy of it elsewhere, in a slot, sends the CPU there, and takes it back afterwards.",
			"Register the probe, and go forward until the pre handler is called.",
		},
		Question: "Where does ip point while the pre handler runs?", Form: "a place such as strlen+0x5",
		After:    "The CPU has executed the int3, which is one byte long, so ip is one past the probed address. The kernel's handlers live with that: the address is in the probe, not in ip.",
		Scenario: Scenario{Probes: "kprobe strlen+0x5 post", Calls: `strlen("hello")`, Release: "6.1"},
		solve:    at(kprobes.EventPre, func(r *run, m *moment) string { return r.symbol(x86.Addr(m.regs[0].IP)) }),
	},
	{
		Title: "A handler that changes ip",
		Text: []string{
			"A pre handler may set ip to another place and return 1. The kernel then neither steps the original instruction nor calls a post handler: the CPU goes on where ip says.",
			"Here the probe is at the entry of leaf(x), which returns x + 1. Its handler sends the CPU to leaf2(x, y), which returns 3x + y. The second argument of this call is 0.",
		},
		Question: "What does leaf(1) return with this probe?", Form: "a number",
		After:    "leaf2 has run in leaf's place, with leaf's arguments and leaf's return address. The kernel's own fault injection (fail_function) makes functions fail in this way.",
		Scenario: Scenario{Probes: "kprobe leaf goto leaf2", Calls: "leaf(1)", Release: "6.1"},
		solve:    atEnd(func(r *run) string { return r.results(0) }),
	},
	{
		Title: "Two probes at one address",
		Text: []string{
			"Two modules can probe the same instruction. There is only one first byte to replace, so the kernel puts one probe of its own there, which calls the handlers of both.",
			"Register both probes and let the function run to its end. Look at the hits of each probe, and count the traps.",
		},
		Question: "How often is the int3 at the probed address taken in this call?", Form: "a number",
		After:    "Each trap calls both pre handlers. A second probe at the same place costs a call of its handler, not another trap.",
		Scenario: Scenario{Probes: "kprobe gcd+0x5\nkprobe gcd+0x5 post", Calls: "gcd(12, 18)", Release: "6.1"},
		solve:    count(kprobes.EventTrap),
	},
	{
		Title: "A return probe, and the calls that it misses",
		Text: []string{
			"A return probe notes the return address when the function is entered, in an instance, and puts the address of a trampoline in its place. A call needs its instance until it returns.",
			"maxactive says how many instances there are. An article of 2007 watched sys_open with too few, and its module reported that it had missed some.",
			"Here maxactive is 1. Register the probe, and let both CPUs run in turn to their ends, an instruction each.",
		},
		Question: "How many of the calls does the return probe miss?", Form: "a number",
		After:    "The second CPU entered the function while the first still had the only instance. A missed call is not lost to the caller: it returns as if there were no probe. Only nmissed tells.",
		Scenario: Scenario{Probes: "kretprobe sys_open:1", Calls: "sys_open(\"/etc/passwd\", 0, 0)\nsys_open(\"/etc/hostname\", 0, 0)", Release: "6.1"},
		solve:    atEnd(func(r *run) string { return fmt.Sprint(r.probes[0].missed()) }),
	},
	{
		Title: "A jprobe",
		Text: []string{
			"Kernels up to 4.14 had jprobes: a handler with the arguments of the probed function, called in its place. It ends in jprobe_return, another int3, at which the kernel puts registers and stack back and lets the real function run.",
			"Register the jprobe and step by the protocol until the int3 has been handled and the CPU is about to go on.",
		},
		Question: "In which function does the CPU go on after the first int3?", Form: "a function's name",
		After:    "The handler runs in the task like any function, with a copy of the stack kept aside. Only after its jprobe_return does the probed function run.",
		Scenario: Scenario{Probes: "jprobe sys_open jsys_open", Calls: `sys_open("/etc/passwd", 0, 0)`, Release: "4.4"},
		solve:    at(kprobes.EventSkipped, func(r *run, m *moment) string { return r.symbol(x86.Addr(m.regs[0].IP)) }),
	},
	{
		Title: "DCR and JTPR",
		Text: []string{
			"A trap is slow, so the kernel replaces the int3 by a jump where it can. The jump has five bytes, so it covers whole instructions, the detoured code region (DCR), which are copied into a detour buffer.",
			"Nothing may jump to the middle of the new jump: the bytes after its first are the jump target prohibition region (JTPR). The kernel looks at every jump of the function before it agrees.",
			"This probe is at the first instruction. However long the worker is asked, it stays an int3. Find the jump that is in the way.",
		},
		Question: "To which offset in the function does the jump in the way lead?", Form: "an offset such as +7",
		After:    "A CPU that takes this jump would land in the middle of the new jump and execute a part of its displacement.",
		Scenario: Scenario{Probes: "kprobe opt_no_jump_in", Calls: "opt_no_jump_in(1)", Release: "6.1"},
		solve:    jumpInTheWay,
	},
	{
		Title: "The optimizer and its queue",
		Text: []string{
			"A probe that may become a jump does not become one at once. Registration puts an int3 there and the probe on a list, and a worker comes later, so that many changes are made together.",
			"Register the probe and look at its state before you let the worker run. Then step the worker, and watch what it waits for.",
		},
		Question: "On which list is the probe after its registration?", Form: "the list's name",
		After:    "Until the worker comes, every hit still traps, but goes on in the detour buffer already. The worker first waits until every task has scheduled: one may stand between two instructions that the jump is going to cover.",
		Scenario: Scenario{Probes: "kprobe opt_yes", Calls: "opt_yes(1)\nopt_yes(2)", Release: "6.1"},
		solve: func(r *run) (string, error) {
			if _, err := r.step('m'); err != nil {
				return "", err
			}
			return r.lab.Kprobes.Queue(r.probes[0].at()), nil
		},
	},
	{
		Title: "The race that text_poke prevents",
		Text: []string{
			"What happens when somebody writes the five bytes at once, without waiting? Let CPU 0 take one instruction: it now stands in the middle of the bytes that the jump will cover.",
			"Then register the probe and step the worker, which is careless here. Look at what stands at CPU 0's ip now, and let it take another step.",
		},
		Question: "Which byte does CPU 0 execute next, as the first of an instruction?", Form: "two hexadecimal digits",
		After:    "It is a byte of the jump's displacement, and no instruction that anybody has written. text_poke puts an int3 in front while the rest changes, and the worker has waited before that for whoever is inside.",
		Scenario: Scenario{Probes: "kprobe opt_yes", Calls: "opt_yes(1)", Careless: true, Release: "6.1"},
		solve: func(r *run) (string, error) {
			for _, who := range []byte("amw") {
				if ran, err := r.step(who); !ran {
					return "", errors.Join(errUnsolved, err)
				}
			}
			return fmt.Sprintf("%x", r.read(x86.Addr(r.now.regs[0].IP), 1)), nil
		},
	},
}

// errUnsolved: a lesson's machine does not come to where its question is.
var errUnsolved = errors.New("the machine of this lesson does not come to its question")

// at solves a lesson at the first event of a kind.
func at(kind kprobes.EventKind, answer func(r *run, m *moment) string) func(*run) (string, error) {
	return func(r *run) (string, error) {
		for who := byte('m'); ; who = 'a' {
			if ran, err := r.step(who); !ran {
				return "", errors.Join(errUnsolved, err)
			}
			for i := range r.moments {
				if m := &r.moments[i]; m.hit && m.kind == kind {
					return answer(r, m), nil
				}
			}
		}
	}
}

// atEnd solves a lesson when all CPUs, which step in turn, have returned.
func atEnd(answer func(r *run) string) func(*run) (string, error) {
	return func(r *run) (string, error) {
		err := r.inTurn(func() {})
		return answer(r), err
	}
}

// count solves a lesson by the number of events of a kind.
func count(kind kprobes.EventKind) func(*run) (string, error) {
	return func(r *run) (string, error) {
		n := 0
		err := r.inTurn(func() {
			for _, m := range r.moments {
				if m.hit && m.kind == kind {
					n++
				}
			}
		})
		return fmt.Sprint(n), err
	}
}

// inTurn registers the probes, and lets the CPUs step in turn to their ends.
func (r *run) inTurn(each func()) error {
	if _, err := r.step('m'); err != nil {
		return err
	}
	for going := true; going; {
		going = false
		for n := range r.tasks {
			ran, err := r.step('a' + byte(n))
			if err != nil {
				return err
			}
			if ran {
				going = true
				each()
			}
		}
	}
	return nil
}

// jumpInTheWay returns the target of the jump that prevents the optimization of the probe.
func jumpInTheWay(r *run) (string, error) {
	e, err := report.NewScan(r.img).Explain(r.probes[0].Symbol)
	if err != nil {
		return "", err
	}
	for _, j := range e.Region.Jumps {
		if j.Prohibited {
			return fmt.Sprintf("+%d", j.To), nil
		}
	}
	return "", errUnsolved
}

// Checked says whether an answer is right.
type Checked struct {
	Right bool   `json:"right"`
	Says  string `json:"says"`
}

type checkQuestion struct {
	Lesson int    `json:"lesson"`
	Answer string `json:"answer"`
}

// check compares an answer with the run of the lesson's machine.
func (p *Page) check(q checkQuestion, _ []byte) (*Checked, error) {
	if q.Lesson < 0 || q.Lesson >= len(lessons) {
		return nil, errRequest
	}
	l := &lessons[q.Lesson]
	img, err := guest()
	if err != nil {
		return nil, err
	}
	r, err := newRun(img, l.Scenario)
	if err != nil {
		return nil, err
	}
	defer r.lab.Close()
	right, err := l.solve(r)
	if err != nil {
		return nil, err
	}
	if plain(q.Answer) == plain(right) {
		return &Checked{true, l.After}, nil
	}
	return &Checked{false, "The machine does something else. The answer is " + l.Form + "; step through the machine below and look."}, nil
}

// plain is an answer without what does not matter: spaces, capitals, how a number is
// written (offsets here are below ten), the brackets of a function.
func plain(s string) string {
	s = strings.ReplaceAll(strings.ToLower(strings.Join(strings.Fields(s), "")), "0x", "")
	return strings.TrimSuffix(strings.TrimPrefix(s, "+"), "()")
}
