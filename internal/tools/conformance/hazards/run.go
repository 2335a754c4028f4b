package hazards

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"kprobelab"
	"kprobelab/internal/report"
	"kprobelab/internal/tools/qemu"
	"kprobelab/internal/tools/qemu/frame"
	"kprobelab/kimage"
	"kprobelab/kprobes/hazard"
	"kprobelab/x86"
)

// Options say what to try on which kernel.
type Options struct {
	QEMU, Kernel, CPU, Dir string
	Init                   []byte
	Points                 int
	Seed                   uint64
	Limit                  time.Duration
}

// ErrNotRun: the machine did not come as far as to be tried.
var ErrNotRun = errors.New("the guest did not run")

// Outcome is what came of a point.
type Outcome string

// The outcomes.
const (
	// Same: the workload wrote the same as without the probe, the kernel complained of
	// nothing, and the machine goes on.
	Same Outcome = "same"
	// Oopsed: the kernel reported an oops and went on without the task; Panicked: the
	// machine ended; Hung: nothing came within the time.
	Oopsed   Outcome = "oops"
	Panicked Outcome = "panic"
	Hung     Outcome = "hang"
	// Differed: the workload wrote something else, or the kernel complained.
	Differed Outcome = "differs"
)

// Point is a point that is tried.
type Point struct {
	Addr           x86.Addr
	Name, Workload string
	// Hazard is the predicted one, "" for a neighbour.
	Hazard hazard.ID
	Effect hazard.Effect
	// Lands is where control is predicted to come to, 0 where nowhere in particular.
	Lands x86.Addr
}

// Result is what came of it.
type Result struct {
	Point
	Outcome Outcome
	Hits    int
	// Landed: the machine was about to run what stands at Lands.
	Landed bool
	// Where is the oops's address by the kernel's own report.
	Where string
	// Note is what else there is to say.
	Note string
}

// Agrees reports whether it is as predicted: a hazard comes to where it is said to, and
// does harm; a neighbour is hit and does not.
func (r *Result) Agrees() bool {
	if r.Hazard == "" {
		return r.Outcome == Same && r.Hits > 0
	}
	if r.Lands != 0 && !r.Landed {
		return false
	}
	return r.Outcome != Same || r.Effect == hazard.WrongRegister || r.Effect == hazard.WrongResult
}

// Run boots the kernel once, saves the machine, and tries each drawn point on a
// copy of its own.
func (o *Options) Run(say func(string)) (*Report, error) {
	img, err := kprobelab.OpenImage(o.Kernel, &kimage.Options{CPU: o.CPU})
	if err != nil {
		return nil, err
	}
	say("listing the hazards of " + filepath.Base(o.Kernel))
	list, err := report.HazardPoints(img, nil)
	if err != nil {
		return nil, err
	}
	d := newDraw(img, list, rand.New(rand.NewPCG(o.Seed, 0)))
	m := &qemu.Machine{
		QEMU: o.QEMU, Kernel: o.Kernel, CPU: o.CPU, CPUs: 1, Limit: o.Limit, Init: o.Init, SurvivesOops: true, Megabytes: 512, Debugged: true,
		Files: map[string][]byte{frame.DefinitionsFile: []byte(d.definitions())},
	}
	say(fmt.Sprintf("%d points can be asked for by kprobe_events", len(d.candidates)))
	if m.From, err = o.booted(m, say); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRun, err)
	}
	var hits []byte
	say("looking which of them the workloads come to")
	err = m.Boot(func(r *qemu.Running) (err error) {
		if err = r.Tell(Discover); err == nil {
			hits, err = wait(r, Hits)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRun, err)
	}
	reached := d.reached(hits)
	points := d.points(o.Points)
	out := &Report{Listed: len(list), Candidates: len(d.candidates), Reached: reached, CPU: o.CPU, Seed: o.Seed}
	say(fmt.Sprintf("%d of them are reached; %d points and neighbours are drawn", reached, len(points)))
	m.Limit = 4 * time.Minute
	for i := range points {
		r := o.try(m, &points[i])
		out.Results = append(out.Results, r)
		say(fmt.Sprintf("%3d/%d  %s", i+1, len(points), r.String()))
	}
	return out, nil
}

// booted is a file with the machine as it is when init is ready. It is kept in the
// folder: a run that was stopped needs no other boot.
func (o *Options) booted(m *qemu.Machine, say func(string)) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, m.CPU, m.CPUs, m.Megabytes)
	h.Write(m.Init)
	h.Write(m.Files[frame.DefinitionsFile])
	state := filepath.Join(o.Dir, fmt.Sprintf("%s-%x", filepath.Base(o.Kernel), h.Sum(nil)[:8]))
	if _, err := os.Stat(state); err == nil {
		return state, nil
	}
	say("booting")
	if err := m.Boot(func(r *qemu.Running) error { return save(r, state+".part") }); err != nil {
		return "", err
	}
	return state, os.Rename(state+".part", state)
}

