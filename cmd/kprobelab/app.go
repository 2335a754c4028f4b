package main

import (
	"context"
	"embed"
	_ "embed"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
	"kprobelab/internal/cmdline"
	"kprobelab/internal/engine"
	"kprobelab/internal/offers"
)

// groups lists the commands by purpose, in the order of the help.
var groups = []cmdline.Group{
	{Name: "Learn", Commands: []string{"sample", "explore", "serve"}},
	{Name: "Ask", Commands: []string{"explain", "scan", "check", "merge", "pack", "probe", "symbols", "info", "hazards", "decode", "selfcheck"}},
	{Name: "Run", Commands: []string{"run", "exec", "bpf", "uprobe", "stap", "bpftrace", "mount", "bench"}},
	{Name: "Kernels", Commands: []string{"kernels", "boot"}},
	{Name: "The program", Commands: []string{"doctor", "completion", "man", "version"}},
}

// limitsOf holds the limits of the commands: of a script and a guest as run does, of a list by the size of a kernel. A command
// that is not listed, such as run, bounds its calls by flags of its own.
var limitsOf = map[string]cmdline.Limits{
	"stap": {Output: bounded.Output}, "bpftrace": {Output: bounded.Output}, "sample": {Output: bounded.Output},
	"probe": {Output: bounded.Listing}, "explore": {Output: bounded.Listing}, "explain": {Output: bounded.Listing}, "pack": {Output: bounded.Listing},
	"bpf": {Output: bounded.Listing}, "check": {Output: bounded.Listing}, "merge": {Output: bounded.Listing}, "scan": {Output: bounded.Listing}, "info": {Output: bounded.Listing}, "symbols": {Output: bounded.Listing},
	"hazards": {Output: bounded.Listing}, "bench": {Output: bounded.Listing}, "decode": {Output: bounded.Listing}, "selfcheck": {Output: bounded.Listing},
	"boot": {Output: bounded.Output, Ends: true}, "mount": {Output: bounded.Listing, Ends: true},
	"serve": {Output: bounded.Listing, Ends: true}, "kernels": {Output: bounded.Listing, Ends: true},
}

//go:embed completion/kprobelab.bash
var bashScript string

//go:embed completion/kprobelab.zsh
var zshScript string

//go:embed completion/kprobelab.fish
var fishScript string

// newApp builds the command line.
func newApp(t *term) *cmdline.App {
	app := &cmdline.App{
		Command: &cli.Command{
			Name:        "kprobelab",
			Usage:       "plant kernel probes in real kernel code, without root",
			Description: described("kprobelab"),
			Version:     cmdline.Version(),
			Writer:      t.Out,
			ErrWriter:   t.Err,
		},
		Groups: groups, Programs: []string{"exec", "uprobe"}, Permuted: []string{"bpftrace", "stap"},
		Shells: map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript},
	}
	app.Commands = []*cli.Command{
		runCommand(t), execCommand(t), bpfCommand(t), uprobeCommand(t), serveCommand(t), bootCommand(t), mountCommand(t), probeCommand(t), stapCommand(t), bpftraceCommand(t), sampleCommand(t), exploreCommand(t), benchCommand(t), explainCommand(t), scanCommand(t), selfcheckCommand(t), hazardsCommand(t), symbolsCommand(t), infoCommand(t), decodeCommand(t),
		checkCommand(t), mergeCommand(t), packCommand(t), kernelsCommand(t), doctorCommand(t), app.CompletionCommand(t.Out, "print a shell's completion script, which knows the image's symbols", described("completion")), manCommand(t, app), versionCommand(t),
	}
	if t.OutIsTerminal {
		app.First = helpFile("first.part")
	}
	app.Prepare()
	for _, c := range app.Commands {
		if l, ok := limitsOf[c.Name]; ok {
			l.Apply(t.Term, c)
		}
	}
	return app
}

// complete answers one request of a shell's script.
func complete(w io.Writer, words []string) {
	newApp(newTerm(io.Discard, io.Discard)).Complete(w, words, offers.Values{Decoders: decoders})
}

func manCommand(t *term, app *cmdline.App) *cli.Command {
	return &cli.Command{
		Name:        "man",
		Usage:       "print the manual page",
		ArgsUsage:   " ",
		Description: described("man"),
		Action:      upTo(0, func(context.Context, *cli.Command) error { return app.WriteMan(t.Out) }),
	}
}

func versionCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version of the program and of its engine",
		Action: upTo(0, func(context.Context, *cli.Command) error {
			_, err := fmt.Fprintf(t.Out, "kprobelab %s, %s\n", cmdline.Version(), "engine "+engine.Version())
			return err
		}),
	}
}

// The descriptions of the commands: a file each, and the parts that several have.
//
//go:embed help/*.txt help/*.part
var helpFiles embed.FS

// described is the description of a command. In its file, {exit codes} and {image} stand for parts, {paths} for the
// paths of bench.
func described(command string) string {
	text := helpFile(strings.ReplaceAll(command, " ", "-") + ".txt")
	for name, part := range map[string]func() string{
		"{exit codes}": func() string { return helpFile("exit-codes.part") },
		"{image}":      func() string { return helpFile("image.part") },
		"{paths}":      benchPaths,
	} {
		if strings.Contains(text, name) {
			text = strings.ReplaceAll(text, name, part())
		}
	}
	return text
}

// helpFile is a file of help; a name that is not there is a fault of the program's.
func helpFile(name string) string {
	text, err := helpFiles.ReadFile("help/" + name)
	if err != nil {
		panic(err)
	}
	return string(text)
}
