package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v3"

	"kprobelab"
	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/internal/assemble"
	"kprobelab/internal/cmdline"
	"kprobelab/internal/report"
	"kprobelab/kernels"
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/run"
	"kprobelab/watch"
)

func explainCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:        "explain",
		Usage:       "tell all about a probe at one address: may it be there, how it runs, is it optimized, and why not",
		ArgsUsage:   "[IMAGE] SYM[+OFF]|ADDR",
		Description: described("explain"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "asm", Usage: "explain code of your own: assemble `FILE.s` (needs gcc or as)"},
			&cli.StringFlag{Name: "hex", Usage: "explain code of your own: one function of these `BYTES`, in hexadecimal"},
			&cli.BoolFlag{Name: "walk", Usage: "show the optimization and its undoing step by step on a machine of two CPUs"},
			&cli.BoolFlag{Name: "uprobe", Usage: "tell about a uprobe; by default where IMAGE is a program or a library"},
			&cli.StringFlag{Name: "watch", Usage: "tell about a watchpoint at `PLACE`, SYM[+OFF][:LEN][:ACCESS] or mem:ADDR[/LEN][:ACCESS]: could a debug register have it"},
			&cli.BoolFlag{Name: "reasons", Usage: "list every rule that an explanation can name"},
			&cli.BoolFlag{Name: "json", Usage: "one JSON object (with --reasons, one for each rule)"},
			decoderFlag("x86asm"),
		}, imageFlags()...),
		Action: func(_ context.Context, c *cli.Command) error { return t.differences(explain(t, c)) },
	}
}

func explain(t *term, c *cli.Command) error {
	for _, set := range [][]string{{"asm", "hex", "reasons"}, {"hex", "reasons"}, {"walk", "hex", "json", "reasons"}, {"uprobe", "walk", "reasons"},
		{"watch", "asm", "hex", "walk", "uprobe", "reasons"}} {
		if err := cmdline.OneOf(c, set[0], set[1:]...); err != nil {
			return err
		}
	}
	if c.Bool("reasons") {
		if err := atMost(c, 0); err != nil {
			return err
		}
		return cmdline.Form(c, report.WriteRules, report.WriteRulesJSON, nil)(t.Out)
	}
	if c.IsSet("watch") {
		return t.explainWatch(c)
	}
	s, point, err := codeToExplain(t, c)
	if err != nil {
		return err
	}
	if c.Bool("uprobe") || !c.IsSet("uprobe") && !c.IsSet("walk") && s.File != nil && s.File.OfProgram() {
		return t.explainUprobe(c, s, point)
	}
	e, err := s.Explain(point)
	if err != nil {
		return usagef("%q: %w", point, err)
	}
	if c.Bool("walk") {
		return t.walk(s, point, e)
	}
	return t.explained(c, s.Heading, e)
}

// explained writes an explanation; a text has a heading.
func (t *term) explained(c *cli.Command, heading string, e interface {
	WriteJSON(io.Writer) error
	WriteText(io.Writer, report.Style) error
}) error {
	if c.Bool("json") {
		return e.WriteJSON(t.Out)
	}
	fmt.Fprintf(t.Out, "%s\n\n", heading)
	return e.WriteText(t.Out, report.Style{Bold: t.OutStyle.Bold, Red: t.OutStyle.Red, Cyan: t.OutStyle.Cyan})
}

func (t *term) explainUprobe(c *cli.Command, s *report.Subject, point string) error {
	u, err := s.ExplainUprobe(point)
	if err != nil {
		return usagef("%q: %w", point, err)
	}
	return t.explained(c, fmt.Sprintf("%s: rules of %s", u.Image, u.Profile), u)
}

// explainWatch tells about a watchpoint, by the rules of an image's debug registers.
func (t *term) explainWatch(c *cli.Command) error {
	p, err := watch.Parse(c.String("watch"))
	if err != nil {
		return usagef("%w", err)
	}
	img, head, err := t.imageOrRunning(c)
	if err != nil {
		return err
	}
	l, err := kprobelab.New(img, nil)
	if err != nil {
		return usagef("%w", err)
	}
	defer l.Close()
	w, err := l.Watchpoint(p)
	if err != nil {
		return usagef("--watch %s: %w", p, err)
	}
	return t.explained(c, head, report.ExplainWatch(img.Name(), img.Profile().Name, p.String(), w, l.Registers()))
}

// imageOrRunning opens the only argument, or the running kernel's image without one.
func (t *term) imageOrRunning(c *cli.Command) (*kimage.Image, string, error) {
	if err := atMost(c, 1); err != nil {
		return nil, "", err
	}
	if len(operands(c)) == 0 {
		s, _, err := runningSubject(t, c, "")
		if err != nil {
			return nil, "", err
		}
		return s.File, s.Heading, nil
	}
	img, err := openImage(t, c, operand(c, 0))
	if err != nil {
		return nil, "", err
	}
	return img, heading(c, img), nil
}

