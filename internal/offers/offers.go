package offers

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab"
	"kprobelab/boot"
	"kprobelab/decoder/compare"
	"kprobelab/internal/bench"
	"kprobelab/internal/cmdline"
	"kprobelab/internal/engine"
	"kprobelab/internal/explore"
	"kprobelab/internal/report"
	"kprobelab/kernels"
	"kprobelab/kimage"
	"kprobelab/kprobes/hazard"
	"kprobelab/profile"
)

// Values completes operands and the values of flags.
type Values struct {
	// Decoders are the values of --decoder.
	Decoders []cmdline.Choice
}

// Operand completes what is no flag: the image, then the symbols' pattern.
func (Values) Operand(r *cmdline.Completion, cmd *cli.Command, prefix string) {
	switch {
	case cmd.Name == "explore":
		if len(r.Operands) == 0 {
			offerScenarios(r, prefix)
			r.Files()
		}
	case strings.HasPrefix(cmd.ArgsUsage, "RELEASE"):
		offerReleases(r, prefix)
	case len(r.Operands) == 0 && cmd.ArgsUsage != "", cmd.Name == "check", cmd.Name == "pack":
		r.Files()
	case len(r.Operands) == 1 && cmd.Name == "symbols":
		offerSymbols(r, prefix, "", "", anySymbol)
	case cmd.Name == "scan", len(r.Operands) == 1 && cmd.Name == "explain":
		offerSymbols(r, prefix, "", "", (*kimage.Symbol).IsFunction)
	}
}

// offerReleases offers the kernels that are kept.
func offerReleases(r *cmdline.Completion, prefix string) {
	s, err := kernels.Open(&kernels.Options{})
	if err != nil {
		return
	}
	list, _ := s.Kept()
	for _, k := range list {
		if strings.HasPrefix(k.Release, prefix) {
			r.Offer(k.Release, k.Has())
		}
	}
}

// offerScenarios offers the names of the program's own scenarios.
func offerScenarios(r *cmdline.Completion, prefix string) {
	for _, name := range explore.Library() {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		about := ""
		if p, err := explore.FromLibrary(name); err == nil {
			about = p.Scenario().About
		}
		r.Offer(name, about)
	}
}

// choices are the values of flags that have a list of them; a nil list is for files.
var choices = map[string]func() []cmdline.Choice{
	"profile": func() (list []cmdline.Choice) {
		for _, m := range profile.Models() {
			list = append(list, cmdline.Choice{Value: m.Name, What: m.Describes})
		}
		return list
	},
	"bug": func() (list []cmdline.Choice) {
		for _, b := range explore.Switches() {
			list = append(list, cmdline.Choice{Value: b.ID, What: b.Title})
		}
		return list
	},
	"with": func() []cmdline.Choice {
		list := cmdline.Choices(compare.Names)
		for _, name := range profile.All() {
			list = append(list, cmdline.Choice{Value: "kernel:" + name, What: "the kernel's own decoder of " + name})
		}
		return list
	},
	"path": func() (list []cmdline.Choice) {
		for _, p := range bench.Paths() {
			list = append(list, cmdline.Choice{Value: p.Name, What: p.Describes})
		}
		return list
	},
	"allow": func() (list []cmdline.Choice) {
		for _, h := range hazard.All() {
			list = append(list, cmdline.Choice{Value: string(h.ID), What: h.Sentence})
		}
		return list
	},
	"hardware":    func() []cmdline.Choice { return cmdline.Choices(bench.HardwareNames()) },
	"cpu":         func() []cmdline.Choice { return cmdline.Choices(append(kimage.CPUModels(), kimage.HostCPU)) },
	"engine":      func() []cmdline.Choice { return cmdline.Choices(engine.Names()) },
	"format":      func() []cmdline.Choice { return cmdline.Choices(report.CheckFormats) },
	"boot/format": func() []cmdline.Choice { return cmdline.Choices([]string{string(boot.Zstd), string(boot.ELF)}) },
	"boot/cpu":    func() []cmdline.Choice { return cmdline.Choices(kimage.CPUModels()) },
}

// ofFiles are the flags whose value is a file.
var ofFiles = []string{
	"append", "archive", "asm", "config", "film", "hardware", "image", "kernel", "lessons", "live-text", "module", "out", "output", "perfetto", "plot", "points", "replay", "svg", "symbols",
	"since", "stdin", "trace-output", "boot/file", "uprobe/file", "boot/tracing", "boot/qemu", "waivers",
}

// Value completes the value of a flag.
func (v Values) Value(r *cmdline.Completion, cmd *cli.Command, flag, typed string) {
	switch flag {
	case "kprobe", "kretprobe", "symbol", "func":
		offerSymbols(r, typed, "", "", (*kimage.Symbol).IsFunction)
	case "watch":
		offerSymbols(r, typed, "", "", anySymbol)
	case "call":
		offerCall(r, typed)
	case "task":
		if cmd.Name != "boot" { // there it is a program
			offerCall(r, typed)
		}
	case "kernel":
		offerReleases(r, typed)
	}
	own := cmd.Name + "/" + flag
	list, ok := choices[own]
	if !ok {
		list, ok = choices[flag]
	}
	switch {
	case flag == "decoder":
		r.Choose(v.Decoders, typed)
	case ok:
		r.Choose(list(), typed)
	}
	if slices.Contains(ofFiles, flag) || slices.Contains(ofFiles, own) {
		r.Files()
	}
}

// offerCall completes the last word of a call that is being typed: the function's
// name, or a symbol after an ampersand. A call needs quotes in the shell, so
// the opening one is added where it is missing.
func offerCall(r *cmdline.Completion, typed string) {
	quote := ""
	if typed != "" && strings.ContainsRune(`'"`, rune(typed[0])) {
		typed = typed[1:]
	} else if r.Shell != "fish" {
		quote = "'"
	}
	start := strings.LastIndexAny(typed, "; ,&()") + 1
	before, word := typed[:start], typed[start:]
	if strings.HasSuffix(before, "&") {
		offerSymbols(r, word, quote+before, "", anySymbol)
	} else if strings.Count(before, "(") == strings.Count(before, ")") {
		offerSymbols(r, word, quote+before, "(", (*kimage.Symbol).IsFunction)
	}
}

// offerSymbols offers the image's symbols with that prefix, each with the text
// around it. Nothing is offered for an empty prefix: 87,000 names are no help.
func offerSymbols(r *cmdline.Completion, prefix, before, after string, want func(*kimage.Symbol) bool) {
	if prefix == "" {
		return
	}
	img, err := kprobelab.OpenImage(first(slices.Concat(r.Flags["kernel"], r.Operands, r.Flags["image"])), &kimage.Options{
		SystemMap: first(r.Flags["symbols"]), Modules: r.Flags["module"], NoBoot: true,
	})
	if err != nil {
		return
	}
	seen := map[string]bool{}
	for _, s := range img.Symbols() {
		if strings.HasPrefix(s.Name, prefix) && want(&s) && !seen[s.Name] {
			seen[s.Name] = true
			r.Offer(before+s.Name+after, s.Module)
		}
	}
}

func anySymbol(*kimage.Symbol) bool { return true }

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
