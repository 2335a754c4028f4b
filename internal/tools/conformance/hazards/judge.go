package hazards

import (
	"fmt"
	"regexp"
	"strings"

	"kprobelab/kprobes/hazard"
	"kprobelab/x86"
)

// Outcome is the result of the try at a point.
type Outcome string

// The outcomes.
const (
	// Same: the workload wrote the same as without the probe, the kernel complained of
	// nothing, and the machine goes on.
	Same Outcome = "same"
	// Oopsed: the kernel reported an oops; Panicked: the machine ended; Hung: the CPU is
	// halted with interrupts off, or nothing comes from it.
	Oopsed   Outcome = "oops"
	Panicked Outcome = "panic"
	Hung     Outcome = "hang"
	// Complained: the kernel went on with a warning; Differed: the workload wrote
	// something else.
	Complained Outcome = "complaint"
	Differed   Outcome = "differs"
	// Refused: the kernel takes no probe there. NotTried: the machine could not be asked.
	Refused  Outcome = "refused"
	NotTried Outcome = "not tried"
)

var allOutcomes = []Outcome{Oopsed, Panicked, Hung, Complained, Differed, Same, Refused, NotTried}

// Point is a point that is tried.
type Point struct {
	Addr           x86.Addr
	Name, Workload string
	// Hazard is the predicted one, "" for a neighbour.
	Hazard hazard.ID
	Effect hazard.Effect
	// Lands is the wrong address that control is predicted to reach, 0 if there is none.
	// Next is the right one. A neighbour has its hazard's addresses; from a neighbour,
	// control must not reach Lands.
	Lands, Next x86.Addr
	// Module is the parameters of the module that sets the probe, "" for kprobe_events.
	Module string
}

// Result is the result of the try at a Point.
type Result struct {
	Point
	Outcome Outcome
	Hits    int
	// Landed: the machine was about to run what stands at Lands.
	Landed bool
	// Register names a register with a wrong value at Next, and both values; "" if no
	// difference was seen.
	Register string
	// Where is the oops's address by the kernel's own report.
	Where string
	// Note is a remark for the table, "" for none.
	Note string
	// log holds the kernel's messages while the probe was on.
	log string
}

// Verdict compares what happened with what was predicted.
type Verdict string

// The verdicts.
const (
	AsPredicted Verdict = "as predicted"
	// NotShown: the workload did not come to the point, or did and no difference was seen
	// where one can stay unseen.
	NotShown       Verdict = "not shown"
	NotAsPredicted Verdict = "not as predicted"
)

// Verdict of a hazard: control comes to where it is said to, and the effect is that
// which is said. Of a neighbour: it is hit, and nothing happens.
func (r *Result) Verdict() Verdict {
	switch {
	case r.Outcome == Refused && r.Hazard != "":
		return verdict(r.Effect == hazard.Refused)
	case r.Outcome == NotTried, r.Outcome == Refused, r.Outcome == Same && !r.Landed && r.Hits == 0:
		return NotShown
	case r.Hazard == "":
		return verdict(r.Outcome == Same && !r.Landed)
	case r.Lands != 0 && !r.Landed:
		return NotAsPredicted
	}
	switch r.Effect {
	case hazard.Refused:
		return NotAsPredicted
	case hazard.Hang:
		return verdict(r.Outcome == Hung)
	case hazard.WrongResult, hazard.WrongRegister:
		if r.Register == "" && r.Outcome == Same {
			return NotShown
		}
		return verdict(r.Register != "" || r.Outcome == Differed)
	}
	return verdict(r.Outcome != Same)
}

func verdict(agrees bool) Verdict {
	if agrees {
		return AsPredicted
	}
	return NotAsPredicted
}

// complaints are words of the kernel's that tell of trouble.
var complaints = regexp.MustCompile(`BUG:|Oops|general protection|invalid opcode|WARNING:|kernel BUG|stack-protector|soft lockup|rcu.*stall|int3:|divide error`)

// ran judges what the workload did with the probe.
func (r *Result) ran(t *Tried) {
	r.Hits, r.log = t.Hits, t.Log
	s := spotter{found: make(chan spotted, 1)}
	_, _ = s.Write([]byte(t.Log))
	switch {
	case t.Refused != "":
		r.Outcome, r.Note = Refused, t.Refused
	case len(s.found) > 0:
		r.spot(<-s.found)
	case t.Status == NotEnded:
		r.Outcome = Hung
	case complaints.MatchString(t.Log):
		r.Outcome, r.Note = Complained, complaints.FindString(t.Log)
	case t.With != t.Before || t.Status != t.StatusBefore:
		r.Outcome, r.Note = Differed, difference(t.Before, t.With)
	default:
		r.Outcome = Same
	}
}

// alive judges what came after the probe was off again.
func (r *Result) alive(t *Tried) {
	switch {
	case r.Outcome != Same:
	case t.After != t.Before || t.StatusAfter != t.StatusBefore:
		r.Outcome, r.Note = Differed, "after the probe: "+difference(t.Before, t.After)
	case complaints.MatchString(t.Log):
		r.Outcome, r.Note = Complained, "after the probe: "+complaints.FindString(t.Log)
	}
}

func (r *Result) spot(f spotted) { r.Outcome, r.Where = f.outcome, f.where }

// difference is the first line that differs.
func difference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range x {
		if i >= len(y) {
			return fmt.Sprintf("%q, and then nothing", x[i])
		}
		if x[i] != y[i] {
			return fmt.Sprintf("%q, not %q", y[i], x[i])
		}
	}
	return "its end"
}

// String is the result in a line.
func (r *Result) String() string {
	return marked(r.Verdict(), fmt.Sprintf("%s by %s: predicted %s; %s", r.Name, r.Workload, r.predicted(), r.happened()))
}

// marked says the verdict first, unless all is as predicted.
func marked(v Verdict, text string) string {
	if v == AsPredicted {
		return text
	}
	return strings.ToUpper(string(v)) + ": " + text
}

func (r *Result) predicted() string {
	if r.Hazard == "" {
		return "no harm"
	}
	return fmt.Sprintf("%s: %s", r.Hazard, r.Effect)
}

func (r *Result) happened() string {
	text := string(r.Outcome)
	if r.Where != "" {
		text += " at " + r.Where
	}
	if r.Landed {
		text += fmt.Sprintf(", came to +%#x", uint64(r.Lands.Sub(r.Addr)))
	}
	if r.Register != "" {
		text += ", " + r.Register
	}
	if r.Note != "" {
		text += " (" + r.Note + ")"
	}
	return text
}
