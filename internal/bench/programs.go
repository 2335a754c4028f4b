package bench

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"kprobelab"
	"kprobelab/booted"
	"kprobelab/errno"
	"kprobelab/internal/systemcall"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/machine"
	"kprobelab/x86"
)

// ProgramWay is a way to detect that a program has reached a place.
type ProgramWay struct {
	Name      string
	Describes string
	function  userCode
	// definition is the event's first letter: p or r; "" for a debugger.
	definition string
	// documented is the cost in the documentation of the first uprobes, in microseconds; 0 if it
	// has none.
	documented float64
}

// DocumentedOn is the processor of the documented figures, with its costs of a kprobe and a return
// probe, in microseconds: SystemTap's runtime/uprobes/uprobes.txt, "Probe Overhead", and
// kprobes.rst.
var DocumentedOn = struct {
	Name            string
	Kprobe, Returns float64
}{"Intel Pentium M, 1495 MHz, in 2007", 0.57, 0.92}

// ProgramWays lists all ways. All run the kernel's own code: a uprobe's hit includes its record in
// the trace buffer, a debugger's hit the debugger's work.
func ProgramWays() []ProgramWay {
	return []ProgramWay{
		{"ptrace", "a debugger: int3 by POKETEXT, and the step over it", stepped, "", 0},
		{"step", "a uprobe whose instruction is stepped in the XOL area", stepped, "p", 2.9},
		{"emulated", "a uprobe on push, which the kernel emulates", push, "p", 0},
		{"nop5", "a uprobe on a nop of five bytes: stepped, or emulated; from 6.18 to 7.1 a call in its place", nop5, "p", 0},
		{"nop10", "a uprobe on a nop of ten bytes: emulated; from 7.2 a call in its place", nop10, "p", 0},
		{"return", "a uretprobe on a function that begins with an emulated instruction", push, "r", 4.7},
	}
}

// ProgramOptions are the choices of Programs.
type ProgramOptions struct {
	// Open opens a booted kernel's dump.
	Open func() (*kimage.Image, error)
	// Rounds is the number of measurements of each way, each one unprobed and probed. Hits is the
	// number of calls of the function in each. 0 means 21 and 1,000.
	Rounds, Hits int
	// Hardware is the processor of the modelled figures; the documentation's x86-64 by default.
	Hardware Hardware
	// Progress, where set, is called with the progress.
	Progress func(stage string, done, total int64)
}

// ProgramResult is the cost of a way: for a hit, probed minus unprobed.
type ProgramResult struct {
	Way       string `json:"way"`
	Describes string `json:"describes"`
	// NS is nanoseconds of the host, the median of the rounds; Low and High are their
	// quartiles.
	NS   float64 `json:"ns"`
	Low  float64 `json:"low_ns"`
	High float64 `json:"high_ns"`
	// Instructions are the guest's, in user mode and in the kernel. Switches are the switches from
	// one process to another.
	Instructions float64 `json:"instructions"`
	Switches     float64 `json:"switches"`
	// Traps are int3s, Steps traps after one instruction, SystemCalls the system calls that replace
	// a trap.
	Traps       float64 `json:"traps"`
	Steps       float64 `json:"steps"`
	SystemCalls float64 `json:"system_calls"`
	// Modelled is microseconds of the hardware for the traps and steps; 0 for a debugger,
	// whose switches have no documented cost.
	Modelled float64 `json:"modelled_us"`
	// Documented is microseconds in the documentation of the first uprobes, on DocumentedOn; they stepped
	// every instruction.
	Documented float64 `json:"documented_us,omitempty"`
}

// ProgramReport is a run of Programs.
type ProgramReport struct {
	Release string          `json:"release"`
	Ways    []ProgramResult `json:"ways"`
	// Skipped are the ways that the kernel refuses.
	Skipped  []Skipped `json:"skipped,omitempty"`
	Rounds   int       `json:"rounds"`
	Hits     int       `json:"hits"`
	Hardware Hardware  `json:"hardware"`
}

// The kernel's files, and the program's path.
const (
	programFile  = "/kprobelab-bench"
	uprobeEvents = "/sys/kernel/tracing/uprobe_events"
	uprobeEnable = "/sys/kernel/tracing/events/kprobelab/u/enable"
	uprobeHits   = "/sys/kernel/tracing/uprobe_profile"
)

// What open of Linux takes.
const (
	openWrite  = 0x1
	openCreate = 0x40
	openFresh  = 0x200
	atCWD      = -100
)

