package page

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/profile"
	"kprobelab/x86"
)

//go:embed words.json
var wordsJSON []byte

// dictionary is words.json: what each event means, why it happens and where Linux does it.
type dictionary struct {
	// Files are the paths of the kernel's files, by release.
	Files map[string][]struct {
		Path string `json:"path"`
		span
	} `json:"files"`
	Events map[string]*words `json:"events"`
}

// words has the sentences about an event. What and Why name places in braces.
type words struct {
	What  string `json:"what"`
	Why   string `json:"why"`
	Where []struct {
		File     string `json:"file"`
		Function string `json:"function"`
		span
	} `json:"where"`
	// Lights lists the parts of the picture that the event concerns: site, first, tail, jump, slot, detour, ip, stack.
	Lights []string `json:"lights"`
}

// span is a span of releases, from one on until before another; an empty end is open.
type span struct {
	From  string `json:"from"`
	Until string `json:"until"`
}

func (s span) has(v profile.Version) bool {
	from, _ := release(s.From)
	until, ended := release(s.Until)
	return !older(v, from) && (!ended || older(v, until))
}

// release reads the first release of a series.
func release(text string) (v profile.Version, ok bool) {
	if v, ok = profile.ParseVersion(text); v.Patch == profile.AnyPatch {
		v.Patch = 0
	}
	return v, ok
}

// older compares releases.
func older(v, w profile.Version) bool {
	if v.Major != w.Major {
		return v.Major < w.Major
	}
	if v.Minor != w.Minor {
		return v.Minor < w.Minor
	}
	return v.Patch < w.Patch
}

var dictionaryOfEvents = func() (d dictionary) {
	if err := json.Unmarshal(wordsJSON, &d); err != nil {
		panic("BUG: words.json: " + err.Error())
	}
	return d
}()

// Where is a place in Linux's sources.
type Where struct {
	Function string `json:"function"`
	File     string `json:"file"`
	Release  string `json:"release"`
}

// where finds an event's function in a release; nil if the release has none.
func (d *dictionary) where(w *words, v profile.Version) *Where {
	for _, at := range w.Where {
		if !at.has(v) {
			continue
		}
		for _, f := range d.Files[at.File] {
			if f.has(v) {
				return &Where{at.Function, f.Path, fmt.Sprintf("%d.%d", v.Major, v.Minor)}
			}
		}
	}
	return nil
}

// hitKeys are the keys of a hit's events in words.json; a way's suffix may follow.
var hitKeys = [kprobes.NumEventKinds]string{
	"trap", "missed", "pre", "skipped", "boost", "step", "stepped", "emulate", "post", "resume", "fault", "instance", "no-instance",
	"in-nmi", "return", "return-handler", "returned", "jprobe-return", "optimized", "detoured", "detour", "poke",
}

// hitKey is the key of a hit's event.
func hitKey(kind kprobes.EventKind, way kprobes.Way) string {
	key := hitKeys[kind]
	suffix := map[kprobes.Way]string{kprobes.WayDebug: "-debug", kprobes.WayTracer: "-tracer", kprobes.WayDetour: "-detour"}[way]
	if dictionaryOfEvents.Events[key+suffix] != nil {
		key += suffix
	}
	return key
}

// optKey is the key of an event of the optimizer.
func optKey(kind kprobes.OptKind) string {
	if kind == kprobes.OptOptimized {
		return "optimized-by-worker"
	}
	return kind.String()
}

// inWords gives an event its words, with the names of this run.
func (r *run) inWords(m *moment) Event {
	e := Event{Who: m.Who, Text: m.Text, What: m.Text, Key: m.key, Lights: []string{}}
	w := dictionaryOfEvents.Events[m.key]
	if w == nil {
		return e
	}
	site, at, ip := "the site", "", "unknown"
	if m.site != 0 {
		site = r.symbol(m.site)
	}
	if m.at != 0 {
		at = r.symbol(m.at)
	}
	if m.cpu >= 0 && m.has[m.cpu] {
		ip = r.symbol(x86.Addr(m.regs[m.cpu].IP))
	}
	e.fill(w, site, at, ip, r.probeText(m))
	e.Site = m.site.String()
	if m.key == "register" && strings.Contains(m.Text, "refused") {
		e.What, e.Why = "The module has called register_kprobe: "+m.Text[strings.Index(m.Text, "registered"):]+".", "The log has the reason in words; Ask has the rules that speak against a place."
	}
	e.Where = dictionaryOfEvents.where(w, r.version)
	return e
}

// fill puts names into an event's words.
func (e *Event) fill(w *words, site, at, ip, probe string) {
	names := strings.NewReplacer("{who}", e.Who, "{site}", site, "{at}", at, "{ip}", ip, "{probe}", probe)
	e.What, e.Why, e.Lights = names.Replace(w.What), names.Replace(w.Why), w.Lights
}

// version is the release of a machine's rules: by its name, or by its image.
func version(img *kimage.Image, s Scenario) profile.Version {
	name := s.Release
	if name == "" {
		if v, ok := img.Version(); ok {
			return v
		}
		name = profile.Default
	}
	for _, m := range profile.Models() {
		if m.Name == name {
			return m.Release
		}
	}
	v, _ := profile.ParseVersion(name)
	return v
}

// probeText names an event's probe.
func (r *run) probeText(m *moment) string {
	for i, p := range r.probes {
		if p.kprobe() == m.probe {
			if len(r.probes) > 1 {
				return fmt.Sprintf("probe %d (%s)", i+1, p.text)
			}
			return p.text
		}
	}
	if m.site != 0 {
		return r.symbol(m.site)
	}
	return "the probe"
}
