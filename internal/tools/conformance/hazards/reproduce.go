package hazards

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"kprobelab/internal/qemu"
	"kprobelab/internal/qemu/frame"
	"kprobelab/internal/report"
	"kprobelab/kimage"
	"kprobelab/kprobes/hazard"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Case is a function of the module (module/cases.c) with an instruction to be probed.
type Case struct {
	Name string
	// Hazard is the hazard that the case shows, "" for a case without one.
	Hazard hazard.ID
	// Effect is the harm on a kernel that has the hazard. If it is a wrong result, the
	// function returns the value Without without the probe, and the value With with it.
	Effect        hazard.Effect
	Without, With uint64
}

var cases = []Case{
	{"nothing", "", "", 5, 5},
	{"halt", "HALT", hazard.Hang, 0, 0},
	{"mwait", "HALT", hazard.Hang, 0, 0},
	{"vex_cli", "VEX", hazard.WrongResult, 1, 0},
	{"vex_ja", "VEX", hazard.WrongResult, 0, 1},
	{"ret_imm", "RET_IMM", hazard.WrongResult, 0, 16},
	{"far_ret", "FAR_RET", hazard.WrongResult, 0, 8},
	{"loop_count", "LOOP_COUNT", hazard.WrongResult, 0, 1},
	{"loop_ecx", "LOOP_ECX", hazard.WrongResult, 0, 7},
	{"pushfw", "FLAGS_16", hazard.WrongResult, 2, 8},
	{"popfw", "FLAGS_16", hazard.WrongResult, 2, 8},
	{"last_int3", "LAST_INT3", hazard.Oops, 0, 0},
	{"other_fault", "OTHER_FAULT", hazard.Oops, 0, 0},
}

// Reproduction is the result of a Case.
type Reproduction struct {
	Case
	// Has: the kernel has the hazard.
	Has bool
	// Outcome and Where are as a Result's.
	Result Result
	// Returned: the function came back with the probe; it gave Bare without it, and
	// Probed with it.
	Returned     bool
	Bare, Probed uint64
}

// Verdict compares it with what was predicted.
func (r *Reproduction) Verdict() Verdict {
	switch {
	case r.Result.Outcome == NotTried || r.Result.Outcome == Refused:
		return NotShown
	case r.Has && r.Effect == hazard.WrongResult:
		return verdict(r.Returned && r.Result.Hits > 0 && r.Bare == r.Without && r.Probed == r.With)
	case r.Has && r.Effect != "":
		return r.Result.Verdict()
	}
	return verdict(r.Returned && r.Result.Outcome == Same && r.Result.Hits > 0 && r.Bare == r.Without && r.Probed == r.Without)
}

func (r *Reproduction) predicted() string {
	switch {
	case !r.Has:
		return "no harm"
	case r.Effect == hazard.WrongResult:
		return fmt.Sprintf("%s: returns %d in place of %d", r.Hazard, r.With, r.Without)
	}
	return fmt.Sprintf("%s: %s", r.Hazard, r.Effect)
}

func (r *Reproduction) happened() string {
	if r.Returned && r.Result.Outcome == Same {
		return fmt.Sprintf("returned %d, without the probe %d, hit %d times", r.Probed, r.Bare, r.Result.Hits)
	}
	return r.Result.happened()
}

// String is it in a line.
func (r *Reproduction) String() string {
	return marked(r.Verdict(), fmt.Sprintf("%s: predicted %s; %s", r.Name, r.predicted(), r.happened()))
}

var returned = regexp.MustCompile(`kprobelab_hazards: \S+ without the probe (\d+), with it (\d+), hits (\d+)`)

// read finds what the module said.
func (r *Reproduction) read(log string) {
	m := returned.FindStringSubmatch(log)
	if m == nil {
		return
	}
	r.Returned = true
	r.Bare, _ = strconv.ParseUint(m[1], 10, 64)
	r.Probed, _ = strconv.ParseUint(m[2], 10, 64)
	r.Result.Hits, _ = strconv.Atoi(m[3])
}

// reproduce runs the cases, each on a copy of the machine.
func (o *Options) reproduce(m *qemu.Machine, c *profile.Config, told func(*Reproduction)) []Reproduction {
	list := make([]Reproduction, len(cases))
	inParallel(len(cases), func(i int) {
		r := &list[i]
		r.Case = cases[i]
		r.Result = Result{Point: Point{Name: r.Name, Module: "name=" + r.Name, Hazard: r.Hazard, Effect: r.Effect}, Outcome: NotTried}
		if h, ok := hazard.ByID(r.Hazard); ok {
			r.Has = h.In(c)
		}
		o.together(m, []*Result{&r.Result})
		r.read(r.Result.log)
		told(r)
	})
	return list
}

// withModule is a booted machine that has the module, and any CPU feature that QEMU can
// emulate.
func (o *Options) withModule(say func(string)) (*qemu.Machine, error) {
	m := &qemu.Machine{
		QEMU: o.QEMU, Kernel: o.Kernel, CPU: "max", CPUs: 1, Limit: o.Limit, Init: o.Init, SurvivesOops: true, Megabytes: 512, Debugged: true,
		Files: map[string][]byte{frame.ModuleFile: o.Module},
	}
	from, err := o.booted(m, say)
	m.From = from
	return m, err
}

// others are the points that kprobe_events takes no probe at, or that no probe by itself
// makes: the hlt of the idle loop, and a return from __switch_to.
func (o *Options) others(m *qemu.Machine, img *kimage.Image, list []report.HazardPoint) (points []Point, err error) {
	idle, err := o.idles(m, img)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if p := &list[i]; p.Hazard == "HALT" && p.Addr.Addr == idle {
			if p.Effect.Harms() {
				points = append(points, planted(img, idle.Add(-1))) // sti
			}
			halt := planted(img, idle)
			halt.Hazard, halt.Effect = p.Hazard, p.Effect
			points = append(points, halt)
		}
	}
	if h, _ := hazard.ByID("SWITCH_RETURN"); h.In(img.Profile()) {
		for _, s := range img.Lookup("__switch_to") {
			p := planted(img, s.Addr)
			p.Name, p.Module, p.Hazard, p.Effect = "return of "+s.Name, p.Module+" return=1", h.ID, h.Effect
			points = append(points, p)
		}
	}
	return points, nil
}

// planted is a point at which the module sets a probe.
func planted(img *kimage.Image, at x86.Addr) Point {
	return Point{Addr: at, Name: nameOf(img, at), Workload: none, Module: fmt.Sprintf("at=%#x", uint64(at))}
}

// none is the workload that does nothing, so that the machine is idle.
const none = "none"

// idles is the address of the hlt that the machine waits in, 0 where it waits in
// another instruction.
func (o *Options) idles(m *qemu.Machine, img *kimage.Image) (at x86.Addr, err error) {
	err = m.Boot(func(r *qemu.Running) error {
		for range 10 { // it may just be busy
			at, err = stands(r)
			var code [1]byte
			if at--; err != nil || img.CodeAt(at, code[:]) == 1 && code[0] == hlt {
				return err
			}
			time.Sleep(look)
		}
		at = 0
		return nil
	})
	return at, err
}

const hlt = 0xF4

// stands stops the machine, and lets it go on.
func stands(r *qemu.Running) (x86.Addr, error) {
	d, err := r.Debug()
	if err != nil {
		return 0, err
	}
	defer d.Close()
	regs, err := d.Registers()
	return regs.IP(), err
}