// Programs measures the ways on a booted kernel's dump. The error is an error of opening the dump,
// or ErrUnmeasurable if the kernel has no uprobes, or does not do as requested.
func Programs(o *ProgramOptions) (*ProgramReport, error) {
	opt := *o
	if opt.Rounds == 0 {
		opt.Rounds = 21
	}
	if opt.Hits == 0 {
		opt.Hits = 1_000
	}
	if opt.Hardware.Name == "" {
		opt.Hardware = published[0]
	}
	if opt.Rounds < 0 || opt.Rounds > MaxRounds || opt.Hits < 0 || opt.Hits > MaxHits {
		return nil, fmt.Errorf("%d rounds of %d hits: it can be 1 to %d of 1 to %d: %w", opt.Rounds, opt.Hits, MaxRounds, MaxHits, errno.EINVAL)
	}
	img, err := opt.Open()
	if err != nil {
		return nil, err
	}
	if img.Core() == nil {
		return nil, fmt.Errorf("%s: %w: programs run on a booted kernel's dump only (kprobelab boot makes one)", img.Name(), ErrUnmeasurable)
	}
	elf, err := programELF()
	if err != nil {
		return nil, err
	}
	r := &ProgramReport{Release: img.Fact("release").Value, Rounds: opt.Rounds, Hits: opt.Hits, Hardware: opt.Hardware}
	ways := ProgramWays()
	done := func(way, round int) {
		if opt.Progress != nil {
			opt.Progress("measure", int64(way*opt.Rounds+round), int64(len(ways)*opt.Rounds))
		}
	}
	for i := range ways {
		result, err := opt.way(img, elf, &ways[i], func(round int) { done(i, round) })
		if errors.Is(err, errUnprobed) {
			r.Skipped = append(r.Skipped, Skipped{Path: ways[i].Name, Reason: err.Error()})
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ways[i].Name, err)
		}
		r.Ways = append(r.Ways, *result)
	}
	return r, nil
}

// way measures one, on two machines of the same dump.
func (o *ProgramOptions) way(img *kimage.Image, elf []byte, w *ProgramWay, done func(round int)) (*ProgramResult, error) {
	plain, err := o.programs(img, elf, w, false)
	if err != nil {
		return nil, err
	}
	defer plain.lab.Close()
	probed, err := o.programs(img, elf, w, true)
	if err != nil {
		return nil, err
	}
	defer probed.lab.Close()
	without, err := plain.round()
	if err != nil {
		return nil, err
	}
	with, err := probed.counted()
	if err != nil {
		return nil, err
	}
	n := float64(o.Hits)
	r := &ProgramResult{
		Way: w.Name, Describes: w.Describes, Documented: w.documented,
		Switches: round2(max(0, float64(with.switches)-float64(without.switches)) / n),
		Traps:    round2(float64(with.traps) / n), Steps: round2(float64(with.steps) / n), SystemCalls: round2(float64(with.calls) / n),
	}
	if w.definition != "" {
		r.Modelled = round4(o.Hardware.Cost(Parts{Traps: r.Traps, Steps: r.Steps}))
	}
	var samples, instructions []float64
	for i := range o.Rounds {
		without, err := plain.round()
		if err != nil {
			return nil, err
		}
		with, err := probed.round()
		if err != nil {
			return nil, err
		}
		samples = append(samples, float64(with.time-without.time)/n)
		instructions = append(instructions, (float64(with.instructions)-float64(without.instructions))/n)
		done(i + 1)
	}
	r.Low, r.NS, r.High = quartiles(samples)
	_, r.Instructions, _ = quartiles(instructions)
	r.Instructions = round2(r.Instructions)
	return r, nil
}

// programs is a machine on which the program is run.
type programs struct {
	lab    *kprobelab.Lab
	kernel *booted.Kernel
	clean  *machine.Snapshot
	way    *ProgramWay
	hits   int
	// debugged: the program has a debugger.
	debugged bool
}

// programs makes a machine with the program, and with the probe if it is to have one.
func (o *ProgramOptions) programs(img *kimage.Image, elf []byte, w *ProgramWay, probed bool) (p *programs, err error) {
	const perHit, start = 1_000_000, 1_000_000_000 // far more instructions than either takes
	l, err := kprobelab.New(img, &kprobelab.Options{Budget: start + perHit*uint64(o.Hits)})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			l.Close()
		}
	}()
	k, err := l.Booted()
	if err != nil {
		return nil, err
	}
	p = &programs{lab: l, kernel: k, way: w, hits: o.Hits}
	if err := p.write(programFile, openWrite|openCreate|openFresh, elf); err != nil {
		return nil, err
	}
	// What the kernel has put off until then is done with the first program.
	if _, err := p.run(); err != nil {
		return nil, err
	}
	p.debugged = probed && w.definition == ""
	if w.definition != "" {
		event := fmt.Sprintf("%s:kprobelab/u %s:%#x", w.definition, programFile, w.function.offset())
		if err := p.write(uprobeEvents, openWrite, []byte(event)); err != nil {
			return nil, err
		}
	}
	if probed && w.definition != "" {
		if err := p.write(uprobeEnable, openWrite, []byte("1")); err != nil {
			return nil, err
		}
	}
	p.clean, err = l.Machine.Snapshot()
	return p, err
}

