package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
	"kprobelab/internal/ctype"
	"kprobelab/internal/script/attach"
	"kprobelab/internal/script/stap"
	"kprobelab/internal/source"
	"kprobelab/kimage"
	"kprobelab/x86"
)

const stapHelp = `Runs a script of SystemTap's language: its probes are kprobes and kretprobes of this program,
planted in the image that -r names (the guest kernel inside the program without it), its timers
tick in virtual time.

Something has to happen on the image: --call calls a function or, on the dump of a booted kernel
(kprobelab boot), makes a system call; -c runs a program of the dump's files, as stap's -c does.
The script ends when that has ended, or when it calls exit(). Without either, virtual time passes
until a timer has called exit(), for --for at most.

A program that is there has the verdicts and messages of stap 4.8; docs/stap.md lists what is
not there, and what each function of the library does. $variables need debugging information
(--debuginfo FILE); of a function's parameters and its result the image's BTF knows as much.

`

const stapExit = `Exit codes: 0 done; 1 the script is wrong, or ended with an error, or the program of -c did not
end with 0; 2 wrong use; 3 a file cannot be read; 4 this build has no engine; 5 the engine failed.`

// stapRun is what the command line asks for.
type stapRun struct {
	scriptRun
	image  string
	define map[string]uint64
	guru   bool
}

func stapCommand(t *term) *cli.Command {
	r := &stapRun{}
	return &cli.Command{
		Name:      "stap",
		Usage:     "run a SystemTap script on an image or a booted kernel's dump",
		ArgsUsage: "SCRIPT.stp|-|-e SCRIPT [ARGS]",
		Description: stapHelp + examples(
			"kprobelab stap hello-world.stp",
			"kprobelab stap -e 'probe kernel.function(\"vfs_read\") { println(pp()) }' --call 'sys_open(\"/etc/hostname\", 0, 0)' --call 'sys_read(3, buf[8], 8)'",
			"kprobelab stap -r kernel.core -c '/bin/busybox cat /etc/hostname' strace-open.stp",
			"kprobelab stap -r kernel.core --stats -c /bin/calls -e 'global calls probe syscall.* { calls[name]++ }'",
			"kprobelab stap -r vmlinux -L 'kernel.function(\"vfs_*\")'",
			"kprobelab stap -p1 script.stp",
		) + "\n" + stapExit,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "script", Aliases: []string{"e"}, Usage: "the `SCRIPT` itself, not a file's name"},
			&cli.StringFlag{Name: "release", Aliases: []string{"r"}, Destination: &r.image, Usage: "run on this `IMAGE` or dump (default: the guest kernel)"},
			&cli.StringFlag{Name: "command", Aliases: []string{"c"}, Destination: &r.command, Usage: "on a booted kernel, run the program `'PROGRAM ARGS'` and end when it ends"},
			&cli.StringSliceFlag{Name: "call", Destination: &r.calls, Usage: "make this `CALL`, as in kprobelab run (repeatable)"},
			&cli.IntFlag{Name: "pass", Aliases: []string{"p"}, Value: 5, Usage: "stop after `PASS` 1 (print what was read) or 2 (print probes, functions, types)"},
			&cli.StringFlag{Name: "list", Aliases: []string{"L"}, Usage: "list the probes of `POINT` and their variables"},
			&cli.StringFlag{Name: "names", Aliases: []string{"l"}, Usage: "list the probes of `POINT`"},
			&cli.BoolFlag{Name: "guru", Aliases: []string{"g"}, Destination: &r.guru, Usage: "allow what only -g allows: writing variables and memory, probes at an address, @kderef, @kregister, @const"},
			&cli.StringSliceFlag{Name: "define", Aliases: []string{"D"}, Usage: "set a limit, `NAME=VALUE`: " + strings.Join(limitNames, ", ") + " (repeatable)"},
			&cli.StringSliceFlag{Name: "global", Aliases: []string{"G"}, Usage: "give a global variable another beginning, `NAME=VALUE` (repeatable)"},
			&cli.BoolFlag{Name: "stats", Aliases: []string{"t"}, Destination: &r.stats, Usage: "print, on standard error, how each probe was planted, its hits, misses and statements"},
			&cli.Uint64Flag{Name: "budget", Value: execBudget, Destination: &r.budget, Usage: "stop a call or the program after this many guest `INSTRUCTIONS`"},
			&cli.DurationFlag{Name: "for", Value: time.Minute, Destination: &r.wait, Usage: "without -c and --call, let this much virtual `TIME` pass at most"},
			decoderFlag("x86asm"), debuginfo(),
			rawFlag(t),
		}, imageFlags()...),
		Action: func(_ context.Context, c *cli.Command) error { return t.differences(r.run(t, c)) },
	}
}

