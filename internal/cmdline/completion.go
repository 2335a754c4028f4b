package cmdline

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
)

// CompleteCommand is the hidden command that the shells' scripts call: __complete SHELL WORD…, the last word
// being the one under the cursor. It prints one candidate a line, a tab and its description, and ":files" where
// file names fit.
const CompleteCommand = "__complete"

// completionName is the command that prints a shell's script.
const completionName = "completion"

// CompletionCommand is the command that prints a shell's script.
func (a *App) CompletionCommand(out io.Writer, usage, description string) *cli.Command {
	return &cli.Command{
		Name:        completionName,
		Usage:       usage,
		ArgsUsage:   "bash|zsh|fish",
		Description: description,
		Action: func(_ context.Context, c *cli.Command) error {
			script, ok := a.Shells[c.Args().First()]
			if !ok || c.Args().Len() != 1 {
				return Usagef("completion takes one shell: bash, zsh or fish")
			}
			_, err := io.WriteString(out, script)
			return err
		},
	}
}

// Values offers what the program knows: values of flags, and operands.
type Values interface {
	// Value completes the value of a flag, Operand the next operand of a command.
	Value(r *Completion, cmd *cli.Command, flag, typed string)
	Operand(r *Completion, cmd *cli.Command, typed string)
}

// Completion is one request.
type Completion struct {
	Shell string
	// Operands has the arguments before the cursor that are no flags, Flags
	// has the flags' values.
	Operands []string
	Flags    map[string][]string

	app *App
	w   io.Writer
	by  Values
}

// Complete answers one request of a shell's script. On an error it prints
// nothing: there is nothing to complete then.
func (a *App) Complete(w io.Writer, args []string, by Values) {
	if len(args) < 2 {
		return
	}
	out := bufio.NewWriter(w)
	defer out.Flush()
	r := &Completion{app: a, w: out, by: by, Shell: args[0], Flags: map[string][]string{}}
	r.words(joinEquals(args[1:]))
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

// Offer prints a candidate with its description.
func (r *Completion) Offer(value, what string) { fmt.Fprintf(r.w, "%s\t%s\n", value, what) }

// Files offers the names of files.
func (r *Completion) Files() { fmt.Fprintln(r.w, ":files") }

// Choice is a value of a flag, and what it means.
type Choice struct{ Value, What string }

// Choices are values without a word about them.
func Choices(names []string) (list []Choice) {
	for _, name := range names {
		list = append(list, Choice{name, ""})
	}
	return list
}

// Choose offers the values that begin with what was typed, in letters of either case.
func (r *Completion) Choose(list []Choice, typed string) {
	for _, c := range list {
		if len(typed) <= len(c.Value) && strings.EqualFold(c.Value[:len(typed)], typed) {
			r.Offer(c.Value, c.What)
		}
	}
}

// words walks over the words and offers what fits in place of the last.
func (r *Completion) words(words []string) {
	last := words[len(words)-1]
	cmd := r.app.Command
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
	if cmd.Name == completionName {
		for _, shell := range slices.Sorted(maps.Keys(r.app.Shells)) {
			r.Offer(shell, "")
		}
		return
	}
	if flag := r.before(cmd, words[:len(words)-1]); flag != "" {
		r.by.Value(r, cmd, flag, last)
		return
	}
	if len(r.Operands) > 0 && slices.Contains(r.app.Programs, cmd.Name) {
		r.Files()
		return
	}
	if name, value, ok := strings.Cut(last, "="); ok && strings.HasPrefix(name, "--") {
		r.w = prefixed{r.w, name + "="}
		r.by.Value(r, cmd, name[2:], value)
		return
	}
	if strings.HasPrefix(last, "-") {
		r.flags(cmd, last)
		return
	}
	r.by.Operand(r, cmd, last)
}

func (r *Completion) commands(c *cli.Command, prefix string) {
	for _, sub := range c.Commands {
		if strings.HasPrefix(sub.Name, prefix) {
			r.Offer(sub.Name, sub.Usage)
		}
	}
}

// before reads the words before the cursor. It returns the name of the flag
// whose value is being typed, "" where none is.
func (r *Completion) before(cmd *cli.Command, words []string) string {
	for _, a := range r.app.arguments(cmd, words) {
		switch {
		case a.Flag == "":
			r.Operands = append(r.Operands, a.Value)
		case a.Open:
			return a.Flag
		case a.Valued:
			r.Flags[a.Flag] = append(r.Flags[a.Flag], a.Value)
		}
	}
	return ""
}

func (r *Completion) flags(cmd *cli.Command, prefix string) {
	for _, f := range cmd.Flags {
		name := "--" + f.Names()[0]
		if d, ok := f.(cli.DocGenerationFlag); ok && !hidden(f) && strings.HasPrefix(name, prefix) {
			r.Offer(name, strings.ReplaceAll(d.GetUsage(), "`", ""))
		}
	}
	if strings.HasPrefix("--help", prefix) {
		r.Offer("--help", "show help")
	}
}

// prefixed writes every line with a prefix; each Write is whole lines.
type prefixed struct {
	w      io.Writer
	prefix string
}

func (p prefixed) Write(b []byte) (int, error) {
	if !strings.HasPrefix(string(b), ":files") {
		if _, err := io.WriteString(p.w, p.prefix); err != nil {
			return 0, err
		}
	}
	return p.w.Write(b)
}