// write writes a file of the kernel, by its system calls.
func (p *programs) write(path string, flags int, b []byte) error {
	call := func(name string, args ...any) (int64, error) {
		v, err := p.kernel.SystemCall(name, args...)
		if err == nil && v < 0 {
			err = errno.Errno(-v)
		}
		if err != nil {
			return v, fmt.Errorf("%w: %s of the kernel's %s: %w", ErrUnmeasurable, name, path, err)
		}
		return v, nil
	}
	const executable = 0o755
	fd, err := call("openat", atCWD, path, flags, executable)
	if err != nil {
		return err
	}
	if n, err := call("write", fd, b, len(b)); err != nil {
		return err
	} else if n != int64(len(b)) {
		return fmt.Errorf("%w: write of the kernel's %s: %d of %d bytes", ErrUnmeasurable, path, n, len(b))
	}
	_, err = call("close", fd)
	return err
}

// programRun is one run of the program.
type programRun struct {
	time         time.Duration
	instructions uint64
	switches     uint64
	// traps, steps and calls are the counts of a counted run.
	traps, steps, calls uint64
}

// round runs the program from the same state each time.
func (p *programs) round() (*programRun, error) {
	if err := p.lab.Machine.Restore(p.clean); err != nil {
		return nil, err
	}
	return p.run()
}

func (p *programs) run() (*programRun, error) {
	way := "r"
	if p.debugged {
		way = "d"
	}
	var out, bad bytes.Buffer
	before, start := p.lab.Machine.Instructions(), time.Now()
	code, err := p.kernel.Exec(&booted.Program{
		Args:   []string{programFile, fmt.Sprint(uint64(p.way.function.addr())), fmt.Sprint(p.hits), way},
		Stdout: &out, Stderr: &bad,
	})
	r := &programRun{time: time.Since(start), instructions: p.lab.Machine.Instructions() - before}
	if err != nil {
		return nil, err
	}
	if code != 0 || out.Len() != 16 {
		return nil, fmt.Errorf("%w: the program ended with %d", ErrUnmeasurable, code)
	}
	hits := binary.LittleEndian.Uint64(out.Bytes())
	r.switches = binary.LittleEndian.Uint64(out.Bytes()[8:])
	if p.debugged && hits != uint64(p.hits) {
		return nil, fmt.Errorf("%w: the debugger saw %d hits of %d", ErrUnmeasurable, hits, p.hits)
	}
	return r, nil
}

// counters are functions that the kernel calls once for each counted event; the first one that
// exists is used.
var counters = []struct {
	count     func(*programRun) *uint64
	functions []string
}{
	{func(r *programRun) *uint64 { return &r.traps }, []string{"uprobe_pre_sstep_notifier"}},
	{func(r *programRun) *uint64 { return &r.steps }, []string{"uprobe_post_sstep_notifier"}},
	{func(r *programRun) *uint64 { return &r.calls }, []string{systemcall.Wrapped + "uprobe", systemcall.Wrapped + "uretprobe"}},
}

// counted makes a round in which probes of ours count the kernel's events.
func (p *programs) counted() (*programRun, error) {
	if err := p.lab.Machine.Restore(p.clean); err != nil {
		return nil, err
	}
	var counts programRun
	var planted []*kprobes.Kprobe
	if !p.debugged {
		for _, c := range counters {
			for _, name := range c.functions {
				at := p.lab.Image.Lookup(name)
				if len(at) == 0 {
					continue
				}
				k := &kprobes.Kprobe{Addr: at[0].Addr, PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { *c.count(&counts)++; return 0 }}
				if err := p.lab.Kprobes.RegisterKprobe(k); err != nil {
					return nil, fmt.Errorf("%w: %s cannot be probed: %w", ErrUnmeasurable, name, err)
				}
				planted = append(planted, k)
			}
		}
	}
	r, err := p.run()
	for _, k := range planted {
		p.lab.Kprobes.UnregisterKprobe(k)
	}
	if err != nil {
		return nil, err
	}
	r.traps, r.steps, r.calls = counts.traps, counts.steps, counts.calls
	if p.debugged { // its protocol, which the program has counted
		r.traps, r.steps = uint64(p.hits), uint64(p.hits)
		return r, nil
	}
	return r, p.all()
}

// errUnprobed: a uprobe is planted when the file is mapped, and then refused without a word.
var errUnprobed = errors.New("the kernel takes the event, and plants no uprobe on this instruction")

// all checks that the kernel itself has counted every call as a hit.
func (p *programs) all() error {
	var text strings.Builder
	b := make([]byte, 4096)
	fd, err := p.kernel.SystemCall("openat", atCWD, uprobeHits, 0, 0)
	if err != nil {
		return err
	}
	for {
		n, err := p.kernel.SystemCall("read", fd, b, len(b))
		if err != nil {
			return err
		}
		if n <= 0 {
			break
		}
		text.Write(b[:n])
	}
	fields := strings.Fields(text.String())
	switch {
	case len(fields) > 2 && fields[2] == "0":
		return errUnprobed
	case len(fields) < 3 || fields[2] != fmt.Sprint(p.hits):
		return fmt.Errorf("%w: the kernel says of %d calls: %q", ErrUnmeasurable, p.hits, strings.TrimSpace(text.String()))
	}
	return nil
}
