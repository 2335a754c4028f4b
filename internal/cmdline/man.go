package cmdline

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v3"
)

// WriteMan writes the manual page of the program, in roff with the macros of man(7).
func (a *App) WriteMan(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"%s %s\"\n.nh\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n%s\n",
		strings.ToUpper(a.Name), a.Name, a.Version, a.Name, Roff(a.Usage), Roff(usageOf(a.Command)))
	manText(&b, "DESCRIPTION", a.Command)
	for _, c := range a.VisibleCommands() {
		manCommandOf(&b, c, ".SH")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func manCommandOf(b *strings.Builder, c *cli.Command, head string) {
	fmt.Fprintf(b, "%s %s\n%s\n.PP\n%s\n", head, Roff(c.FullName()), Roff(usageOf(c)), Roff(c.Usage))
	manText(b, "", c)
	for _, f := range c.VisibleFlags() {
		name, text := flagRow(f)
		fmt.Fprintf(b, ".TP\n%s\n%s\n", Roff(name), Roff(text))
	}
	for _, sub := range c.VisibleCommands() {
		manCommandOf(b, sub, ".SS")
	}
}

// manText writes a description: paragraphs are filled, indented lines stay as they are.
func manText(b *strings.Builder, head string, c *cli.Command) {
	if head != "" {
		fmt.Fprintf(b, ".SH %s\n", head)
	}
	literal := false
	for line := range strings.SplitSeq(strings.TrimSpace(c.Description), "\n") {
		indented := strings.HasPrefix(line, " ")
		switch {
		case indented && !literal:
			b.WriteString(".PP\n.nf\n")
		case !indented && literal:
			b.WriteString(".fi\n.PP\n")
		}
		literal = indented
		if line == "" {
			b.WriteString(".PP\n")
			continue
		}
		b.WriteString(Roff(line) + "\n")
	}
	if literal {
		b.WriteString(".fi\n")
	}
}

// Roff writes a text so that nothing of it is a command of roff's.
func Roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