// walk walks through the optimization of a probe that is accepted.
func (t *term) walk(s *report.Subject, point string, e *report.Explanation) error {
	if e.Errno != 0 || !e.PlacedAt.Known {
		return fail(exitRefused, fmt.Errorf("%s: there is nothing to walk through: %s %s: %s",
			point, errno.Errno(-e.Errno).Name(), e.RegisterReason, e.RegisterWhy))
	}
	return run.Walk(t.Out, t.OutStyle, s.File, e.PlacedAt.Addr, s.Heading)
}

// codeToExplain finds the code and the point in the arguments.
func codeToExplain(t *term, c *cli.Command) (*report.Subject, string, error) {
	switch {
	case c.IsSet("hex"):
		return hexSubject(t, c)
	case c.IsSet("asm"):
		return asmSubject(t, c)
	}
	if err := atMost(c, 2); err != nil {
		return nil, "", err
	}
	switch len(operands(c)) {
	case 0:
		return nil, "", usagef("explain what? give SYM+OFF or an address; try %s --help", c.FullName())
	case 1:
		return runningSubject(t, c, c.Args().First())
	}
	img, err := openAnyImage(t, c, operand(c, 0))
	if err == nil && !img.OfProgram() { // a program may be stripped
		err = hasSymbols(img)
	}
	if err != nil {
		return nil, "", err
	}
	return report.NewSubject(img, c.String("live-text")), operand(c, 1), nil
}

// hexSubject is a function of bytes that the caller has typed.
func hexSubject(t *term, c *cli.Command) (*report.Subject, string, error) {
	if err := atMost(c, 1); err != nil {
		return nil, "", err
	}
	code, err := report.ParseBytes(c.String("hex"))
	if err != nil {
		return nil, "", usagef("--hex: %w", err)
	}
	p, r, err := exampleRules(t, c)
	if err != nil {
		return nil, "", err
	}
	s, err := report.OfCode(code, c.String("cpu"), p, r)
	if err != nil {
		return nil, "", usagef("--cpu: %w", err)
	}
	t.read(report.ExampleName, s.View)
	return s, report.InFunction(report.ExampleName, c.Args().First()), nil
}

// asmSubject is a function of an assembler file.
func asmSubject(t *term, c *cli.Command) (*report.Subject, string, error) {
	if err := atMost(c, 1); err != nil {
		return nil, "", err
	}
	p, r, err := exampleRules(t, c)
	if err != nil {
		return nil, "", err
	}
	file := c.String("asm")
	object, err := assemble.Object(file)
	if errors.Is(err, assemble.ErrNone) {
		err = fmt.Errorf("%w; --hex takes the bytes themselves", err)
	}
	if err != nil {
		return nil, "", fail(exitImage, fmt.Errorf("--asm: %w", err))
	}
	s, first, err := report.OfObject(file, object, p, r)
	switch {
	case errors.Is(err, report.ErrNoLabel):
		return nil, "", fail(exitImage, fmt.Errorf("--asm %s: %w", file, err))
	case err != nil:
		return nil, "", fail(exitImage, err)
	}
	t.read(s.File.Name(), s.File)
	return s, report.InFunction(first, c.Args().First()), nil
}

// exampleRules are the profile and the reader of code that belongs to no kernel.
func exampleRules(t *term, c *cli.Command) (*profile.Config, decoder.Reader, error) {
	p, err := profileOf(c, profile.Default)
	if err != nil {
		return nil, nil, err
	}
	r, err := t.reader(c)
	return p, r, err
}

// runningSubject is the running kernel, from /boot.
func runningSubject(t *term, c *cli.Command, point string) (*report.Subject, string, error) {
	if f, err := os.Stat(point); point == "-" || err == nil && f.Mode().IsRegular() {
		return nil, "", usagef("explain which address of %s? give SYM+OFF or an address after it", point)
	}
	b, err := kernels.FindRunning()
	if err != nil {
		return nil, "", fail(exitImage, fmt.Errorf("%w; name an IMAGE (- is the guest kernel inside the program)", err))
	}
	// The boot-time text is for the processor that runs it.
	for flag, value := range map[string]string{"config": b.Config, "cpu": "host"} {
		if value != "" && !c.IsSet(flag) {
			_ = c.Set(flag, value)
		}
	}
	img, err := openImage(t, c, b.Image)
	if err != nil {
		return nil, "", err
	}
	s := report.NewSubject(img, c.String("live-text"))
	s.Heading = b.String() + "\n" + s.Heading
	return s, point, nil
}
