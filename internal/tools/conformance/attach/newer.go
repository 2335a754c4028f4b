package attach

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kprobelab/internal/script/bpftrace"
	"kprobelab/internal/script/ways"
	"kprobelab/kimage"
)

// newer decides whether a script's probes attach in bpftrace 0.27. It has the rules that differ from 0.23's, each a row
// of docs/bpftrace.md. This program computes the kernel's answers.
type newer struct {
	ways   kernel
	traced []string
	events []string
	points []string
}

// kernel answers for the kernel that the probes are for.
type kernel interface {
	Typed(function, module string) (parameters int, ok bool)
	Trampoline(function string, ret bool) (verified bool, err error)
	Kprobe(place string, ret bool) error
}

func newNewer(img *kimage.Image) *newer {
	n := &newer{ways: ways.ForBpftrace(img)}
	d := newDrawer(img, 1)
	n.traced, n.events = listed(d.traced), d.events
	// A raw tracepoint is one of whose functions the BTF has one. Those of some systems are not listed, as measured.
	unlisted := map[string]bool{}
	for _, e := range img.Events() {
		if e.System == "power" || e.System == "rpm" || e.System == "maple_tree" {
			unlisted[e.Name] = true
		}
	}
	raw, _ := img.BTF()
	for name := range strings.SplitSeq(string(raw), "\x00") {
		for _, prefix := range []string{"__probestub_", "__traceiter_"} {
			if point, ok := strings.CutPrefix(name, prefix); ok && !unlisted[point] {
				if _, is := img.Types().FuncID(name); is {
					n.points = append(n.points, point)
				}
			}
		}
	}
	return n
}

// listed returns the functions that the tool offers for kprobes: available_filter_functions without the functions whose
// probes hang a kernel.
func listed(traced []string) (list []string) {
	for _, f := range traced {
		if !bpftrace.Harmful(f) {
			list = append(list, f)
		}
	}
	return list
}

// The rules, in the words of docs/bpftrace.md.
const (
	ruleBefore   = "a point without a match is found before anything is attached"
	ruleSkipped  = "what cannot be attached is skipped unless missing_probes is error"
	ruleUnlisted = "a kprobe of a name that available_filter_functions lacks has no match"
	ruleModule   = "a module that is not loaded is an error"
	ruleEmpty    = "a block of which no point is left"
	ruleNothing  = "nothing is left to attach"
	ruleTwice    = "a point may be there twice"
	ruleRaw      = "raw tracepoints are those of the BTF; one that is not there is left out"
	ruleRefused  = "what the verifier refuses is an error"
	ruleHarmful  = "a fentry of a function that the tool lists never has no match"
)

var (
	errNoBTF   = errors.New("no BTF found")
	errRefused = errors.New("the verifier refuses it")
)

// greedy is a pattern's meaning as the tool has it: a star takes the first place where the text after it fits.
func greedy(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	for _, p := range parts[1:] {
		at := strings.Index(name, p)
		if at < 0 {
			return false
		}
		name = name[at+len(p):]
	}
	return parts[last] == "" || name == ""
}

// command holds the parts of a command line that decide its verdict: the script, --unsafe, and missing_probes.
type command struct {
	text    string
	unsafe  bool
	setting string
}

// commandOf reads a drawn command line; ok is false for a list.
func commandOf(c one, folder string) (cmd command, ok bool) {
	for i, a := range c.Args {
		switch {
		case a == "-l":
			return cmd, false
		case a == "--unsafe":
			cmd.unsafe = true
		case i > 0 && c.Args[i-1] == "-e":
			cmd.text = a
		case strings.HasSuffix(a, ".bt"):
			b, err := os.ReadFile(filepath.Join(folder, a))
			if err != nil {
				return cmd, false
			}
			cmd.text = string(b)
		}
	}
	cmd.setting = "error"
	for _, s := range []string{"ignore", "warn"} {
		if strings.Contains(cmd.text, `missing_probes = "`+s+`"`) {
			cmd.setting = s
		}
	}
	return cmd, true
}

