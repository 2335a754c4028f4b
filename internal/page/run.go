package page

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/internal/session"
	"kprobelab/internal/steptext"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/machine"
	"kprobelab/profile"
	"kprobelab/x86"
)

// run is a scenario's machine after some steps. The same scenario and the same
// steps are the same state to the byte: so a step back is a new run of all steps
// but the last, and nothing that a handler has done is left over.
type run struct {
	scenario Scenario
	img      *kimage.Image
	rules    *profile.Config
	lab      *kprobelab.Lab
	steps    []byte
	tasks    []*machine.Task
	calls    [][]*session.Call
	probes   []*planted
	// registered: the module has registered its probes; gone: and unregistered.
	registered, gone bool

	// before is the state before the last step, moments are the step's events, and now
	// is the state after it.
	before  moment
	moments []moment
	now     moment
	// counts has the number of moments of each step.
	counts []int
	// marks are the events of all steps, stales the CPUs with old bytes, stale those after the last step;
	// returned counts the calls of each CPU that have returned.
	marks    []Mark
	stales   []Stale
	stale    string
	returned [bounded.PageCPUs]int
	// failedAt are the addresses of the instructions at which CPUs have failed, 0 for none.
	failedAt [bounded.PageCPUs]x86.Addr
	// stepping is the CPU, the module or the worker that takes the step under way.
	stepping string
	// unseen: the step under way is not shown, so its moments are only counted.
	unseen bool
	// said is the kernel's log and the lines that handlers print.
	said []string
	// seen has the watched text as each CPU may still fetch it.
	seen [][]byte
	// watched is the text that is watched, original the instructions of each range.
	watched  []x86.Range
	original [][]original
	// writers are the events that wrote the bytes at the probed places.
	writers map[x86.Addr]writer
	// version is the release whose source lines are named.
	version profile.Version
	// texts are instructions in words, by address and bytes.
	texts map[string]string
}

// newRun makes the machine of a scenario, before its first step.
func newRun(img *kimage.Image, s Scenario) (*run, error) {
	r := &run{scenario: s, img: img, rules: img.Profile(), texts: map[string]string{}, writers: map[x86.Addr]writer{}, version: version(img, s)}
	if s.Release != "" {
		var err error
		if r.rules, err = rules(s.Release); err != nil {
			return nil, err
		}
	}
	if img.Core() != nil {
		return nil, fmt.Errorf("%s is the memory of a booted kernel, and the engine of this page does not go on with one", img.Name())
	}
	probes, err := s.probes()
	if err != nil {
		return nil, err
	}
	calls := lines(s.Calls)
	switch {
	case len(calls) == 0:
		return nil, errNoCalls
	case len(calls) > bounded.PageCPUs:
		return nil, fmt.Errorf("%d lines of calls are too many: a machine here has at most %d CPUs", len(calls), bounded.PageCPUs)
	}
	r.lab, err = kprobelab.New(img, &kprobelab.Options{
		Rules: r.rules, Engine: "interp", CPUs: len(calls), EveryInstruction: true, Optimize: true, Budget: 1_000_000,
	})
	if err != nil {
		return nil, err
	}
	if err := r.begin(calls, probes); err != nil {
		r.lab.Close()
		return nil, err
	}
	return r, nil
}

func (r *run) begin(calls []string, probes []probe) error {
	r.lab.Machine.OnLog(r.say)
	r.lab.Kprobes.OnLog(r.say)
	for _, p := range probes {
		at, err := r.watch(&p)
		if err != nil {
			return err
		}
		made, err := r.prepare(p)
		if err != nil {
			return err
		}
		made.planned = at
		r.probes = append(r.probes, made)
	}
	if err := r.start(calls); err != nil {
		return err
	}
	r.observe()
	for range calls {
		r.seen = append(r.seen, r.text())
	}
	r.wrote(0, -1, "")
	r.now = r.capture("", "")
	r.before = r.now
	return nil
}

