package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v3"
)

func manCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:        "man",
		Usage:       "print the manual page",
		ArgsUsage:   " ",
		Description: described("man"),
		Action: func(_ context.Context, c *cli.Command) error {
			if err := atMost(c, 0); err != nil {
				return err
			}
			return writeMan(t.out, c.Root())
		},
	}
}

// writeMan writes the manual page of the program, in roff with the macros of man(7).
func writeMan(w io.Writer, app *cli.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH KPROBELAB 1 \"\" \"kprobelab %s\"\n.nh\n.SH NAME\nkprobelab \\- %s\n.SH SYNOPSIS\n%s\n", version(), roff(app.Usage), roff(usageOf(app)))
	manText(&b, "DESCRIPTION", app)
	for _, c := range app.VisibleCommands() {
		manCommandOf(&b, c, ".SH")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func manCommandOf(b *strings.Builder, c *cli.Command, head string) {
	fmt.Fprintf(b, "%s %s\n%s\n.PP\n%s\n", head, roff(c.FullName()), roff(usageOf(c)), roff(c.Usage))
	manText(b, "", c)
	for _, f := range c.VisibleFlags() {
		name, text := flagRow(f)
		fmt.Fprintf(b, ".TP\n%s\n%s\n", roff(name), roff(text))
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
		b.WriteString(roff(line) + "\n")
	}
	if literal {
		b.WriteString(".fi\n")
	}
}

// roff writes a text so that nothing of it is a command of roff's.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
