package report

import (
	"path"

	"kprobelab/errno"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
)

// multi answers for a link to many functions (5.18 and later with CONFIG_FPROBE): the loader
// looks for the functions with an ftrace site that a pattern or a name matches, and the kernel takes
// their addresses.
func (k *checker) multi(p *Probe) CheckCell {
	c := CheckCell{Found: FoundPattern, Runs: RunsFtrace}
	if !isPattern(p.place) {
		k.find(&c, p, probepoint.Request{Symbol: p.place})
	}
	if no, ok := k.noPrograms(p); ok {
		c.refuseAs(no)
	}
	names := k.multiMatching(p.place)
	c.Matches, c.Attached = len(names), len(names)
	built := &k.Profile().Built
	_, links := k.first("bpf_kprobe_multi_link_attach")
	switch {
	case len(names) == 0:
		c.refuse(errno.ENOENT, rule.NoMatch, rule.NoMatch.Why())
	case p.kind == "kprobe.session" && !built.KprobeSession:
		c.refuse(errno.EINVAL, rule.NoFprobe, "this kernel has no sessions of a probe (6.10 and later, with CONFIG_FPROBE)")
	case !built.KprobeMulti && !links:
		c.refuse(errno.EINVAL, rule.NoFprobe, rule.NoFprobe.Why())
	case !built.KprobeMulti:
		c.refuse(errno.EOPNOTSUPP, rule.NoFprobe, rule.NoFprobe.Why())
	}
	if c.Errno != 0 {
		c.Runs, c.Attached = "", 0
		k.absent(&c, p)
	}
	return c
}

// multiMatching are the names of the functions of the kernel and of its modules that match and
// have an ftrace site.
func (k *checker) multiMatching(pattern string) (names []string) {
	seen := map[string]bool{}
	for _, s := range k.Symbols() {
		if ok, err := path.Match(pattern, s.Name); err != nil || !ok || seen[s.Name] {
			continue
		}
		if s.IsFunction() && k.InText(s.Addr) && (!k.Traces() || k.Traceable(s.Addr)) {
			seen[s.Name] = true
			names = append(names, s.Name)
		}
	}
	return names
}