// start gives each CPU a task with its calls.
func (r *run) start(calls []string) error {
	s := session.New(r.lab)
	for cpu, line := range calls {
		list, err := session.BindTask(r.img, line)
		if err != nil {
			return err
		}
		var all []machine.Invocation
		for _, c := range list {
			if c.System != "" {
				return fmt.Errorf("%s is a system call, which needs a booted kernel", c.System)
			}
			words, err := s.Words(c)
			if err != nil {
				return err
			}
			call := machine.Invocation{Addr: c.Symbol.Addr}
			for _, w := range words {
				call.Args = append(call.Args, w)
			}
			all = append(all, call)
			r.watchFunction(c.Symbol)
		}
		t, err := r.lab.Machine.Go(line, all...)
		if err == nil {
			err = t.Pin(cpu)
		}
		if err != nil {
			return err
		}
		r.tasks, r.calls = append(r.tasks, t), append(r.calls, list)
	}
	return nil
}

// observe makes a moment of each step of a hit, of the optimizer, and of a write to text.
func (r *run) observe() {
	r.lab.Kprobes.Observe(func(e kprobes.Event) {
		r.countJprobe(&e)
		m := r.capture(fmt.Sprintf("CPU %d", e.CPU), r.ofProbe(&e)+steptext.Hit(&e))
		m.hit, m.kind, m.sign, m.key = true, e.Kind, hitMarks[e.Kind], hitKey(e.Kind, e.Way)
		m.at, m.cpu, m.probe = e.Addr, e.CPU, e.Probe
		if e.Probe != nil {
			m.site = e.Probe.Addr
		}
		if e.Regs != nil && !r.unseen {
			m.frame[e.CPU] = true
			m.regs[e.CPU], m.has[e.CPU] = *e.Regs, true
			m.stack[e.CPU] = r.stackOf(x86.Addr(e.Regs.SP), e.Task)
		}
		r.add(m)
	})
	r.lab.Kprobes.ObserveOptimizer(func(e kprobes.OptEvent) {
		m := r.capture(r.stepping, steptext.Optimizer(&e))
		m.sign, m.key, m.at, m.probe = optMarks[e.Kind], optKey(e.Kind), e.Addr, e.Probe
		if e.Probe != nil {
			m.site = e.Probe.Addr
		}
		r.add(m)
	})
	r.lab.Machine.OnText(nil, func(cpu int) { r.seen[cpu] = r.text() })
}

// ofProbe names the probe of a handler where there are several.
func (r *run) ofProbe(e *kprobes.Event) string {
	switch e.Kind {
	case kprobes.EventPre, kprobes.EventPost, kprobes.EventReturnHandler:
	default:
		return ""
	}
	for i, p := range r.probes {
		if len(r.probes) > 1 && p.kprobe() == e.Probe {
			return fmt.Sprintf("probe %d (%s): ", i+1, p.text)
		}
	}
	return ""
}

// countJprobe counts the hits of jprobes, whose handlers run in the guest.
func (r *run) countJprobe(e *kprobes.Event) {
	for _, p := range r.probes {
		if p.jp != nil && e.Kind == kprobes.EventPre && e.Probe == &p.jp.KP {
			p.hits++
		}
	}
}

func (r *run) say(line string) { r.said = append(r.said, line) }

// watch shows the function that a probe is in, if it is there, and returns the probe's address.
func (r *run) watch(p *probe) (x86.Addr, error) {
	at := p.Addr
	if p.Symbol != "" {
		found := r.img.Lookup(p.Symbol)
		if len(found) == 0 {
			return 0, fmt.Errorf("%s has no symbol %q", r.img.Name(), p.Symbol)
		}
		at = found[0].Addr
	}
	at = at.Add(int64(p.Offset))
	if sym, ok := r.img.SymbolAt(at); ok {
		r.watchFunction(sym)
	}
	return at, nil
}

const (
	// maxWatched is the most functions that are shown, maxShown the most bytes of each.
	maxWatched = 4
	maxShown   = 160
)

func (r *run) watchFunction(sym kimage.Symbol) {
	for _, w := range r.watched {
		if w.Start == sym.Addr {
			return
		}
	}
	if len(r.watched) < maxWatched && sym.Size > 0 {
		r.watched = append(r.watched, x86.Range{Start: sym.Addr, End: sym.Addr.Add(int64(min(sym.Size, maxShown)))})
	}
}

