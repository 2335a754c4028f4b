// Package infer finds out how an image's kernel behaves: its release, the profile that fits it, and
// the model of preemption. Each finding is a fact with its evidence.
//
// It must not know of files or of what boot patches.
package infer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"kprobelab/kimage/evidence"
	"kprobelab/kimage/internal/opened"
	"kprobelab/profile"
	"kprobelab/x86"
)

var le = binary.LittleEndian

// FactStanding is the fact that says how near the release is to a model.
const FactStanding = "standing"

// OptionCFIAuto: the processor decides (6.11 and later; before, it does always).
const OptionCFIAuto = "CONFIG_CFI_AUTO_DEFAULT"

// Configuration is a kernel's configuration.
type Configuration struct {
	// Options has the values by the options' names, nil if the configuration is not known.
	Options map[string]string
	// From names the place from which it was read.
	From string
	// Given: the user gave it, so that it decides as a requested profile does.
	Given bool
}

// Evidence holds all that the choice of a profile reads.
type Evidence struct {
	img    opened.Image
	facts  *evidence.Facts
	banner Banner
	// Config is the configuration.
	Config Configuration
	// asked: the user asked for a profile.
	asked bool
	// kprobes: the symbols are those of a kernel with kprobes, so that a missing
	// symbol says something too.
	kprobes bool
}

// New returns the evidence of an image. What is found is added to facts.
func New(img opened.Image, facts *evidence.Facts, c Configuration) *Evidence {
	e := &Evidence{img: img, facts: facts, banner: FindBanner(img), Config: c}
	_, e.kprobes = img.SymbolAddr("register_kprobe")
	return e
}

// Profile picks the profile from the evidence: the named profile of the
// release, then whatever the configuration or the symbols say otherwise. A profile that is
// asked for (nil: none) gets the image's components all the same.
func (e *Evidence) Profile(asked *profile.Config) *profile.Config {
	c := e.base()
	for _, list := range [][]rule{rules, shownRules, tracingRules} {
		for i := range list {
			e.decide(&list[i], c)
		}
	}
	e.onPreempt(c)
	e.timer(c)
	for i := range choices {
		choices[i].choose(e, c)
	}
	if e.asked = asked != nil; e.asked {
		given := *asked
		c = &given
	}
	e.built(c)
	e.others()
	return c
}

func (e *Evidence) fact(name, value, why string) { e.field(name, value, why, "") }

// field is a fact that decides a field of the profile.
func (e *Evidence) field(name, value, why string, from evidence.Source) {
	e.facts.Add(evidence.Fact{Name: name, Value: value, Evidence: why, From: from})
}

// base is the profile of the release.
func (e *Evidence) base() *profile.Config {
	b := e.banner
	if b.Release != "" {
		e.fact("release", b.Release, b.From)
		if b.Compiler != "" {
			e.fact("compiler", b.Compiler, b.From)
		}
	}
	v, ok := b.Version()
	if !ok {
		c, _ := profile.Named(profile.Default)
		e.fact("profile", c.Name, "the default: there is no banner to tell the release")
		return c
	}
	c := profile.ForRelease(v)
	e.fact("profile", c.Name, "nearest to release "+b.Release)
	e.fact(FactStanding, string(v.Standing()), "the dates of changes, as far as "+v.String()+" tells them")
	return c
}

// Version is the release with its patch level, which Debian tells in the words
// after the build number.
func (b *Banner) Version() (profile.Version, bool) {
	v, ok := profile.ParseVersion(b.Release)
	for i, w := range b.Flags {
		if !ok || w != "Debian" || i+1 == len(b.Flags) {
			continue
		}
		if d, found := profile.ParseVersion(b.Flags[i+1]); found && d.Major == v.Major && d.Minor == v.Minor {
			return d, true
		}
	}
	return v, ok
}

// Since reports whether the release is that one or a later one.
func (b *Banner) Since(major, minor int) bool {
	v, ok := b.Version()
	return ok && (v.Major > major || v.Major == major && v.Minor >= minor)
}

// others are facts that belong to no field of the profile.
func (e *Evidence) others() {
	for _, o := range []struct{ option, symbol string }{
		{"CONFIG_RETHUNK", "__x86_return_thunk"},
		{"CONFIG_UNWINDER_ORC", "__start_orc_unwind"},
	} {
		if _, ok := e.img.SymbolAddr(o.symbol); ok {
			e.fact(o.option, "y", "symbol "+o.symbol)
		}
	}
	if v, ok := e.Config.Options["CONFIG_NR_CPUS"]; ok {
		e.fact("CONFIG_NR_CPUS", v, e.Config.From)
	}
	if v, ok := e.Config.Options[OptionCFIAuto]; ok {
		e.field(OptionCFIAuto, v, OptionCFIAuto+"="+v+" in "+e.Config.From, evidence.Configured)
	}
}

// Banner is the kernel's description of itself, taken apart.
type Banner struct {
	Text, Release, Compiler string
	// Flags are the words after the build number: SMP, PREEMPT, ….
	Flags []string
	From  string
}

// ByClang reports whether Clang compiled the kernel.
func (b *Banner) ByClang() bool { return strings.Contains(b.Compiler, "clang version") }