// limitNames are what -D can set.
var limitNames = []string{"MAXACTION", "MAXACTION_INTERRUPTIBLE", "MAXNESTING", "MAXSTRINGLEN", "MAXMAPENTRIES", "MAXERRORS", "MAXSKIPPED"}

func (r *stapRun) run(t *term, c *cli.Command) error {
	if err := oneOf(c, "list", "names"); err != nil {
		return err
	}
	args := c.Args().Slice()
	name, text := "<input>", c.String("script")
	listed := ""
	switch {
	case c.IsSet("list") || c.IsSet("names"):
		listed = c.String("list") + c.String("names")
		text = "probe " + listed + " {}"
	case c.IsSet("script"):
	case len(args) == 0:
		return usagef("stap takes a script: a file, - for standard input, or -e SCRIPT; try %s --help", c.FullName())
	default:
		var b []byte
		var err error
		if name = args[0]; name == "-" {
			name = "<input>"
			b, err = bounded.ReadAll(os.Stdin, bounded.Script)
		} else {
			b, err = bounded.ReadFile(name, bounded.Script)
		}
		if err != nil {
			return &failure{exitImage, err}
		}
		text, args = string(b), args[1:]
	}
	pass := c.Int("pass")
	if pass != 1 && pass != 2 && pass != 5 {
		return usagef("-p %s: there are pass 1, 2 and 5: no C is made of a script here", strconv.Itoa(pass))
	}
	o := &stap.Options{Args: args, Guru: r.guru, List: listed != "", Types: pass == 2}
	if err := r.limits(c, o); err != nil {
		return err
	}
	normally := debug.SetGCPercent(collectAt)
	img, err := openImage(t, c, r.image)
	if err != nil {
		return err
	}
	o.Release = stapRelease(img)
	if pass == 1 && listed == "" {
		tree, err := stap.Parse(name, text, o)
		if err != nil {
			return t.problems(err)
		}
		fmt.Fprint(t.out, tree)
		return nil
	}
	k, err := stapKernel(newDefiner(c, img), img)
	if err != nil {
		return err
	}
	s, err := stap.Analyze(name, text, o, k)
	if err != nil {
		return t.problems(err)
	}
	switch {
	case c.IsSet("list"):
		fmt.Fprint(t.out, s.List(true))
		return nil
	case c.IsSet("names"):
		fmt.Fprint(t.out, s.List(false))
		return nil
	case pass == 2:
		fmt.Fprint(t.out, s.Dump())
		return nil
	}
	r.errors, r.skipped = r.limit("MAXERRORS", 0), r.limit("MAXSKIPPED", 100)
	r.failed = passFailed(5)
	debug.SetGCPercent(normally)
	return r.start(t, img, stapScript(s))
}

// collectAt is how much garbage there may be while a script or debugging information is read, in hundredths of what is in use:
// that are an image and its debugging information, hundreds of megabytes which nobody has to go over.
const collectAt = 10

// passFailed is the end of a script that failed in that pass, in stap's words.
type passFailed int

func (p passFailed) Error() string {
	return fmt.Sprintf("Pass %d: %s failed.", int(p), map[passFailed]string{1: "parse", 2: "analysis", 3: "translation", 5: "run"}[p])
}

// problems prints what is wrong with a script as stap does.
func (t *term) problems(err error) error {
	var p stap.Problems
	if !errors.As(err, &p) {
		return &failure{exitRefused, err}
	}
	fmt.Fprint(t.err, p.Text())
	if p.Parsing() {
		return &failure{exitRefused, passFailed(1)}
	}
	if p.Translating() {
		return &failure{exitRefused, passFailed(3)}
	}
	return &failure{exitRefused, passFailed(2)}
}

// limits reads -D and -G.
func (r *stapRun) limits(c *cli.Command, o *stap.Options) error {
	r.define = map[string]uint64{}
	for _, d := range c.StringSlice("define") {
		name, value, ok := strings.Cut(d, "=")
		v, err := strconv.ParseUint(value, 0, 31)
		switch {
		case !ok || err != nil:
			return usagef("-D %q: want NAME=NUMBER", d)
		case !slices.Contains(limitNames, name):
			return usagef("-D %s: there is no such limit, only %s", name, strings.Join(limitNames, ", "))
		}
		r.define[name] = v
	}
	o.Limits = r.define
	o.Globals = map[string]string{}
	for _, g := range c.StringSlice("global") {
		name, value, ok := strings.Cut(g, "=")
		if !ok || name == "" {
			return usagef("-G %q: want NAME=VALUE", g)
		}
		o.Globals[name] = value
	}
	return nil
}

