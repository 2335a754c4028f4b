package report

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"kprobelab/bpf/answer"
	"kprobelab/errno"
	"kprobelab/internal/systemcall"
	"kprobelab/kimage"
	"kprobelab/kprobes/hazard"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
)

// Check is the matrix of probes by images: would each probe of a tool attach,
// and how would it run.
type Check struct {
	Images []CheckImage `json:"images"`
	Probes []CheckRow   `json:"probes"`
	// Refused counts the cells that do not attach. NotAsked counts the cells without an
	// answer, because the program attaches to no code of a kernel.
	Refused  int `json:"refused"`
	NotAsked int `json:"not_asked"`
	// Hazardous counts the cells that attach and then do harm, by a hazard that is not in Allow.
	Hazardous int                `json:"hazardous"`
	Allow     map[hazard.ID]bool `json:"-"`
	// LoadAsked: booted kernels were asked to load the programs. NotLoaded counts the cells with a program that one refused.
	LoadAsked bool `json:"load_asked"`
	NotLoaded int  `json:"not_loaded"`
	// Passed counts the cells with faults that the gate lets pass; Waivers are its waivers.
	Passed  int         `json:"passed"`
	Waivers []WaiverUse `json:"waivers,omitempty"`

	// failed counts the cells that fail, by the kind of their first fault.
	failed map[string]int
}

// CheckImage is a column.
type CheckImage struct {
	// Name is the name the image was opened by. Asked is the word of --kernel, "" for a file.
	Name    string `json:"name"`
	Asked   string `json:"asked,omitempty"`
	Release string `json:"release"`
	Profile string `json:"profile"`
	// Standing says how far the profile can be trusted (kimage's Standing).
	Standing string `json:"standing"`
	CPU      string `json:"cpu"`
	// Distribution, Package and BuildID tell the kernels of an archive apart: the
	// builder, its package's version, and the linker's id.
	Distribution string `json:"distribution,omitempty"`
	Package      string `json:"package,omitempty"`
	BuildID      string `json:"build_id,omitempty"`
	// NoHazards: the hazards are unknown; an older file of an archive has none.
	NoHazards bool `json:"no_hazards,omitempty"`

	// apart follows the release where another kernel of the list has the same.
	apart string
}

// CheckRow is one probe with its answer of each image, in their order.
type CheckRow struct {
	Probe
	Cells []CheckCell `json:"images"`
}

// Found says which symbols of an image have a name.
type Found string

// The answers for a name.
const (
	// FoundUnique: one symbol of the kernel has it.
	FoundUnique Found = "unique"
	// FoundSeveral: several have it.
	FoundSeveral Found = "several"
	// FoundClone: no symbol has it, but the compiler left copies or parts of the
	// function with a suffix.
	FoundClone Found = "clone"
	// FoundModule: only a loaded module has it.
	FoundModule Found = "module"
	// FoundPackage: only modules of the kernel's package have it, none of which is
	// loaded; the answer is for the kernel with the first of them loaded.
	FoundPackage Found = "package"
	// FoundAddress: the probe has an address, no name.
	FoundAddress Found = "address"
	// FoundPattern: a pattern, which matched.
	FoundPattern Found = "pattern"
	// FoundAbsent: nothing has it.
	FoundAbsent Found = "absent"
)

// How an accepted probe runs.
const (
	RunsFtrace    = "ftrace"
	RunsOptimized = "optimized"
	RunsInt3      = "int3"
	// RunsTrampoline: a call at the fentry site leads to the BPF program.
	RunsTrampoline = "trampoline"
	// RunsTracepoint: the tracepoint calls the program.
	RunsTracepoint = "tracepoint"
	// RunsIterator: the iterator calls the program.
	RunsIterator = "iterator"
)

