package report

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/x86"
)

// Check is the matrix of probes by images: would each probe of a tool attach,
// and how would it run.
type Check struct {
	Images []CheckImage `json:"images"`
	Probes []CheckRow   `json:"probes"`
	// Refused is how many cells do not attach.
	Refused int `json:"refused"`
}

// CheckImage is a column.
type CheckImage struct {
	// Name is the name the image was opened by.
	Name    string `json:"name"`
	Release string `json:"release"`
	Profile string `json:"profile"`
	CPU     string `json:"cpu"`
}

// CheckRow is one probe with its answer of each image, in their order.
type CheckRow struct {
	Probe
	Cells []CheckCell `json:"images"`
}

// Found says what a name is in an image.
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
	// FoundAddress: the probe is asked for by address.
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
)

// CheckCell is one image's answer for one probe.
type CheckCell struct {
	Found Found `json:"symbol"`
	// Others are the clones, the modules, or the addresses of a name that has
	// several.
	Others []string `json:"others,omitempty"`
	// Matches is how many functions a pattern matches.
	Matches int `json:"matches,omitempty"`
	// Attaches: the tool's way of asking for the probe succeeds.
	Attaches bool `json:"attaches"`
	// Errno is what the tool's way of asking returns, 0 or a negative number.
	Errno int `json:"errno"`
	// Register is what register_kprobe returns at the place, Kretprobe what
	// register_kretprobe does, and Events what kprobe_events does with a
	// definition of the probe.
	Register  int `json:"register_errno"`
	Kretprobe int `json:"kretprobe_errno"`
	Events    int `json:"kprobe_events_errno"`
	// Runs is "ftrace", "optimized" or "int3", "" where register_kprobe refuses.
	Runs string `json:"runs"`
	// Reason is the rule that refuses the probe, or none, and Detail the rule in
	// words.
	Reason rule.ID `json:"reason"`
	Detail string  `json:"detail"`
}

// Add asks an image about each probe, and adds its column. The probes of every
// call must be the same.
func (c *Check) Add(img *kimage.Image, probes []Probe) {
	if c.Probes == nil {
		for _, p := range probes {
			c.Probes = append(c.Probes, CheckRow{Probe: p})
		}
	}
	c.Images = append(c.Images, checkImage(img))
	k := newChecker(img)
	for i := range c.Probes {
		cell := k.cell(&c.Probes[i].Probe)
		if cell.Attaches = cell.Errno == 0 && cell.Reason == rule.None; !cell.Attaches {
			c.Refused++
		}
		c.Probes[i].Cells = append(c.Probes[i].Cells, cell)
	}
}

func checkImage(img *kimage.Image) CheckImage {
	return CheckImage{
		Name: img.Name(), Release: img.Fact("release").Value, Profile: img.Profile().Name, CPU: img.Fact("CPU").Value,
	}
}

// checker answers for one image.
type checker struct {
	img  *kimage.Image
	scan *scanner
	// clones are the names with a suffix by their names without.
	clones map[string][]string
	// modules are the loaded modules' symbols by name.
	modules map[string][]string
}

