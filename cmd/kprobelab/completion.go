package main

import (
	"bufio"
	"context"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab"
	"kprobelab/boot"
	"kprobelab/decoder/compare"
	"kprobelab/internal/bench"
	"kprobelab/internal/engine"
	"kprobelab/internal/explore"
	"kprobelab/kernels"
	"kprobelab/kimage"
	"kprobelab/kprobes/hazard"
	"kprobelab/profile"
)

// completeCommand is the hidden command that the shells' scripts call:
// __complete SHELL WORD…, the last word being the one under the cursor. It
// prints one candidate a line, a tab and what it is, and ":files" where file
// names fit.
const completeCommand = "__complete"

//go:embed completion/kprobelab.bash
var bashScript string

//go:embed completion/kprobelab.zsh
var zshScript string

//go:embed completion/kprobelab.fish
var fishScript string

var shells = map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}

func completionCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:        "completion",
		Usage:       "print a shell's completion script, which knows the image's symbols",
		ArgsUsage:   "bash|zsh|fish",
		Description: described("completion"),
		Action: func(_ context.Context, c *cli.Command) error {
			script, ok := shells[c.Args().First()]
			if !ok || c.Args().Len() != 1 {
				return usagef("completion takes one shell: bash, zsh or fish")
			}
			_, err := io.WriteString(t.out, script)
			return err
		},
	}
}

// complete answers one request of a shell's script. On an error it prints
// nothing: there is nothing to complete then.
func complete(w io.Writer, args []string) {
	if len(args) < 2 {
		return
	}
	out := bufio.NewWriter(w)
	defer out.Flush()
	r := &completion{w: out, shell: args[0], values: map[string][]string{}}
	r.words(newApp(newTerm(io.Discard, io.Discard)), joinEquals(args[1:]))
}

// joinEquals undoes what bash does to --flag=value, which it splits into three
// words: the flag and the value remain.
func joinEquals(words []string) []string {
	var out []string
	for i, w := range words {
		if w == "=" && i > 0 && strings.HasPrefix(words[i-1], "--") {
			if i == len(words)-1 {
				out = append(out, "")
			}
			continue
		}
		out = append(out, w)
	}
	return out
}

// completion is one request.
type completion struct {
	w     io.Writer
	shell string
	// positional has the arguments before the cursor that are no flags, values
	// has the flags' values.
	positional []string
	values     map[string][]string
}

func (r *completion) offer(value, what string) { fmt.Fprintf(r.w, "%s\t%s\n", value, what) }

func (r *completion) files() { fmt.Fprintln(r.w, ":files") }

// words walks over the words and offers what fits in place of the last.
func (r *completion) words(app *cli.Command, words []string) {
	last := words[len(words)-1]
	cmd := app
	for len(cmd.Commands) > 0 {
		if len(words) == 1 && strings.HasPrefix(last, "-") && len(cmd.Flags) > 0 {
			r.flags(cmd, last)
			return
		}
		if len(words) == 1 {
			r.commands(cmd, last)
			return
		}
		if cmd = cmd.Command(words[0]); cmd == nil {
			return
		}
		words = words[1:]
	}
	if cmd.Name == "completion" {
		for _, shell := range []string{"bash", "fish", "zsh"} {
			r.offer(shell, "")
		}
		return
	}
	if flag := r.before(cmd, words[:len(words)-1]); flag != "" {
		r.value(cmd, flag, last)
		return
	}
	if len(r.positional) > 0 && slices.Contains(programs, cmd.Name) {
		r.files()
		return
	}
	if name, value, ok := strings.Cut(last, "="); ok && strings.HasPrefix(name, "--") {
		r.w = prefixed(r.w, name+"=")
		r.value(cmd, name[2:], value)
		return
	}
	if strings.HasPrefix(last, "-") {
		r.flags(cmd, last)
		return
	}
	r.argument(cmd, last)
}

