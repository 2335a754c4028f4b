package kimage

import (
	"bytes"
	"fmt"
	"strings"

	"kprobelab/profile"
	"kprobelab/x86"
)

// Fact is something inferred about the kernel.
type Fact struct {
	// Name is the profile's field or the configuration option that it decides, or a
	// word that describes the kernel ("release", "compiler").
	Name string
	// Value is the decided value.
	Value string
	// Evidence says in a few words where the value was read.
	Evidence string
	// From is the kind of the evidence if the fact decides a field of the profile or of
	// the boot-time text, else empty.
	From Source
	// Against has the evidence that says otherwise and was not followed.
	Against []Witness
}

// Source is a kind of evidence for a field of the profile, the best first.
type Source string

// The kinds of evidence.
const (
	// Measured: the image's own functions were run and asked.
	Measured Source = "measured"
	// Configured: the kernel's configuration says so.
	Configured Source = "configuration"
	// Symbolic: the image has, or lacks, a symbol or a section.
	Symbolic Source = "symbol"
	// Absent: the image lacks a symbol that it could lack for other reasons.
	Absent Source = "no symbol"
	// Coded: it is in the image's code, data or banner.
	Coded Source = "code"
	// Dated: the release, by the dates of changes or of its nearest profile.
	Dated Source = "release"
	// Asked: the user chose the profile.
	Asked Source = "asked for"
)

// factStanding is the fact that says how near the release is to a model.
const factStanding = "standing"

// evidence holds all that the choice of a profile reads.
type evidence struct {
	img    *Image
	banner banner
	config map[string]string
	// configFrom names the place from which config was read.
	configFrom string
	// kprobes: the symbols are those of a kernel with kprobes, so that a missing
	// symbol says something too.
	kprobes bool
}

// choose picks the profile from the evidence: the named profile of the
// release, then whatever the configuration or the symbols say otherwise.
func (img *Image) choose(*elfFile) error {
	e := &evidence{img: img, banner: img.findBanner()}
	_, e.kprobes = img.symbolAddr("register_kprobe")
	if err := e.readConfig(); err != nil {
		return err
	}
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
	img.profile = c
	if p := img.opts.Profile; p != nil {
		given := *p
		img.profile = &given
	}
	// Rules of another release still get this image's components.
	e.built(img.profile)
	e.others()
	if p := img.opts.Profile; p != nil {
		e.fact("profile", p.Name, "asked for")
	}
	return nil
}

func (e *evidence) fact(name, value, why string) { e.field(name, value, why, "") }

// field is a fact that decides a field of the profile.
func (e *evidence) field(name, value, why string, from Source) {
	e.img.facts = append(e.img.facts, Fact{Name: name, Value: value, Evidence: why, From: from})
}

// base is the profile of the release.
func (e *evidence) base() *profile.Config {
	b := e.banner
	if b.release != "" {
		e.fact("release", b.release, b.from)
		if b.compiler != "" {
			e.fact("compiler", b.compiler, b.from)
		}
	}
	v, ok := b.version()
	if !ok {
		c, _ := profile.Named(profile.Default)
		e.fact("profile", c.Name, "the default: there is no banner to tell the release")
		return c
	}
	c := profile.ForRelease(v)
	e.fact("profile", c.Name, "nearest to release "+b.release)
	e.fact(factStanding, string(v.Standing()), "the dates of changes, as far as "+v.String()+" tells them")
	return c
}

// version is the release with its patch level, which Debian tells in the words
// after the build number.
func (b *banner) version() (profile.Version, bool) {
	v, ok := profile.ParseVersion(b.release)
	for i, w := range b.flags {
		if !ok || w != "Debian" || i+1 == len(b.flags) {
			continue
		}
		if d, found := profile.ParseVersion(b.flags[i+1]); found && d.Major == v.Major && d.Minor == v.Minor {
			return d, true
		}
	}
	return v, ok
}

// Version is the release, as far as the image tells it, with Debian's patch level;
// false if nothing in the image tells it.
func (img *Image) Version() (profile.Version, bool) {
	b := img.findBanner()
	return b.version()
}

// since reports whether the release is that one or a later one.
func (b *banner) since(major, minor int) bool {
	v, ok := b.version()
	return ok && (v.Major > major || v.Major == major && v.Minor >= minor)
}

