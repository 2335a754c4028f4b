package selfcheck

import (
	"encoding/hex"
	"fmt"
	"slices"

	"kprobelab/internal/own"
	"kprobelab/kimage"
)

// textAbout is the question that the functions decide which patch text at boot.
const textAbout = "what does boot write there?"

// checkText lets the image patch a copy of its own text, and compares each site with the bytes that
// the rules write there.
func (r *Result) checkText(img *kimage.Image) {
	var asked []kimage.SiteKind
	for _, kind := range kimage.PatchedKinds {
		if len(img.Sites(kind)) > 0 && len(img.Lookup(own.Applier(kind))) > 0 {
			asked = append(asked, kind)
		}
	}
	if len(asked) == 0 {
		return
	}
	raw, err := img.SelfPatch()
	var patched *own.Patched
	if err == nil {
		patched, err = own.PatchText(raw)
	}
	if err == nil {
		defer patched.Close()
		raw.Patch()
	}
	for _, kind := range asked {
		t := Answers{Function: own.Applier(kind), About: textAbout, Kinds: map[Kind]int{}}
		failed := err
		if failed == nil {
			failed = patched.Failed[kind]
		}
		if failed == nil {
			failed = t.compareSites(raw, patched, kind)
		}
		if failed != nil {
			t.Silent, t.Why = 1, failed.Error()
		}
		r.Questions = append(r.Questions, t)
	}
}

func (t *Answers) compareSites(raw *kimage.SelfPatch, patched *own.Patched, kind kimage.SiteKind) error {
	for _, site := range raw.Sites(kind) {
		ours, theirs := make([]byte, site.Len), make([]byte, site.Len)
		if err := patched.Read(site.Addr, theirs); err != nil {
			return err
		}
		raw.CodeAt(site.Addr, ours)
		t.Asked++
		if slices.Equal(ours, theirs) {
			continue
		}
		place := site.Addr.String()
		if sym, ok := raw.SymbolAt(site.Addr); ok {
			place = fmt.Sprintf("%s+%#x", sym.Name, uint64(site.Addr.Sub(sym.Addr)))
		}
		t.differ(Difference{Place: place, Addr: site.Addr, Rules: begins(ours), Own: begins(theirs), Code: theirs})
	}
	return nil
}

// begins returns the first bytes of a site in hexadecimal: differences with the same first bytes
// are of one kind.
func begins(b []byte) string { return hex.EncodeToString(b[:min(len(b), 2)]) + "…" }