// prepare makes a probe with handlers that say that they run.
func (r *run) prepare(p probe) (*planted, error) {
	made := &planted{probe: p}
	var to x86.Addr
	if p.to != "" {
		place, err := readProbe("kprobe " + p.to)
		if err != nil {
			return nil, err
		}
		if to = place.Addr; place.Symbol != "" {
			found := r.img.Lookup(place.Symbol)
			if len(found) == 0 {
				return nil, fmt.Errorf("%s has no symbol %q", r.img.Name(), place.Symbol)
			}
			to = found[0].Addr
		}
		to = to.Add(int64(place.Offset))
	}
	where := kprobes.Kprobe{SymbolName: p.Symbol, Addr: p.Addr, Offset: p.Offset}
	switch {
	case p.handler != "":
		made.jp = &kprobes.Jprobe{KP: where, EntrySymbol: p.handler}
	case p.Return:
		made.rp = &kprobes.Kretprobe{KP: where, MaxActive: p.MaxActive}
		made.rp.Handler = func(_ *kprobes.Instance, regs *x86.PtRegs) int {
			made.hits++
			r.say(fmt.Sprintf("%s: returned %#x", p.text, regs.AX))
			return 0
		}
	default:
		made.kp = &where
		made.kp.PreHandler = func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
			made.hits++
			r.handlerCalls(&p)
			r.say(fmt.Sprintf("%s: pre handler, ip = %s", p.text, r.symbol(x86.Addr(regs.IP))))
			if to == 0 {
				return 0
			}
			regs.IP = uint64(to)
			return 1
		}
		if p.post {
			made.kp.PostHandler = func(_ *kprobes.Kprobe, regs *x86.PtRegs, _ uint64) {
				r.say(fmt.Sprintf("%s: post handler, ip = %s", p.text, r.symbol(x86.Addr(regs.IP))))
			}
		}
	}
	return made, nil
}

// handlerCalls makes the call of a pre handler.
func (r *run) handlerCalls(p *probe) {
	if p.calls == "" {
		return
	}
	v, err := r.lab.Machine.Call(p.calls, 1)
	if err != nil {
		r.say(fmt.Sprintf("%s: %s(1): %v", p.text, p.calls, err))
		return
	}
	r.say(fmt.Sprintf("%s: %s(1) has returned %d", p.text, p.calls, int64(v)))
}

func (r *run) symbol(a x86.Addr) string { return place(r.lab.Machine.Symbolize(a)) }

// replay takes the steps of a schedule. Only the last one is shown.
func (r *run) replay(all []byte) error {
	defer func() { r.unseen = false }()
	for i, who := range all {
		r.unseen = i < len(all)-1
		if i == len(all)-1 && i > 0 {
			r.now = r.capture("", "")
		}
		ran, err := r.step(who)
		if err != nil {
			return err
		}
		if !ran {
			return errRequest
		}
	}
	return nil
}

// step takes one step of who. ran is false if it has nothing to do.
func (r *run) step(who byte) (ran bool, err error) {
	if len(r.steps) >= bounded.PageSteps {
		return false, errSteps
	}
	before, moments := r.now, r.moments
	r.moments, r.stepping = nil, nameOf(who)
	switch who {
	case 'm':
		ran = r.module()
	case 'w':
		ran = r.worker()
	default:
		ran = r.cpu(int(who - 'a'))
	}
	if !ran {
		r.moments = moments
		return false, nil
	}
	if err := r.lab.Kprobes.ClearErr(); err != nil {
		r.say("the kernel's BUG: " + err.Error())
	}
	if len(r.moments) > 0 {
		clear(r.texts) // what is named may have come or gone
	}
	r.before, r.now = before, r.capture("", "")
	r.steps, r.counts = append(r.steps, who), append(r.counts, len(r.moments))
	r.note(who)
	return true, nil
}

// nameOf names a schedule's letter.
func nameOf(who byte) string {
	switch who {
	case 'm':
		return "module"
	case 'w':
		return "worker"
	}
	return fmt.Sprintf("CPU %d", who-'a')
}

// module registers the probes, or unregisters them.
func (r *run) module() bool {
	switch {
	case r.gone || len(r.probes) == 0:
		return false
	case r.registered:
		for _, p := range r.probes {
			r.unregister(p)
		}
		r.gone = true
		r.event("unregister", "unregister", "module", "the module has unregistered its probes")
	default:
		r.registered = true
		planted, refused := 0, ""
		for _, p := range r.probes {
			if err := r.register(p); err != nil {
				refused += "; " + p.text + " is refused, " + errno.Of(err).Name()
				r.say(fmt.Sprintf("%s: refused, %s: %v", p.text, errno.Of(err).Name(), err))
				continue
			}
			planted++
			r.say(p.text + ": registered at " + r.symbol(p.at()))
		}
		text := "the module has registered its probes"
		if refused != "" {
			text = fmt.Sprintf("the module has registered %d of %d probes%s", planted, len(r.probes), refused)
		}
		r.event("register", "register", "module", text)
	}
	return true
}