// others are facts that belong to no field of the profile.
func (e *evidence) others() {
	for _, o := range []struct{ option, symbol string }{
		{"CONFIG_RETHUNK", "__x86_return_thunk"},
		{"CONFIG_UNWINDER_ORC", "__start_orc_unwind"},
	} {
		if _, ok := e.img.symbolAddr(o.symbol); ok {
			e.fact(o.option, "y", "symbol "+o.symbol)
		}
	}
	if v, ok := e.config["CONFIG_NR_CPUS"]; ok {
		e.fact("CONFIG_NR_CPUS", v, e.configFrom)
	}
	if v, ok := e.config[optionCFIAuto]; ok {
		e.field(optionCFIAuto, v, optionCFIAuto+"="+v+" in "+e.configFrom, Configured)
	}
	e.mitigationOptions()
	e.preemptModel()
}

// banner is the kernel's description of itself, taken apart.
type banner struct {
	text, release, compiler string
	// flags are the words after the build number: SMP, PREEMPT, ….
	flags []string
	from  string
}

// byClang reports whether Clang compiled the kernel.
func (b *banner) byClang() bool { return strings.Contains(b.compiler, "clang version") }

var bannerStart = []byte("Linux version ")

// findBanner reads linux_banner, or a module's vermagic.
func (img *Image) findBanner() banner {
	if a, ok := img.symbolAddr("linux_banner"); ok && img.hasBanner(a) {
		s := img.sectionAt(a)
		if b, ok := parseBanner(s.Data[a-s.Addr:], "linux_banner"); ok {
			return b
		}
	}
	for _, s := range img.sections {
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
	return img.vermagic()
}

// hasBanner reports whether a banner begins at an address.
func (img *Image) hasBanner(a x86.Addr) bool {
	return bytes.Equal(img.bytes(a, len(bannerStart)), bannerStart)
}

// parseBanner reads "Linux version RELEASE (user@host) (compiler, linker) #N
// FLAGS date". The format string beside it, with a %s, is not the banner.
func parseBanner(b []byte, from string) (banner, bool) {
	if !bytes.HasPrefix(b, bannerStart) {
		return banner{}, false
	}
	b = b[:min(len(b), 1024)]
	if i := bytes.IndexAny(b, "\n\x00"); i >= 0 {
		b = b[:i]
	}
	text := string(b)
	if strings.Contains(text, "%s") {
		return banner{}, false
	}
	rest := text[len(bannerStart):]
	release, rest, _ := strings.Cut(rest, " ")
	out := banner{text: text, release: release, from: from}
	head, build, _ := strings.Cut(rest, " #")
	out.flags = strings.Fields(build)
	// The compiler is the second parenthesis, which nests.
	if i := strings.Index(head, ") ("); i >= 0 {
		out.compiler = strings.TrimSuffix(head[i+3:], ")")
	}
	return out, release != ""
}

// vermagic is a module's own word for the kernel it was built for.
func (img *Image) vermagic() banner {
	s := img.section(".modinfo")
	if s == nil {
		return banner{}
	}
	for _, line := range bytes.Split(s.Data, []byte{0}) {
		if v, ok := strings.CutPrefix(string(line), "vermagic="); ok {
			words := strings.Fields(v)
			if len(words) == 0 {
				return banner{}
			}
			for i := range words {
				words[i] = strings.ToUpper(words[i])
			}
			return banner{text: v, release: strings.Fields(v)[0], flags: words[1:], from: "vermagic in .modinfo"}
		}
	}
	return banner{}
}

// preempt returns the banner's word for preemption, "" if it has none.
func (b *banner) preempt() string {
	for _, w := range b.flags {
		if strings.HasPrefix(w, "PREEMPT") && w != "PREEMPT_VOLUNTARY" {
			return w
		}
	}
	return ""
}

// Banner is the kernel's own description of itself, "" if there is none.
func (img *Image) Banner() string { return img.findBanner().text }

// Release is the release in the banner, as uname -r prints it; "" if there is no banner.
func (img *Image) Release() string { return img.findBanner().release }

// symbol decides by the symbols: on is true if one of the names exists.
func (e *evidence) symbol(names ...string) (on bool, why string, ok bool) {
	for _, n := range names {
		if _, ok := e.img.symbolAddr(n); ok {
			return true, "symbol " + n, true
		}
	}
	return false, "no symbol " + names[0], e.kprobes
}

// functionsBeginWithEndbr looks at the entries of some well-known functions.
func (e *evidence) functionsBeginWithEndbr() (on bool, why string, ok bool) {
	if s := e.img.section(".ibt_endbr_seal"); s != nil {
		return true, "section .ibt_endbr_seal", true
	}
	for _, n := range []string{"register_kprobe", "kallsyms_lookup_name"} {
		a, found := e.img.symbolAddr(n)
		if b := e.img.bytes(a, 4); found && b != nil {
			return isEndbr(b), fmt.Sprintf("%s begins with % x", n, b), true
		}
	}
	return false, "", false
}