// CheckCell is one image's answer for one probe.
type CheckCell struct {
	Found Found `json:"symbol"`
	// Others are the clones, the modules, or the addresses of a name that has
	// several.
	Others []string `json:"others,omitempty"`
	// Matches counts the functions that a pattern matches; Attached counts those of
	// them that take the probe.
	Matches  int `json:"matches,omitempty"`
	Attached int `json:"attached,omitempty"`
	// Chosen is the alternative of a group that attaches.
	Chosen string `json:"chosen,omitempty"`
	// Absent says more of a name that is not there.
	Absent *Absence `json:"absent,omitempty"`
	// NotAsked: there is no answer, and Detail says why.
	NotAsked bool `json:"not_asked,omitempty"`
	// Attaches: the tool's way of asking for the probe succeeds; in JSON it is null if NotAsked.
	Attaches bool `json:"attaches"`
	// Errno is the result of the tool's way of asking: 0, or a negative number.
	Errno int `json:"errno"`
	// Register is the result of register_kprobe at the place, Kretprobe of
	// register_kretprobe, and Events of kprobe_events with a definition of the probe:
	// 0, or a negative number.
	Register  int `json:"register_errno"`
	Kretprobe int `json:"kretprobe_errno"`
	Events    int `json:"kprobe_events_errno"`
	// Runs is "ftrace", "optimized" or "int3", "" if register_kprobe refuses.
	Runs string `json:"runs"`
	// Reason is the rule that refuses the probe, or none, and Detail the rule in
	// words.
	Reason rule.ID `json:"reason"`
	Detail string  `json:"detail"`
	// Hazards are the faults that can happen although the probe attaches.
	Hazards []hazard.Finding `json:"hazards,omitempty"`
	// Load is the booted kernel's own answer, by its verifier; nil if it was not asked.
	Load *answer.Program `json:"load,omitempty"`
	// Faults has the names of what is wrong: "load", "attach", "hazard ID". Passes says why the gate lets them pass: "optional", "waived" (then
	// Why has the date and the reason), "known"; "" if they fail.
	Faults []string `json:"faults,omitempty"`
	Passes string   `json:"passes,omitempty"`
	Why    string   `json:"why,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (c CheckCell) MarshalJSON() ([]byte, error) {
	type plain CheckCell
	out := struct {
		Attaches *bool `json:"attaches"`
		plain
	}{plain: plain(c)}
	if !c.NotAsked {
		out.Attaches = &c.Attaches
	}
	return json.Marshal(out)
}

// Add asks a kernel about each probe, and adds its column. The probes of every
// call must be the same.
func (c *Check) Add(kernel Kernel, probes []Probe) {
	if c.Probes == nil {
		for _, p := range probes {
			c.Probes = append(c.Probes, CheckRow{Probe: p})
		}
	}
	c.Images = append(c.Images, kernel.Column())
	k := newChecker(kernel)
	for i := range c.Probes {
		cell := k.cell(&c.Probes[i].Probe)
		switch cell.Attaches = cell.accepted(); {
		case cell.NotAsked:
			c.NotAsked++
		case !cell.Attaches:
			c.Refused++
		}
		if c.harms(&cell) {
			c.Hazardous++
		}
		c.Probes[i].Cells = append(c.Probes[i].Cells, cell)
	}
}

// Loaded adds a booted kernel's answers to the column of one kernel. Logs are left out.
func (c *Check) Loaded(programs []answer.Program) {
	c.LoadAsked = true
	for i := range programs {
		for j := range c.Probes {
			row := &c.Probes[j]
			if row.Program != printable(programs[i].Name) {
				continue
			}
			p := programs[i]
			p.Log = ""
			row.Cells[0].Load = &p
			if !p.Loads && !p.Unasked {
				c.NotLoaded++
			}
		}
	}
}

// Join adds the columns of another Check of the same probes.
func (c *Check) Join(o *Check) {
	c.Images = append(c.Images, o.Images...)
	c.Refused += o.Refused
	c.NotAsked += o.NotAsked
	c.Hazardous += o.Hazardous
	c.NotLoaded += o.NotLoaded
	c.LoadAsked = c.LoadAsked || o.LoadAsked
	if c.Probes == nil {
		c.Probes = slices.Clone(o.Probes)
		return
	}
	for i := range c.Probes {
		c.Probes[i].Cells = append(c.Probes[i].Cells, o.Probes[i].Cells...)
	}
}

// checker answers for one kernel.
type checker struct {
	Kernel
	// clones are the names with a suffix by their names without.
	clones map[string][]string
	// with are the checkers of the kernel with a module of its package loaded; nil in these.
	with map[string]*checker
	// points are the kernel's tracepoints, nil before the first use.
	points []kimage.Tracepoint
}

func newChecker(kernel Kernel) *checker {
	k := &checker{Kernel: kernel, clones: map[string][]string{}, with: map[string]*checker{}}
	for _, sym := range kernel.Symbols() {
		if i := strings.IndexByte(sym.Name, '.'); i > 0 && sym.Module == "" {
			k.clones[sym.Name[:i]] = append(k.clones[sym.Name[:i]], sym.Name)
		}
	}
	return k
}

// cell is the answer for a probe.
func (k *checker) cell(p *Probe) CheckCell {
	var c CheckCell
	if p.bad != "" {
		c.Found = FoundAbsent
		c.refuse(errno.EINVAL, rule.Line, p.bad)
		c.Register, c.Kretprobe, c.Events = c.Errno, c.Errno, c.Errno
		return c
	}
	if p.badSection != "" {
		c.Found = FoundAbsent
		c.refuse(errno.EINVAL, rule.Section, rule.Section.Why()+": "+p.badSection)
		return c
	}
	switch {
	case p.unasked != "":
		return CheckCell{NotAsked: true, Reason: rule.NotAsked, Detail: p.unasked}
	case p.said:
		return k.said(p)
	case p.any != nil:
		return k.any(p)
	case p.Via == ViaMulti:
		return k.multi(p)
	case p.Via == ViaIterator:
		return k.iterator(p)
	case p.Via == ViaTrampoline:
		return k.trampoline(p)
	case p.Via == ViaTracepoint, p.Via == ViaRaw:
		return k.tracepoint(p)
	case !p.defines && isPattern(p.place):
		return k.pattern(p)
	}
	q := *p
	if p.syscall {
		q.place = k.syscallName(p.place)
	}
	r, err := k.request(&q)
	if err != nil {
		c.Found = FoundAbsent
		c.refuse(errno.EINVAL, rule.Line, err.Error())
		c.Register, c.Kretprobe, c.Events = c.Errno, c.Errno, c.Errno
		return c
	}
	if modules := k.packaged(&q, r); len(modules) > 0 {
		if in, err := k.loading(modules[0]); err == nil {
			c = in.cell(p)
			c.Found, c.Others = FoundPackage, modules
			return c
		}
	}
	k.find(&c, &q, r)
	k.place(&c, &q, r)
	k.absent(&c, &q)
	return c
}

// request returns the place of the probe, or an error if its text names none.
func (k *checker) request(p *Probe) (probepoint.Request, error) {
	switch {
	case p.request != nil:
		return *p.request, nil
	case p.syscall:
		return probepoint.Request{Symbol: p.place}, nil
	}
	return requestOf(p.place)
}

// accepted: nothing refuses the probe, and it does not wait.
func (c *CheckCell) accepted() bool { return c.Errno == 0 && c.Reason == rule.None }

// packaged are the modules of the kernel's package that have a symbol which
// nothing else has.
func (k *checker) packaged(p *Probe, r probepoint.Request) []string {
	if r.Symbol == "" || len(k.Lookup(r.Symbol)) > 0 {
		return nil
	}
	module, name, _ := p.symbol()
	if module == "" && len(k.clones[name]) > 0 {
		return nil
	}
	modules := k.Package(name)
	if module != "" && slices.Contains(modules, module) {
		return []string{module}
	} else if module != "" {
		return nil
	}
	return modules
}

// loading is the checker of the kernel with a module of its package loaded.
func (k *checker) loading(module string) (*checker, error) {
	if in, ok := k.with[module]; ok {
		return in, nil
	}
	kernel, err := k.With(module)
	if err != nil {
		return nil, err
	}
	in := &checker{Kernel: kernel, clones: k.clones}
	k.with[module] = in
	return in, nil
}

// modulesWith are the loaded modules that have a symbol of the name.
func (k *checker) modulesWith(name string) (modules []string) {
	for _, s := range k.Lookup(name) {
		if s.Module != "" {
			modules = append(modules, s.Module)
		}
	}
	return modules
}

// refuse notes the first refusal.
func (c *CheckCell) refuse(no errno.Errno, id rule.ID, detail string) {
	if c.Errno == 0 {
		c.Errno, c.Reason, c.Detail = -int(no), id, detail
	}
}

// find sets c.Found, and c.Others to the addresses, modules or clones of the name.
func (k *checker) find(c *CheckCell, p *Probe, r probepoint.Request) {
	if r.Symbol == "" {
		c.Found = FoundAddress
		return
	}
	module, name, _ := p.symbol()
	found := k.Lookup(r.Symbol)
	own := 0
	for _, s := range found {
		if s.Module == "" {
			own++
		}
	}
	switch {
	case len(found) > 1:
		c.Found = FoundSeveral
		for _, s := range found {
			c.Others = append(c.Others, known(s.Addr).String())
		}
	case own == 1:
		c.Found = FoundUnique
	case len(found) == 1:
		c.Found, c.Others = FoundModule, k.modulesWith(name)
	case module == "" && len(k.clones[name]) > 0:
		c.Found, c.Others = FoundClone, k.clones[name]
	default:
		c.Found = FoundAbsent
	}
}

// place asks register_kprobe, register_kretprobe and kprobe_events about the
// probe, and takes the answer of the tool's own way.
func (k *checker) place(c *CheckCell, p *Probe, r probepoint.Request) {
	var direct error
	if c.Runs, direct = k.register(r); direct != nil {
		c.Register = -int(errno.Of(direct))
	} else {
		c.Hazards = k.hazards(r)
	}
	if no, ok := k.noPrograms(p); ok {
		c.refuseAs(no)
	}
	kret := k.kretprobe(r)
	c.Kretprobe = -int(errno.Of(kret))
	if p.Return {
		direct = kret
	}
	events, waits := k.events(p, r, direct, ViaEvents), false
	if p.defines {
		events, waits = k.defined(p, direct)
	}
	if waits {
		c.Reason, c.Detail = rule.Waits, rule.Waits.Why()
		return
	}
	c.Events = -int(errno.Of(events))
	for via, err := range map[Via]error{ViaRegister: direct, ViaEvents: events, ViaPerf: k.events(p, r, direct, ViaPerf)} {
		if via == p.Via && err != nil {
			c.refuseAs(err)
		}
	}
	if c.Found == FoundClone && c.Errno != 0 {
		c.Reason, c.Detail = rule.Clone, rule.Clone.Why()
	}
}

func (c *CheckCell) refuseAs(err error) {
	var r *probepoint.Refusal
	if errors.As(err, &r) {
		c.refuse(errno.Of(err), r.Rule, r.Why)
	}
}

// register returns how the probe runs by register_kprobe's answer. The error is a *Refusal.
func (k *checker) register(r probepoint.Request) (runs string, err error) {
	found, asked := askedFor(k, r)
	pt, err := probepoint.Resolve(k, r, k.Profile())
	if err == nil {
		runs, err = k.Verdict(&pt)
	}
	var refused *probepoint.Refusal
	if !errors.As(err, &refused) {
		return runs, err
	}
	e := &probepoint.Refusal{Errno: refused.Errno, Rule: refused.Rule, Why: refused.Why}
	if e.Rule == rule.NotText {
		e.Why += freed(k, asked)
	}
	if len(found) > 1 {
		e.Why += "; " + several(r.Symbol, found)
	}
	return "", e
}

// refusal is a refusal that names no place.
func refusal(no errno.Errno, id rule.ID) error { return probepoint.RefuseAs(no, id, 0, "") }

// syscallName returns the function at which libbpf attaches to a system call. As libbpf does, it
// tests whether bpf itself has the architecture's wrapper, and takes the inner function otherwise:
// kernels before 4.17 have none. On a kernel without bpf it takes the function that exists.
func (k *checker) syscallName(name string) string {
	call, ok := systemcall.Function("bpf", k.has)
	switch function, there := systemcall.Function(name, k.has); {
	case ok && call == systemcall.Wrapped+"bpf":
		return systemcall.Wrapped + name
	case !ok && there:
		return function
	}
	return systemcall.Inner + name
}

func (k *checker) has(name string) bool {
	_, ok := k.first(name)
	return ok
}

// first is the first symbol of a name.
func (k *checker) first(name string) (kimage.Symbol, bool) {
	found := k.Lookup(name)
	if len(found) == 0 {
		return kimage.Symbol{}, false
	}
	return found[0], true
}