func (r *run) register(p *planted) error {
	switch {
	case p.kp != nil:
		return r.lab.Kprobes.RegisterKprobe(p.kp)
	case p.rp != nil:
		return r.lab.Kprobes.RegisterKretprobe(p.rp)
	}
	return r.lab.Kprobes.RegisterJprobe(p.jp)
}

func (r *run) unregister(p *planted) {
	switch {
	case p.kp != nil:
		r.lab.Kprobes.UnregisterKprobe(p.kp)
	case p.rp != nil:
		r.lab.Kprobes.UnregisterKretprobe(p.rp)
	default:
		r.lab.Kprobes.UnregisterJprobe(p.jp)
	}
}

// worker lets the optimizer's worker take a step, or writes the jumps at once.
func (r *run) worker() bool {
	if r.scenario.Careless {
		return r.careless()
	}
	switch r.lab.Kprobes.WorkerStep() {
	case kprobes.Idle:
		return false
	case kprobes.Waiting:
		r.event("wait", "waiting", "worker", "a task is inside a call and has not given up its CPU yet: the worker goes on waiting")
	}
	return true
}

// torn is the size of the first of the two stores with which a careless patcher writes a jump, as a compiler copies five bytes.
const torn = 4

// careless writes each jump as a careless patcher would: without an int3, in two stores, a step each, while tasks may be in the
// middle of the bytes, and other CPUs may come to them.
func (r *run) careless() bool {
	done := false
	for _, p := range r.probes {
		if !r.carelessDue(p) {
			continue
		}
		d, _ := r.detour(p)
		key, text, at, store := "careless", "four bytes of the jump are written; no task was waited for, and there is no int3", p.at(), d.Jump[:torn]
		if bytes.Equal(r.read(p.at(), torn), store) {
			key, text, at, store = "careless-rest", "the jump's fifth byte is written", p.at().Add(torn), d.Jump[torn:]
		}
		if err := r.lab.Machine.PokeText(at, store); err != nil {
			r.say(err.Error())
			continue
		}
		done = true
		r.event("write", key, "worker", text)
	}
	return done
}

// carelessDue: a careless patcher would write the probe's jump now.
func (r *run) carelessDue(p *planted) bool {
	_, ok := r.detour(p)
	return ok && r.registered && !r.gone && r.lab.Kprobes.Queue(p.at()) != "" && !r.jumps(p)
}

// jumps: the jump is in place.
func (r *run) jumps(p *planted) bool {
	d, ok := r.detour(p)
	var b [x86.Rel32Size]byte
	return ok && r.lab.Machine.ReadMem(p.at(), b[:]) == nil && b == d.Jump
}

func (r *run) cpu(n int) bool {
	if n >= len(r.tasks) {
		return false
	}
	_, regs, _ := r.lab.Machine.Running(n)
	ran, err := r.lab.Machine.Step(n, 1)
	if r.tasks[n].Err() != nil && r.failedAt[n] == 0 {
		r.failedAt[n] = x86.Addr(regs.IP)
	}
	if err != nil {
		r.say(fmt.Sprintf("CPU %d: %v", n, err))
		return ran
	}
	return ran
}

// hash is a digest of all that decides the machine's further run, and of the counts.
func (r *run) hash(sub int) (string, error) {
	state, err := r.lab.Machine.StateHash()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	h.Write(state[:])
	fmt.Fprintln(h, sub, r.registered, r.gone, r.lab.Kprobes.List(), r.said)
	for _, p := range r.probes {
		fmt.Fprintln(h, p.text, p.hits, p.missed(), r.lab.Kprobes.Queue(p.at()))
	}
	for n := range r.tasks {
		fmt.Fprintln(h, r.lab.Kprobes.Pending(n+1), r.tasks[n].Results(), r.seen[n])
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8]), nil
}
