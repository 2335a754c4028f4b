package kimage

import (
	"kprobelab/kimage/evidence"
	"kprobelab/x86"
)

// formFacts are the facts that tell how sites of a kind are written.
var formFacts = map[SiteKind][]string{
	SiteAlternative: {factNops, factAlternatives},
	SiteParavirt:    {factNops},
	SiteRetpoline:   {factRetpolines, factIndirect},
	SiteReturn:      {factReturnThunk},
	SiteFtrace:      {factNops},
	SiteJumpLabel:   {factNops},
	SiteStaticCall:  {factNops},
}

// UnspokenForm returns the first fact about the sites of a kind for which the image has no
// evidence, so that its release decides how boot writes them; "" if the image tells all facts.
func (img *Image) UnspokenForm(kind SiteKind) string {
	if img.kind != KindKernel || img.opts.NoBoot || img.Core() != nil {
		return ""
	}
	for _, name := range formFacts[kind] {
		if f := img.Fact(name); f.From == evidence.Dated {
			return name + ": " + f.Value + ", by " + f.Evidence
		}
	}
	return ""
}

// Unspoken counts the patched sites of which nothing in the image tells how they are written.
func (img *Image) Unspoken() (n int) {
	for kind := range formFacts {
		if img.UnspokenForm(kind) != "" {
			n += len(img.tables.sites[kind])
		}
	}
	return n
}

// UnspokenAt is UnspokenForm for the sites in a range.
func (img *Image) UnspokenAt(r x86.Range) string {
	for kind := range NumSiteKinds {
		if _, in := img.SiteIn(kind, r); in {
			if form := img.UnspokenForm(kind); form != "" {
				return form
			}
		}
	}
	return ""
}