func (r *completion) commands(c *cli.Command, prefix string) {
	for _, sub := range c.Commands {
		if strings.HasPrefix(sub.Name, prefix) {
			r.offer(sub.Name, sub.Usage)
		}
	}
}

// before reads the words before the cursor. It returns the name of the flag
// whose value is being typed, "" where none is.
func (r *completion) before(cmd *cli.Command, words []string) string {
	for _, a := range arguments(cmd, words) {
		switch {
		case a.flag == "":
			r.positional = append(r.positional, a.value)
		case a.open:
			return a.flag
		case a.valued:
			r.values[a.flag] = append(r.values[a.flag], a.value)
		}
	}
	return ""
}

func (r *completion) flags(cmd *cli.Command, prefix string) {
	for _, f := range cmd.Flags {
		name := "--" + f.Names()[0]
		if d, ok := f.(cli.DocGenerationFlag); ok && !hidden(f) && strings.HasPrefix(name, prefix) {
			r.offer(name, strings.ReplaceAll(d.GetUsage(), "`", ""))
		}
	}
	if strings.HasPrefix("--help", prefix) {
		r.offer("--help", "show help")
	}
}

// argument completes what is no flag: the image, then the symbols' pattern.
func (r *completion) argument(cmd *cli.Command, prefix string) {
	switch {
	case cmd.Name == "explore":
		if len(r.positional) == 0 {
			r.scenarios(prefix)
			r.files()
		}
	case strings.HasPrefix(cmd.ArgsUsage, "RELEASE"):
		r.releases(prefix)
	case len(r.positional) == 0 && cmd.ArgsUsage != "", cmd.Name == "check", cmd.Name == "pack":
		r.files()
	case len(r.positional) == 1 && cmd.Name == "symbols":
		r.symbols(prefix, "", "", func(kimage.Symbol) bool { return true })
	case cmd.Name == "scan", len(r.positional) == 1 && cmd.Name == "explain":
		r.symbols(prefix, "", "", isFunction)
	}
}

// releases offers the kernels that are kept.
func (r *completion) releases(prefix string) {
	s, err := kernels.Open(&kernels.Options{})
	if err != nil {
		return
	}
	list, _ := s.Kept()
	for _, k := range list {
		if strings.HasPrefix(k.Release, prefix) {
			r.offer(k.Release, k.Has())
		}
	}
}

// scenarios offers the names of the program's own scenarios.
func (r *completion) scenarios(prefix string) {
	for _, name := range explore.Library() {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		about := ""
		if p, err := explore.FromLibrary(name); err == nil {
			about = p.Scenario().About
		}
		r.offer(name, about)
	}
}

// choice is a value of a flag, and what it means.
type choice struct{ value, what string }

// choices are the values of flags that have a list of them; a nil list is for files.
var choices = map[string]func() []choice{
	"profile": func() (list []choice) {
		for _, m := range profile.Models() {
			list = append(list, choice{m.Name, m.Describes})
		}
		return list
	},
	"bug": func() (list []choice) {
		for _, b := range explore.Switches() {
			list = append(list, choice{b.ID, b.Title})
		}
		return list
	},
	"with": func() []choice {
		list := plainChoices(compare.Names)
		for _, name := range profile.All() {
			list = append(list, choice{"kernel:" + name, "the kernel's own decoder of " + name})
		}
		return list
	},
	"path": func() (list []choice) {
		for _, p := range bench.Paths() {
			list = append(list, choice{p.Name, p.Describes})
		}
		return list
	},
	"decoder": func() (list []choice) {
		for _, d := range decoders {
			list = append(list, choice{d.name, d.what})
		}
		return list
	},
	"allow": func() (list []choice) {
		for _, h := range hazard.All() {
			list = append(list, choice{string(h.ID), h.Sentence})
		}
		return list
	},
	"hardware":    func() []choice { return plainChoices(bench.HardwareNames()) },
	"cpu":         func() []choice { return plainChoices(append(kimage.CPUModels(), kimage.HostCPU)) },
	"engine":      func() []choice { return plainChoices(engine.Names()) },
	"format":      func() []choice { return plainChoices(checkFormats) },
	"boot/format": func() []choice { return plainChoices([]string{string(boot.Zstd), string(boot.ELF)}) },
	"boot/cpu":    func() []choice { return plainChoices(kimage.CPUModels()) },
}

