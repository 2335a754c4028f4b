package page

import (
	"errors"
	"fmt"

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
	// By is "protocol" or "instruction", as in a question of the machine; Start is the schedule at
	// which the lesson begins, Lead the one that begins what everybody in turn do.
	By    string `json:"by"`
	Start string `json:"start"`
	Lead  string `json:"lead"`
	// After is shown once the answer is right.
	After string `json:"after"`

	kind answerKind
	// wrong has a reason for each answer that many give.
	wrong []wrongAnswer
	// solve reads the answer off the machine, which has taken no step yet.
	solve func(r *run) (string, error)
}

var lessons = []Lesson{
	{
		Title: "The int3 and the step",
		Text: []string{
			"To plant a kprobe, the kernel overwrites the first byte of an instruction with cc (int3) and keeps a copy of the whole instruction in a slot. A CPU that comes there traps, and the kernel calls the probe's pre handler.",
			"Then the original instruction has to run after all. The kernel sends the CPU to the copy in the slot, and takes it back afterwards.",
			"Press Forward until the pre handler is called: the first time registers the probe.",
		},
		Question: "The pre handler gets the registers of the interrupted code. What is regs->ip?", Form: "symbol+offset, such as memcpy+0x12",
		After: "The CPU has executed the int3, which is one byte long, so ip is one past the probed address. The kernel's handlers live with that: the address is in the probe, not in ip.",
		By:    byProtocol, Scenario: Scenario{Probes: "kprobe strlen+0x5 post", Calls: `strlen("hello")`, Release: "6.1"},
		kind: answerPlace, wrong: []wrongAnswer{
			{"strlen+0x5", "That is the probed address. The CPU has executed the int3 there already, so ip is further."},
			{"strlen+0x8", "That is the next original instruction. The CPU has not executed the original one: it has executed the int3, which is shorter."},
		},
		solve: at(kprobes.EventPre, func(r *run, m *moment) string { return r.symbol(x86.Addr(m.regs[0].IP)) }),
	},
	{
		Title: "A handler that changes ip",
		Text: []string{
			"A pre handler may set ip to another place and return 1. The kernel then neither steps the original instruction nor calls a post handler: the CPU goes on where ip says.",
			"Here the probe is at the entry of leaf(x), which returns x + 1. A function's entry has a five-byte nop for the function tracer (ftrace). A probe there uses it: the nop becomes a call, and there is no int3.",
			"The probe's handler sends the CPU to leaf2(x, y), which returns 3x + y. The second argument of this call is 0. Press Play.",
		},
		Question: "What does leaf(1) return with this probe?", Form: "a number",
		After: "leaf2 has run in leaf's place, with leaf's arguments and leaf's return address. The kernel's own fault injection (fail_function) makes functions fail in this way.",
		By:    byProtocol, Scenario: Scenario{Probes: "kprobe leaf goto leaf2", Calls: "leaf(1)", Release: "6.1"},
		kind: answerNumber, wrong: []wrongAnswer{
			{"2", "That is what leaf returns without the probe. With it, the CPU never comes to leaf's instructions."},
		},
		solve: atEnd(func(r *run) string { return r.results(0) }),
	},
	{
		Title: "Two probes at one address",
		Text: []string{
			"Two modules can probe the same instruction. There is only one first byte to replace, so the kernel puts one probe of its own there, which calls the handlers of both.",
			"Press Forward until the call has returned. Count the events that begin with \"int3 at the probed address\", and look at the hits of each probe.",
		},
		Question: "How often is the int3 at the probed address taken in this call?", Form: "a number",
		After: "Each trap calls both pre handlers. A second probe at the same place costs a call of its handler, not another trap.",
		By:    byProtocol, Scenario: Scenario{Probes: "kprobe gcd+0x5\nkprobe gcd+0x5 post", Calls: "gcd(12, 18)", Release: "6.1"},
		kind: answerNumber, wrong: []wrongAnswer{
			{"2", "Each probe has one hit, but both hits are of the same trap."},
		},
		solve: count(kprobes.EventTrap),
	},
	{
		Title: "A return probe, and the calls that it misses",
		Text: []string{
			"A return probe notes the return address when the function is entered, in an instance, and puts the address of a trampoline in its place. A call needs its instance until it returns.",
			"maxactive says how many instances there are. Here it is 1, and two CPUs call the function.",
			"Press Play: the CPUs take turns until both calls have returned.",
		},
		Question: "How many of the calls does the return probe miss?", Form: "a number",
		After: "The second CPU entered the function while the first still had the only instance. A missed call is not lost to the caller: it returns as if there were no probe. Only nmissed tells.",
		By:    byProtocol, Scenario: Scenario{Probes: "kretprobe sys_open:1", Calls: "sys_open(\"/etc/passwd\", 0, 0)\nsys_open(\"/etc/hostname\", 0, 0)", Release: "6.1"},
		kind: answerNumber, wrong: []wrongAnswer{
			{"0", "The second CPU enters the function before the first has returned. Which instance can it take?"},
			{"2", "The first CPU that enters the function gets the instance, and its return is seen."},
		},
		solve: atEnd(func(r *run) string { return fmt.Sprint(r.probes[0].missed()) }),
	},
	{
		Title: "A jprobe",
		Text: []string{
			"Kernels up to 4.14 had jprobes: a handler with the arguments of the probed function, called in its place. Its last act is jprobe_return(), which executes an int3 of its own: there the kernel puts registers and stack back, and the real function runs.",
			"The probe is at the entry of sys_open, where this kernel uses the call of the function tracer. Press Forward until the jprobe's pre handler, which is the kernel's, has returned.",
		},
		Question: "In which function does the CPU go on when the jprobe's pre handler has returned?", Form: "a function's name",
		After: "The handler runs in the task like any function, with a copy of the stack kept aside. Only after its jprobe_return does the probed function run.",
		By:    byProtocol, Scenario: Scenario{Probes: "jprobe sys_open jsys_open", Calls: `sys_open("/etc/passwd", 0, 0)`, Release: "4.4"},
		kind: answerPlace, wrong: []wrongAnswer{
			{"sys_open", "The probed function runs later, after the int3 of jprobe_return. Look at the event at which the pre handler returns non-zero, and at CPU 0's ip."},
			{"jprobe_return", "The CPU comes there at the end of the function that is asked for."},
		},
		solve: at(kprobes.EventSkipped, func(r *run, m *moment) string { return r.symbol(x86.Addr(m.regs[0].IP)) }),
	},
	{
		Title: "DCR and JTPR",
		Text: []string{
			"A trap is slow, so the kernel replaces the int3 by a jump where it can. The jump is five bytes long. Every instruction that it touches has to move: together they are the detoured code region (DCR), which is copied into a detour buffer.",
			"Nothing may jump to the middle of the new jump: the bytes after its first are the jump target prohibition region (JTPR). The kernel looks at every jump of the function before it agrees.",
			"This probe is at the first instruction. Register it: \"Step the worker\" stays grey, because the kernel did not even queue the probe. Find the jump that is in the way, in the code below.",
		},
		Question: "To which offset in the function does the jump in the way lead?", Form: "an offset such as +7",
		After: "A CPU that takes this jump would land in the middle of the new jump and execute a part of its displacement.",
		By:    byProtocol, Scenario: Scenario{Probes: "kprobe opt_no_jump_in", Calls: "opt_no_jump_in(1)", Release: "6.1"},
		kind: answerOffset, wrong: []wrongAnswer{
			{"opt_no_jump_in+0x9", "There the jump stands. The question is where it leads."},
			{"opt_no_jump_in", "A jump to the first byte is harmless: it comes to the new jump's beginning."},
		},
		solve: jumpInTheWay,
	},
	{
		Title: "The optimizer and its queue",
		Text: []string{
			"A probe that may become a jump does not become one at once. register_kprobe plants an int3 and puts the probe on a list. A worker comes later and makes the jumps of the whole list together.",
			"CPU 0 stands at opt_yes+0x3, inside the five bytes that the jump will cover. Register the probe and look at its state. Then step the worker: it waits until every task has given up its CPU of its own accord (a preempted task does not count: it may stand inside the five bytes).",
			"Let CPU 0 step to its end, and the worker go on to its own. Then step CPU 1: it takes the jump. \"Forward\" does all of this in this order.",
		},
		Question: "On which list is the probe after its registration?", Form: "the list's name",
		After: "Until the worker comes, every hit still traps, but goes on in the detour buffer already. The worker first waits for all tasks: one may stand between two instructions that the jump is going to cover, as CPU 0 did.",
		By:    byProtocol, Start: "a", Lead: "amw7a5w10", Scenario: Scenario{Probes: "kprobe opt_yes", Calls: "opt_yes(1)\nopt_yes(2)", Release: "6.1"},
		kind: answerName, wrong: []wrongAnswer{
			{"unoptimizing", "On that list are probes whose jump is to be taken back."},
			{"freeing", "On that list are probes that nobody uses any more."},
		},
		solve: func(r *run) (string, error) {
			if _, err := r.step('m'); err != nil {
				return "", err
			}
			return r.lab.Kprobes.Queue(r.probes[0].at()), nil
		},
	},
	{
		Title: "The race that the wait prevents",
		Text: []string{
			"What happens if the jump is written without waiting? The worker is careless here: it writes all five bytes at once. Press Step of CPU 0 once: the CPU then stands at opt_yes+0x3, in the middle of the bytes that the jump will cover.",
			"Register the probe and step the worker. Look at the bytes at CPU 0's ip, and press Step of CPU 0 again.",
		},
		Question: "Which byte does CPU 0 execute next, as the first of an instruction?", Form: "two hexadecimal digits",
		After: "It is a byte of the jump's displacement, and no instruction that anybody has written. The worker's wait for all tasks (synchronize_rcu_tasks) prevents this: when it is over, no task stands inside the bytes. The int3 of text_poke would not help, because CPU 0 is past it. It prevents another race: a CPU that comes to the probed address and fetches the bytes while some are old and some are new.",
		By:    byInstruction, Lead: "amwa", Scenario: Scenario{Probes: "kprobe opt_yes", Calls: "opt_yes(1)", Careless: true, Release: "6.1"},
		kind: answerHex, wrong: []wrongAnswer{
			{"e9", "That is the jump's first byte. CPU 0 is past it: its ip is opt_yes+0x3."},
			{"48", "That byte was there before the jump was written."},
			{"cc", "A careless worker writes no int3, and CPU 0 is past the first byte."},
		},
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
			return fmt.Sprintf("%s+%#x", r.probes[0].Symbol, j.To), nil
		}
	}
	return "", errUnsolved
}
