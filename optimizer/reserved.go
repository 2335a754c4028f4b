package optimizer

import (
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/x86"
)

// reservation is a kind of place that somebody else patches and that no DCR
// may overlap, in the kernel's order (docs/spec 4.2, step 6).
type reservation struct {
	id      rule.ID
	kind    kimage.SiteKind
	applies func(*profile.Config) bool
}

var reservations = [...]reservation{
	{rule.ReservedFtrace, kimage.SiteFtrace, func(c *profile.Config) bool { return c.Check.FtraceSites }},
	// The kernel remembers lock prefixes only while it runs with one CPU and
	// has replaced them; no named profile does.
	{rule.ReservedSMPLock, kimage.SiteSMPLock, func(c *profile.Config) bool { return c.Check.SMPLocks }},
	{rule.ReservedJumpLabel, kimage.SiteJumpLabel, func(c *profile.Config) bool { return c.Check.JumpLabels }},
	{rule.ReservedStaticCall, kimage.SiteStaticCall, func(c *profile.Config) bool { return c.Check.StaticCalls }},
}

// hit is the site of that kind in the range.
func (r *reservation) hit(v kimage.View, dcr x86.Range, c *profile.Config) (kimage.Site, bool) {
	if !r.applies(c) {
		return kimage.Site{}, false
	}
	return v.SiteIn(r.kind, dcr)
}