func plainChoices(names []string) (list []choice) {
	for _, name := range names {
		list = append(list, choice{name, ""})
	}
	return list
}

// ofFiles are the flags whose value is a file.
var ofFiles = []string{
	"append", "archive", "asm", "config", "hardware", "image", "kernel", "live-text", "module", "out", "output", "perfetto", "plot", "points", "replay", "svg", "symbols",
	"stdin", "trace-output", "boot/file", "uprobe/file", "boot/tracing", "boot/qemu",
}

// value completes the value of a flag.
func (r *completion) value(cmd *cli.Command, flag, typed string) {
	switch flag {
	case "kprobe", "kretprobe", "symbol", "func":
		r.symbols(typed, "", "", isFunction)
	case "watch":
		r.symbols(typed, "", "", func(kimage.Symbol) bool { return true })
	case "call":
		r.call(typed)
	case "task":
		if cmd.Name != "boot" { // there it is a program
			r.call(typed)
		}
	case "kernel":
		r.releases(typed)
	}
	own := cmd.Name + "/" + flag
	list, ok := choices[own]
	if !ok {
		list, ok = choices[flag]
	}
	if ok {
		for _, c := range list() {
			if len(typed) <= len(c.value) && strings.EqualFold(c.value[:len(typed)], typed) {
				r.offer(c.value, c.what)
			}
		}
	}
	if slices.Contains(ofFiles, flag) || slices.Contains(ofFiles, own) {
		r.files()
	}
}

// call completes the last word of a call that is being typed: the function's
// name, or a symbol after an ampersand. A call needs quotes in the shell, so
// the opening one is added where it is missing.
func (r *completion) call(typed string) {
	quote := ""
	if typed != "" && strings.ContainsRune(`'"`, rune(typed[0])) {
		typed = typed[1:]
	} else if r.shell != "fish" {
		quote = "'"
	}
	start := strings.LastIndexAny(typed, "; ,&()") + 1
	before, word := typed[:start], typed[start:]
	if strings.HasSuffix(before, "&") {
		r.symbols(word, quote+before, "", func(kimage.Symbol) bool { return true })
	} else if strings.Count(before, "(") == strings.Count(before, ")") {
		r.symbols(word, quote+before, "(", isFunction)
	}
}

// symbols offers the image's symbols with that prefix, each with the text
// around it. Nothing is offered for an empty prefix: 87,000 names are no help.
func (r *completion) symbols(prefix, before, after string, want func(kimage.Symbol) bool) {
	if prefix == "" {
		return
	}
	img, err := kprobelab.OpenImage(first(slices.Concat(r.values["kernel"], r.positional, r.values["image"])), &kimage.Options{
		SystemMap: first(r.values["symbols"]), Modules: r.values["module"], NoBoot: true,
	})
	if err != nil {
		return
	}
	seen := map[string]bool{}
	for _, s := range img.Symbols() {
		if strings.HasPrefix(s.Name, prefix) && want(s) && !seen[s.Name] {
			seen[s.Name] = true
			r.offer(before+s.Name+after, s.Module)
		}
	}
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func isFunction(s kimage.Symbol) bool { return strings.IndexByte("tTwW", s.Type) >= 0 }

// prefixed writes every line with a prefix; each Write is whole lines.
func prefixed(w io.Writer, prefix string) io.Writer { return prefixWriter{w, prefix} }

type prefixWriter struct {
	w      io.Writer
	prefix string
}

func (p prefixWriter) Write(b []byte) (int, error) {
	if !strings.HasPrefix(string(b), ":files") {
		if _, err := io.WriteString(p.w, p.prefix); err != nil {
			return 0, err
		}
	}
	return p.w.Write(b)
}