func newChecker(img *kimage.Image) *checker {
	k := &checker{img: img, clones: map[string][]string{}, modules: map[string][]string{}}
	s := NewScan(img)
	s.Detail = true
	k.scan = s.scanner()
	for _, sym := range img.Symbols() {
		if sym.Module != "" {
			k.modules[sym.Name] = append(k.modules[sym.Name], sym.Module)
		} else if i := strings.IndexByte(sym.Name, '.'); i > 0 {
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
	if p.Via == ViaMulti {
		return k.multi(p)
	}
	q := *p
	if p.syscall {
		q.place = k.syscallName(p.place)
	}
	r, err := k.scan.parse(q.place)
	if err != nil {
		c.Found = FoundAbsent
		c.refuse(errno.EINVAL, rule.Line, err.Error())
		c.Register, c.Kretprobe, c.Events = c.Errno, c.Errno, c.Errno
		return c
	}
	k.find(&c, &q, r)
	k.place(&c, &q, r)
	return c
}

// refuse notes the first refusal.
func (c *CheckCell) refuse(no errno.Errno, id rule.ID, detail string) {
	if c.Errno == 0 {
		c.Errno, c.Reason, c.Detail = -int(no), id, detail
	}
}

// find says what the name is in the image.
func (k *checker) find(c *CheckCell, p *Probe, r probepoint.Request) {
	if r.Symbol == "" {
		c.Found = FoundAddress
		return
	}
	module, name, _ := p.symbol()
	found := k.img.Lookup(r.Symbol)
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
		c.Found, c.Others = FoundModule, k.modules[name]
	case module == "" && len(k.clones[name]) > 0:
		c.Found, c.Others = FoundClone, k.clones[name]
	default:
		c.Found = FoundAbsent
	}
}

// place asks register_kprobe, register_kretprobe and kprobe_events about the
// probe, and takes the answer of the tool's own way.
func (k *checker) place(c *CheckCell, p *Probe, r probepoint.Request) {
	row := k.scan.row(r, k.scan.SlotAddr, nil)
	c.Register = row.Errno
	switch {
	case row.Errno != 0:
	case row.Ftrace:
		c.Runs = RunsFtrace
	case row.Optimized:
		c.Runs = RunsOptimized
	default:
		c.Runs = RunsInt3
	}
	kret := k.kretprobe(r)
	c.Kretprobe = -int(errno.Of(kret))
	direct := registerError(&row)
	if p.Return {
		direct = kret
	}
	events, waits := k.events(p, r, direct, ViaEvents), false
	if p.words != nil {
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

// registerError is register_kprobe's answer as an error.
func registerError(row *ScanRow) error {
	if row.Errno == 0 {
		return nil
	}
	return &probepoint.Refusal{Errno: errno.Errno(-row.Errno), Rule: row.Rule, Why: row.Detail}
}

// refusal is a refusal that names no place.
func refusal(no errno.Errno, id rule.ID) error { return probepoint.RefuseAs(no, id, 0, "") }

// syscallName is the function of a system call: with the architecture's
// wrapper (4.17 and later), or without.
func (k *checker) syscallName(name string) string {
	for _, prefix := range []string{"__x64_sys_", "sys_"} {
		if len(k.img.Lookup(prefix+name)) > 0 {
			return prefix + name
		}
	}
	return "__x64_sys_" + name
}

// multi answers for a link to many functions (6.0 and later with CONFIG_FPROBE):
// a pattern takes every function with an ftrace site that it matches, a name
// has to be one of these.
func (k *checker) multi(p *Probe) CheckCell {
	c := CheckCell{Found: FoundPattern, Runs: RunsFtrace}
	glob := strings.ContainsAny(p.place, "*?")
	for _, s := range k.img.Symbols() {
		ok, err := path.Match(p.place, s.Name)
		if err != nil {
			c.refuse(errno.EINVAL, rule.Line, fmt.Sprintf("%q is no pattern", p.place))
			break
		}
		if ok && s.Module == "" && isText(s.Type) && k.img.InText(s.Addr) && k.traceable(s.Addr) {
			c.Matches++
		}
	}
	if !glob {
		k.find(&c, p, probepoint.Request{Symbol: p.place})
	}
	_, links := k.scan.first("bpf_kprobe_multi_link_attach")
	_, fprobe := k.scan.first("register_fprobe")
	switch {
	case !links:
		c.refuse(errno.EINVAL, rule.NoFprobe, rule.NoFprobe.Why())
	case !fprobe:
		c.refuse(errno.EOPNOTSUPP, rule.NoFprobe, rule.NoFprobe.Why())
	case c.Matches == 0 && glob:
		c.refuse(errno.ENOENT, rule.NoMatch, rule.NoMatch.Why())
	case c.Matches == 0:
		c.refuse(errno.ESRCH, rule.NoMatch, rule.NoMatch.Why())
	}
	if c.Errno != 0 {
		c.Runs = ""
	}
	return c
}

func isText(kind byte) bool { return strings.IndexByte("tTwW", kind) >= 0 }

// first is the first symbol of a name.
func (s *Scan) first(name string) (kimage.Symbol, bool) {
	found := s.View.Lookup(name)
	if len(found) == 0 {
		return kimage.Symbol{}, false
	}
	return found[0], true
}

// traceable reports whether an address's function has an ftrace site.
func (k *checker) traceable(at x86.Addr) bool {
	s, ok := k.img.SymbolAt(at)
	if !ok {
		return false
	}
	if module, init := k.img.InInit(s.Addr); init && module == "" && !k.img.InText(s.Addr) {
		return false // the tracer has forgotten it together with boot's code
	}
	_, ok = k.img.SiteIn(kimage.SiteFtrace, x86.Range{Start: s.Addr, End: s.Addr.Add(int64(s.Size))})
	return ok
}