// stapRelease is the kernel's release as its banner has it, or the modelled one.
func stapRelease(img *kimage.Image) string {
	words := strings.Fields(img.Banner())
	if len(words) > 2 && words[0] == "Linux" && words[1] == "version" {
		return words[2]
	}
	return img.Profile().Name
}

// stapKernel is what scripts can ask of an image.
func stapKernel(d *definer, img *kimage.Image) (*stap.Kernel, error) {
	if err := d.open(); err != nil {
		return nil, err
	}
	freed := initmem(img)
	k := &stap.Kernel{HZ: int64(img.Profile().HZ), Initmem: func(addr uint64) bool { return freed.Contains(x86.Addr(addr)) }}
	k.Source, k.HasLines = d.writers[0].File, len(d.writers) > 1
	k.Exported = func(name string) bool {
		return slices.ContainsFunc(img.Lookup(name), func(s kimage.Symbol) bool { return s.Type == 'T' || s.Type == 'W' })
	}
	k.Constant = func(name string) (int64, bool) {
		v, _, ok := typesOf(d).Enumerator(name)
		return v, ok
	}
	k.Functions = func(pattern string) (list []stap.Function) {
		add := func(s *kimage.Symbol) {
			if strings.ContainsRune("tTwW", rune(s.Type)) {
				list = append(list, stap.Function{Name: s.Name, Module: s.Module, Addr: uint64(s.Addr)})
			}
		}
		if !strings.ContainsAny(pattern, "*?[") {
			for _, s := range img.Lookup(pattern) {
				add(&s)
			}
			return list
		}
		symbols := img.Symbols()
		for i := range symbols {
			if ok, _ := path.Match(pattern, symbols[i].Name); ok {
				add(&symbols[i])
			}
		}
		return list
	}
	if img.Core() != nil {
		k.Program = programs(img)
		var systems map[string]string
		k.Tracepoints = func(pattern string) (list []stap.Tracepoint) {
			seen := map[string]bool{}
			if systems == nil {
				systems = map[string]string{}
				for _, e := range img.Events() {
					systems[e.Name] = e.System
				}
			}
			for _, tp := range img.Tracepoints() {
				if ok, _ := path.Match(pattern, tp.Name); !ok || seen[tp.Name] {
					continue
				}
				seen[tp.Name] = true
				list = append(list, stap.Tracepoint{Name: tp.Name, System: systems[tp.Name], Params: tracepointParams(typesOf(d), tp.Name)})
			}
			return list
		}
	}
	return k, nil
}

// initmem is what the kernel frees when it has booted. A symbol table without data tells of .init.text alone.
func initmem(img *kimage.Image) (r x86.Range) {
	for _, edges := range [][2]string{{"__init_begin", "__init_end"}, {"_sinittext", "_einittext"}} {
		from, to := img.Lookup(edges[0]), img.Lookup(edges[1])
		if len(from) > 0 && len(to) > 0 {
			return x86.Range{Start: from[0].Addr, End: to[0].Addr}
		}
	}
	return r
}

// tracepointParams are a tracepoint's parameters: of the function that calls its callbacks, which has
// their names, else of the callbacks' type.
func tracepointParams(types *source.File, name string) (list []ctype.Param) {
	_ = types.Places(source.Where{Function: "__traceiter_" + name}, func(p *source.Place) error {
		vars, err := p.Variables()
		for _, v := range vars {
			list = append(list, ctype.Param{Name: v.Name, Type: v.Type})
		}
		return err
	})
	if len(list) == 0 {
		if t, err := types.Named("btf_trace_" + name); err == nil {
			list = t.Signature()
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[1:] // the first is the callback's own data
}

// typesOf is the image's BTF.
func typesOf(d *definer) *source.File { return d.writers[len(d.writers)-1].File }

func stapScript(s *stap.Script) *attach.Script {
	return &attach.Script{Program: s.Program, Probes: s.Probes, Words: stap.Words{}, Backwards: true}
}

func (r *stapRun) limit(name string, otherwise uint64) uint64 {
	if v, ok := r.define[name]; ok {
		return v
	}
	return otherwise
}
