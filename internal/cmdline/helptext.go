package cmdline

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
)

// Help is for a terminal of this size.
const (
	HelpColumns = 80
	HelpLines   = 50
)

// helpAll is the word after which help tells all of a command.
const helpAll = "--all"

// PrintHelp writes the help of a command: all of it, or where that does not fit a screen, its first paragraph, its
// examples and the names of its flags.
func (a *App) PrintHelp(w io.Writer, c *cli.Command, all bool) {
	var b strings.Builder
	whole := a.helpOf(c, true)
	if !all && strings.Count(whole, "\n") > HelpLines && len(c.Commands) == 0 {
		b.WriteString(a.helpOf(c, false))
		fmt.Fprintf(&b, "\n%s help %s %s tells all of it.\n", a.Name, helpAll, strings.TrimPrefix(c.FullName(), a.Name+" "))
	} else {
		b.WriteString(whole)
	}
	_, _ = io.WriteString(w, b.String())
}

// printHelpOf is the parser's way to the help of an App's command.
func printHelpOf(w io.Writer, _ string, data any) {
	if c, ok := data.(*cli.Command); ok {
		if a, ok := c.Root().Metadata[appKey].(*App); ok {
			a.PrintHelp(w, c, a.all)
		}
	}
}

func (a *App) helpOf(c *cli.Command, all bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage:\n   %s\n", wrapped(c.FullName()+" - "+c.Usage, "", "   "), usageOf(c))
	before, examples, after := cutExamples(c.Description)
	if text := strings.TrimSpace(before); text != "" {
		if !all {
			text, _, _ = strings.Cut(text, "\n\n")
		}
		b.WriteString("\n" + paragraphs(text))
	}
	if examples != "" {
		if !all {
			examples = firstExamples(examples)
		}
		b.WriteString("\n" + examples)
	}
	if all && after != "" {
		b.WriteString("\n" + paragraphs(after))
	}
	b.WriteString(a.commandsOf(c))
	b.WriteString(flagsOf(c, all))
	return b.String()
}

func usageOf(c *cli.Command) string {
	text := c.FullName()
	if len(c.VisibleFlags()) > 0 {
		text += " [FLAGS]"
	}
	if len(c.Commands) > 0 {
		text += " COMMAND"
		if c.ArgsUsage != "" {
			text = c.FullName() + " [COMMAND] [FLAGS]"
		}
	}
	return strings.TrimSpace(text + " " + c.ArgsUsage)
}

// cutExamples divides a description into the text before its examples, the examples, and the text after them.
func cutExamples(text string) (before, examples, after string) {
	const head = "Examples:\n"
	before, rest, ok := strings.Cut(text, head)
	if !ok {
		return text, "", ""
	}
	var list []string
	lines := strings.Split(rest, "\n")
	for len(lines) > 0 && strings.HasPrefix(lines[0], " ") {
		list, lines = append(list, lines[0]), lines[1:]
	}
	return before, head + strings.Join(list, "\n") + "\n", strings.TrimSpace(strings.Join(lines, "\n"))
}

// shortExamples bounds the examples of a help that does not tell all.
const shortExamples = 8

// firstExamples cuts the examples off after some; a line that is indented more goes on with the one before.
func firstExamples(text string) string {
	var b strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "   ") && !strings.HasPrefix(line, "    ") {
			n++
		}
		if n > shortExamples {
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

// paragraphs fills the lines of each paragraph; a line that is indented stays as it is.
func paragraphs(text string) string {
	var b strings.Builder
	var words []string
	flush := func() {
		if len(words) > 0 {
			b.WriteString(wrapped(strings.Join(words, " "), "", "") + "\n")
			words = nil
		}
	}
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == ' ' {
			flush()
			b.WriteString(line + "\n")
			continue
		}
		words = append(words, line)
	}
	flush()
	return b.String()
}

// wrapped breaks a text at blanks.
func wrapped(text, first, rest string) string {
	var b strings.Builder
	line := first
	for word := range strings.FieldsSeq(text) {
		if strings.TrimSpace(line) != "" && len([]rune(line))+1+len([]rune(word)) > HelpColumns {
			b.WriteString(line + "\n")
			line = rest
		}
		if line != rest && line != first {
			line += " "
		}
		line += word
	}
	return b.String() + line
}

// row writes a row of a table: a name, with its description beside it or below.
func row(b *strings.Builder, name string, column int, text string) {
	first := fmt.Sprintf("   %-*s  ", column, name)
	rest := strings.Repeat(" ", column+5)
	if len([]rune(name)) > column {
		b.WriteString("   " + name + "\n")
		first = rest
	}
	b.WriteString(strings.TrimRight(wrapped(text, first, rest), " ") + "\n")
}

func (a *App) commandsOf(c *cli.Command) string {
	var b strings.Builder
	of := map[string]*cli.Command{}
	column := 0
	for _, sub := range c.VisibleCommands() {
		of[sub.Name] = sub
		column = max(column, len(sub.Name))
	}
	if len(of) == 0 {
		return ""
	}
	list := func(head string, names []string) {
		fmt.Fprintf(&b, "\n%s:\n", head)
		for _, name := range names {
			row(&b, name, column, of[name].Usage)
		}
	}
	if c == a.Command {
		for _, g := range a.Groups {
			list(g.Name, g.Commands)
		}
		return b.String()
	}
	var names []string
	for _, sub := range c.VisibleCommands() {
		names = append(names, sub.Name)
	}
	list("Commands", names)
	return b.String()
}

// flagColumn is the width of the flags' names.
const flagColumn = 22

func flagsOf(c *cli.Command, all bool) string {
	flags := c.VisibleFlags()
	if len(flags) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nFlags:\n")
	if !all {
		var names []string
		for _, f := range flags {
			names = append(names, FlagName(f))
		}
		slices.Sort(names)
		b.WriteString(wrapped(strings.Join(names, "  "), "   ", "   ") + "\n")
		return b.String()
	}
	for _, f := range flags {
		name, text := flagRow(f)
		row(&b, name, flagColumn, text)
	}
	return b.String()
}

// FlagName is the name of a flag in the help.
func FlagName(f cli.Flag) string { return Dashed(f.Names()[0]) }

// flagRow is a flag's names with its value, and what it does.
func flagRow(f cli.Flag) (name, text string) {
	var names []string
	for _, n := range f.Names() {
		names = append(names, Dashed(n))
	}
	doc, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return strings.Join(names, ", "), ""
	}
	text = doc.GetUsage()
	value := ""
	if before, rest, ok := strings.Cut(text, "`"); ok {
		var after string
		value, after, _ = strings.Cut(rest, "`")
		text = before + value + after
	}
	name = strings.Join(names, ", ")
	if doc.TakesValue() {
		if value == "" {
			value = strings.ToUpper(doc.TypeName())
		}
		name += " " + value
	}
	if d := doc.GetDefaultText(); doc.IsDefaultVisible() && d != "" && doc.TakesValue() && d != `""` {
		text += " (default: " + d + ")"
	}
	return name, text
}