// save waits until init is ready, and saves the machine.
func save(r *qemu.Running, state string) error {
	if _, err := wait(r, Ready); err != nil {
		return err
	}
	time.Sleep(time.Second) // init reads its console now
	return r.Save(state)
}

// wait reads frames to the one with that name.
func wait(r *qemu.Running, want string) ([]byte, error) {
	for {
		name, data, err := r.Frame()
		switch {
		case err != nil:
			return nil, err
		case name == want:
			return data, nil
		case name == frame.Failed:
			return nil, errors.New("init: " + string(data))
		}
	}
}

// patience is how long a machine may be silent before it counts as hung.
const patience = 100 * time.Second

// try runs the point's workload with the probe on a copy of the machine.
func (o *Options) try(m *qemu.Machine, p *Point) Result {
	out := Result{Point: *p, Outcome: Hung}
	err := m.Boot(func(r *qemu.Running) error {
		defer func() { out.read(r.Console()) }()
		landed, err := watch(r, p.Lands)
		if err != nil {
			return err
		}
		if err := r.Tell(fmt.Sprintf("%s %s p:%s/h %v", Try, p.Workload, frame.Group, p.Addr)); err != nil {
			return err
		}
		out.follow(r)
		out.Landed = <-landed
		return nil
	})
	if err != nil {
		out.Note = strings.SplitN(err.Error(), "\n", 2)[0]
	}
	return out
}

// watch lets the machine go on, and tells whether it comes to an address. There it is
// told so once, and let go on.
func watch(r *qemu.Running, at x86.Addr) (<-chan bool, error) {
	landed := make(chan bool, 1)
	if at == 0 {
		landed <- false
		return landed, nil
	}
	d, err := r.Debug()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(d.BreakAt(at), d.Go()); err != nil {
		return nil, err
	}
	go func() {
		_, err := d.Stopped(patience)
		if err == nil {
			_ = d.Clear(at)
		}
		_ = d.Close()
		landed <- err == nil
	}()
	return landed, nil
}

// follow reads what init says of the workload.
func (out *Result) follow(r *qemu.Running) {
	type said struct {
		name string
		data []byte
		err  error
	}
	frames := make(chan said, 4)
	go func() {
		for {
			name, data, err := r.Frame()
			frames <- said{name, data, err}
			if err != nil {
				return
			}
		}
	}()
	for {
		select {
		case f := <-frames:
			var t Tried
			switch {
			case f.err != nil:
				out.Outcome = Panicked
				return
			case json.Unmarshal(f.data, &t) != nil:
				out.Note = string(f.data)
				return
			case f.name == Ran:
				if out.ran(&t); out.Hazard != "" || t.Refused != "" {
					return
				}
			case f.name == Alive:
				if out.Outcome == Same && (t.After != t.Before || t.StatusAfter != t.StatusBefore) {
					out.Outcome, out.Note = Differed, "after the probe: "+difference(t.Before, t.After)
				}
				return
			}
		case <-time.After(patience):
			if out.Outcome == Same || out.Outcome == Hung {
				out.Outcome = Hung
			}
			return
		}
	}
}

// complaints are words of the kernel's that tell of trouble.
var complaints = regexp.MustCompile(`BUG:|Oops|general protection|invalid opcode|WARNING:|kernel BUG|stack-protector|soft lockup|rcu.*stall|int3:|divide error`)

// ran judges what the workload did with the probe.
func (out *Result) ran(t *Tried) {
	out.Hits = t.Hits
	out.read(t.Log)
	switch {
	case t.Refused != "":
		out.Outcome, out.Note = Differed, "refused: "+t.Refused
	case out.Where != "" || complaints.MatchString(t.Log):
		out.Outcome = Oopsed
	case t.Status == NotEnded:
		out.Outcome = Hung
	case t.With != t.Before || t.Status != t.StatusBefore:
		out.Outcome, out.Note = Differed, difference(t.Before, t.With)
	default:
		out.Outcome = Same
	}
}

var rip = regexp.MustCompile(`RIP: 0010:(\S+?)(?:/0x\S+)?\s`)

// read finds the address of the first oops.
func (out *Result) read(log string) {
	if m := rip.FindStringSubmatch(log + "\n"); m != nil && out.Where == "" {
		out.Where = m[1]
	}
}

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
	predicted := "no harm"
	if r.Hazard != "" {
		predicted = fmt.Sprintf("%s, %s", r.Hazard, r.Effect)
	}
	text := fmt.Sprintf("%s by %s: predicted %s; %s", r.Name, r.Workload, predicted, r.happened())
	if !r.Agrees() {
		text = "NOT AS PREDICTED: " + text
	}
	return text
}

func (r *Result) happened() string {
	text := string(r.Outcome)
	if r.Where != "" {
		text += " at " + r.Where
	}
	if r.Landed {
		text += ", came to where it was to"
	}
	if r.Note != "" {
		text += " (" + r.Note + ")"
	}
	return text
}