var bannerStart = []byte("Linux version ")

// FindBanner reads linux_banner, or a module's vermagic.
func FindBanner(img opened.Image) Banner {
	if a, ok := img.SymbolAddr("linux_banner"); ok && HasBanner(img, a) {
		for _, s := range img.Sections() {
			if a < s.Addr || a >= s.Addr.Add(int64(len(s.Data))) {
				continue
			}
			if b, ok := parseBanner(s.Data[a-s.Addr:], "linux_banner"); ok {
				return b
			}
		}
	}
	for _, s := range img.Sections() {
		if s.Exec {
			continue
		}
		for data := s.Data; ; {
			i := bytes.Index(data, bannerStart)
			if i < 0 {
				break
			}
			if b, ok := parseBanner(data[i:], "banner in "+s.Name); ok {
				return b
			}
			data = data[i+len(bannerStart):]
		}
	}
	return vermagic(img)
}

// HasBanner reports whether a banner begins at an address.
func HasBanner(img opened.Image, a x86.Addr) bool {
	return bytes.Equal(img.Bytes(a, len(bannerStart)), bannerStart)
}

// parseBanner reads "Linux version RELEASE (user@host) (compiler, linker) #N
// FLAGS date". The format string beside it, with a %s, is not the banner.
func parseBanner(b []byte, from string) (Banner, bool) {
	if !bytes.HasPrefix(b, bannerStart) {
		return Banner{}, false
	}
	b = b[:min(len(b), 1024)]
	if i := bytes.IndexAny(b, "\n\x00"); i >= 0 {
		b = b[:i]
	}
	text := string(b)
	if strings.Contains(text, "%s") {
		return Banner{}, false
	}
	rest := text[len(bannerStart):]
	release, rest, _ := strings.Cut(rest, " ")
	out := Banner{Text: text, Release: release, From: from}
	head, build, _ := strings.Cut(rest, " #")
	out.Flags = strings.Fields(build)
	// The compiler is the second parenthesis, which nests.
	if i := strings.Index(head, ") ("); i >= 0 {
		out.Compiler = strings.TrimSuffix(head[i+3:], ")")
	}
	return out, release != ""
}

// vermagic is a module's own word for the kernel it was built for.
func vermagic(img opened.Image) Banner {
	s := img.Section(".modinfo")
	if s == nil {
		return Banner{}
	}
	for _, line := range bytes.Split(s.Data, []byte{0}) {
		if v, ok := strings.CutPrefix(string(line), "vermagic="); ok {
			words := strings.Fields(v)
			if len(words) == 0 {
				return Banner{}
			}
			for i := range words {
				words[i] = strings.ToUpper(words[i])
			}
			return Banner{Text: v, Release: strings.Fields(v)[0], Flags: words[1:], From: "vermagic in .modinfo"}
		}
	}
	return Banner{}
}

// Preempt returns the banner's word for preemption, "" if it has none.
func (b *Banner) Preempt() string {
	for _, w := range b.Flags {
		if strings.HasPrefix(w, "PREEMPT") && w != "PREEMPT_VOLUNTARY" {
			return w
		}
	}
	return ""
}

// symbol decides by the symbols: on is true if one of the names exists.
func (e *Evidence) symbol(names ...string) (on bool, why string, ok bool) {
	for _, n := range names {
		if _, ok := e.img.SymbolAddr(n); ok {
			return true, "symbol " + n, true
		}
	}
	return false, "no symbol " + names[0], e.kprobes
}

// functionsBeginWithEndbr looks at the entries of some well-known functions.
func (e *Evidence) functionsBeginWithEndbr() (on bool, why string, ok bool) {
	if s := e.img.Section(".ibt_endbr_seal"); s != nil {
		return true, "section .ibt_endbr_seal", true
	}
	for _, n := range []string{"register_kprobe", "kallsyms_lookup_name"} {
		a, found := e.img.SymbolAddr(n)
		if b := e.img.Bytes(a, 4); found && b != nil {
			return opened.IsEndbr(b), fmt.Sprintf("%s begins with % x", n, b), true
		}
	}
	return false, "", false
}

// askedFor lets a configuration that the user gave decide, as a requested profile does. The image's
// evidence is kept beside it.
func (e *Evidence) askedFor(f evidence.Fact, given evidence.Witness) evidence.Fact {
	if !e.Config.Given || f.Value == given.Value {
		return f
	}
	said := evidence.Says(f.Value, f.Evidence, f.From)
	return evidence.Fact{Name: f.Name, Value: given.Value, Evidence: given.Evidence, From: given.From, Against: []evidence.Witness{said}}
}

// option is the configuration's word on the first of the names that it has; a
// complete configuration that lacks them all says no.
func (e *Evidence) option(names ...string) (on bool, why string, ok bool) {
	if e.Config.Options == nil {
		return false, "", false
	}
	for _, n := range names {
		if v, ok := e.Config.Options[n]; ok {
			return v == "y", n + "=" + v + " in " + e.Config.From, true
		}
	}
	return false, names[0] + " is not in " + e.Config.From, true
}
