package main

import (
	"context"
	"fmt"
	"os"

	"github.com/urfave/cli/v3"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/internal/cmdline"
	"kprobelab/internal/process"
	"kprobelab/internal/report"
	"kprobelab/kernels"
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/run"
	"kprobelab/watch"
	"kprobelab/x86"
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
	for _, pair := range [][2]string{{"asm", "hex"}, {"asm", "reasons"}, {"hex", "reasons"}, {"walk", "hex"}, {"walk", "json"}, {"walk", "reasons"}, {"uprobe", "walk"}, {"uprobe", "reasons"},
		{"watch", "asm"}, {"watch", "hex"}, {"watch", "walk"}, {"watch", "uprobe"}, {"watch", "reasons"}} {
		if err := cmdline.OneOf(c, pair[0], pair[1]); err != nil {
			return err
		}
	}
	if c.Bool("reasons") {
		if err := atMost(c, 0); err != nil {
			return err
		}
		if c.Bool("json") {
			return report.WriteRulesJSON(t.Out)
		}
		return report.WriteRules(t.Out)
	}
	if c.IsSet("watch") {
		return t.explainWatch(c)
	}
	s, point, err := toExplain(t, c)
	if err != nil {
		return err
	}
	if s.uprobe {
		return t.explainUprobe(c, s, point)
	}
	e, err := s.Explain(point)
	if err != nil {
		return usagef("%q: %w", point, err)
	}
	if c.Bool("walk") {
		return t.walk(s, point, e)
	}
	if c.Bool("json") {
		return e.WriteJSON(t.Out)
	}
	fmt.Fprintf(t.Out, "%s\n\n", s.heading)
	return e.WriteText(t.Out, t.reportStyle())
}

func (t *term) explainUprobe(c *cli.Command, s *subject, point string) error {
	u, err := s.ExplainUprobe(point)
	if err != nil {
		return usagef("%q: %w", point, err)
	}
	if c.Bool("json") {
		return u.WriteJSON(t.Out)
	}
	fmt.Fprintf(t.Out, "%s: rules of %s\n\n", u.Image, u.Profile)
	return u.WriteText(t.Out, t.reportStyle())
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
	e := report.ExplainWatch(img.Name(), img.Profile().Name, p.String(), w, l.Registers())
	if c.Bool("json") {
		return e.WriteJSON(t.Out)
	}
	fmt.Fprintf(t.Out, "%s\n\n", head)
	return e.WriteText(t.Out, t.reportStyle())
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
		return s.img, s.heading, nil
	}
	img, err := openImage(t, c, operand(c, 0))
	if err != nil {
		return nil, "", err
	}
	return img, heading(c, img), nil
}

func (t *term) reportStyle() report.Style {
	return report.Style{Bold: t.OutStyle.Bold, Red: t.OutStyle.Red, Cyan: t.OutStyle.Cyan}
}

// walk walks through the optimization of a probe that is accepted.
func (t *term) walk(s *subject, point string, e *report.Explanation) error {
	if e.Errno != 0 || !e.PlacedAt.Known {
		return fail(exitRefused, fmt.Errorf("%s: there is nothing to walk through: %s %s: %s",
			point, errno.Errno(-e.Errno).Name(), e.RegisterReason, e.RegisterWhy))
	}
	return run.Walk(t.Out, t.OutStyle, s.img, e.PlacedAt.Addr, s.heading)
}

// subject is the code that is explained.
type subject struct {
	*report.Scan
	// img is nil for bytes that are no image.
	img *kimage.Image
	// heading says whose rules answer and on which text.
	heading string
	// uprobe: the probe is in a program.
	uprobe bool
}

// toExplain finds the code and the point in the arguments.
func toExplain(t *term, c *cli.Command) (s *subject, point string, err error) {
	s, point, err = codeToExplain(t, c)
	if err == nil {
		s.uprobe = c.Bool("uprobe") || !c.IsSet("uprobe") && !c.IsSet("walk") && s.img != nil && s.img.OfProgram()
	}
	return s, point, err
}

func codeToExplain(t *term, c *cli.Command) (*subject, string, error) {
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
	return imageSubject(c, img), operand(c, 1), nil
}

func imageSubject(c *cli.Command, img *kimage.Image) *subject {
	s := &subject{Scan: report.NewScan(img), img: img, heading: heading(c, img)}
	if img.OfProgram() {
		s.Function = functionOf(img)
	}
	return s
}

// functionOf asks a program's file where functions begin that have no symbols.
func functionOf(img *kimage.Image) func(at x86.Addr) (x86.Addr, bool) {
	var f *process.File
	return func(at x86.Addr) (x86.Addr, bool) {
		if f == nil {
			b, err := bounded.ReadFile(img.Name(), bounded.ProgramFile)
			if err != nil {
				return 0, false
			}
			f = &process.File{Name: img.Name(), Data: b}
		}
		offset, ok := f.OffsetOf(uint64(at) - img.Bias())
		if !ok {
			return 0, false
		}
		_, start, ok := f.Function(offset)
		return at.Add(int64(start) - int64(offset)), ok
	}
}

// hexSubject is a function of bytes that the caller has typed.
func hexSubject(t *term, c *cli.Command) (*subject, string, error) {
	if err := atMost(c, 1); err != nil {
		return nil, "", err
	}
	code, err := report.ParseBytes(c.String("hex"))
	if err != nil {
		return nil, "", usagef("--hex: %w", err)
	}
	p, err := exampleProfile(c)
	if err != nil {
		return nil, "", err
	}
	point := report.InFunction(report.ExampleName, c.Args().First())
	r, err := t.reader(c)
	if err != nil {
		return nil, "", err
	}
	on, err := kimage.NamedProcessor(c.String("cpu"))
	if err != nil {
		return nil, "", usagef("--cpu: %w", err)
	}
	s := report.NewExampleOn(on, code, p)
	s.CPU = c.String("cpu")
	s.View = kimage.ReadBy(s.View, r)
	t.read(report.ExampleName, s.View)
	head := fmt.Sprintf("example of %d bytes: profile %s", len(code), p.Name)
	return &subject{Scan: s, heading: head}, point, nil
}

// exampleProfile is the profile of code that belongs to no kernel.
func exampleProfile(c *cli.Command) (*profile.Config, error) {
	return profileOf(c, profile.Default)
}

// runningSubject is the running kernel, from /boot.
func runningSubject(t *term, c *cli.Command, point string) (*subject, string, error) {
	if f, err := os.Stat(point); point == "-" || err == nil && f.Mode().IsRegular() {
		return nil, "", usagef("explain which address of %s? give SYM+OFF or an address after it", point)
	}
	b, err := kernels.FindRunning()
	if err != nil {
		return nil, "", fail(exitImage, fmt.Errorf("%w; name an IMAGE (- is the guest kernel inside the program)", err))
	}
	runningFlags(c, b)
	img, err := openImage(t, c, b.Image)
	if err != nil {
		return nil, "", err
	}
	s := imageSubject(c, img)
	s.heading = b.String() + "\n" + s.heading
	return s, point, nil
}

// runningFlags sets the flags that the caller has not given. The boot-time text is for
// the processor that runs it.
func runningFlags(c *cli.Command, b *kernels.Running) {
	set := func(flag, value string) {
		if value != "" && !c.IsSet(flag) {
			_ = c.Set(flag, value)
		}
	}
	set("config", b.Config)
	set("cpu", "host")
}