// verdict says whether the newer tool accepts a script, and which of its rules decide.
func (n *newer) verdict(cmd command) (accepted bool, rules []string) {
	note := func(rule string) {
		if !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	wrong, left := false, 0
	var attach []func() error
	for line := range strings.Lines(cmd.text) {
		points, body, ok := strings.Cut(strings.TrimSpace(line), " {")
		switch {
		case !ok || strings.HasPrefix(line, "config"):
			continue
		case points == "BEGIN":
			left++
			continue
		}
		full, kept := strings.Contains(body, "probe"), 0
		seen := map[string]bool{}
		for _, p := range strings.Split(strings.ReplaceAll(points, "$1", "vmlinux"), ",") {
			p = strings.TrimSpace(p)
			if seen[p] {
				note(ruleTwice)
			}
			seen[p] = true
			provider, rest, _ := strings.Cut(p, ":")
			list := providers(provider)
			wrong = wrong || len(list) == 0
			for _, one := range list {
				found, rule, bad := n.match(one, rest, full, cmd)
				if rule != "" {
					note(rule)
				}
				wrong = wrong || bad
				kept += len(found)
				attach = append(attach, found...)
			}
		}
		left += kept
		if kept == 0 {
			note(ruleEmpty)
			wrong = wrong || cmd.setting == "error"
		}
	}
	if left == 0 {
		note(ruleNothing)
		return false, rules
	}
	for _, a := range attach {
		switch err := a(); {
		case errors.Is(err, errRefused):
			note(ruleRefused)
			wrong = true
		case err != nil:
			note(ruleSkipped)
			wrong = wrong || cmd.setting == "error"
		}
	}
	return !wrong, rules
}

// explains reports whether the rules give the newer tool's verdict. cause names the rules
// that decided.
func (n *newer) explains(c one, folder string, w said) (right bool, cause string) {
	cmd, ok := commandOf(c, folder)
	if !ok {
		return false, ""
	}
	accepted, rules := n.verdict(cmd)
	return accepted == (w.code == 0), strings.Join(rules, "; ")
}

// providers returns the providers that a name, a short name or a pattern means.
func providers(name string) []string {
	short := map[string]string{"k": "kprobe", "kr": "kretprobe", "f": "fentry", "kfunc": "fentry", "fr": "fexit", "kretfunc": "fexit", "t": "tracepoint", "rt": "rawtracepoint"}
	if long, ok := short[name]; ok {
		return []string{long}
	}
	if !strings.Contains(name, "*") {
		return []string{name}
	}
	var list []string
	for _, p := range []string{"fentry", "iter", "kprobe", "rawtracepoint", "tracepoint"} {
		if fits(name, p) {
			list = append(list, p)
		}
	}
	return list
}

// match finds what a point stands for, each with its attempt; bad is an error whatever comes of the others.
func (n *newer) match(provider, rest string, full bool, cmd command) (found []func() error, rule string, bad bool) {
	nothing := func(rule string) ([]func() error, string, bool) {
		return nil, rule, cmd.setting == "error" && !full
	}
	module, name, has := strings.Cut(rest, ":")
	if !has {
		module, name = "", rest
	}
	accepted := []func() error{func() error { return nil }}
	switch provider {
	case "iter":
		return nil, ruleBefore, true
	case "tracepoint":
		pattern := rest
		if !has {
			pattern = "*:" + rest
		}
		switch {
		case slices.ContainsFunc(n.events, func(e string) bool { return greedy(pattern, e) }):
			return accepted, "", false
		case strings.Contains(rest, "*"):
			return nil, ruleBefore, false
		}
		return nothing(ruleBefore)
	case "rawtracepoint":
		if slices.ContainsFunc(n.points, func(e string) bool { return greedy(rest, e) }) {
			return accepted, "", false
		}
		return nil, ruleRaw, false
	}
	name, after, _ := strings.Cut(name, "+")
	wild := strings.Contains(module+name, "*")
	ret := provider == "kretprobe" || provider == "fexit"
	if module != "" && !fits(module, "vmlinux") {
		switch {
		case wild || full:
			return nil, ruleModule, false
		case provider == "kprobe" || provider == "kretprobe":
			return nil, ruleModule, true
		}
		return nothing(ruleModule)
	}
	for _, f := range n.traced {
		if !greedy(name, f) || strings.Contains(f, ".part.") {
			continue
		}
		if provider == "fentry" || provider == "fexit" {
			found = append(found, func() error {
				if _, ok := n.ways.Typed(f, ""); !ok {
					return errNoBTF
				}
				verified, err := n.ways.Trampoline(f, ret)
				if verified && err != nil {
					return errRefused
				}
				return err
			})
			continue
		}
		found = append(found, func() error { return n.ways.Kprobe(at(f, after), ret) })
	}
	kprobe := provider == "kprobe" || provider == "kretprobe"
	switch {
	case len(found) > 0:
		return found, "", false
	case wild:
		return nil, ruleBefore, false
	case !kprobe && bpftrace.Harmful(name):
		return nothing(ruleHarmful)
	case kprobe && cmd.unsafe && !full:
		return []func() error{func() error { return n.ways.Kprobe(at(name, after), ret) }}, "", false
	case kprobe:
		return nothing(ruleUnlisted)
	}
	return nothing(ruleBefore)
}

// at is a place as the kernel reads it.
func at(name, offset string) string {
	if v, err := strconv.ParseInt(offset, 0, 64); err == nil && v != 0 {
		return name + "+" + strconv.FormatInt(v, 10)
	}
	return name
}
