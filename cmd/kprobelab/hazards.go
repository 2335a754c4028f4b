package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/report"
)

const hazardsHelp = `A hazard is a probe that the kernel accepts and that then does harm: the kernel crashes,
hangs, or goes on with a wrong result. Without an IMAGE the command lists all that are known:
what happens, which releases have it, where it comes from, and how it is known.

With an IMAGE it lists every point of that kernel's text that has one, by function, with
what makes it happen on a running kernel: the lines for kprobe_events, and a system call that
comes to the function. The way is the shortest by direct calls; whether a call
takes it depends on its arguments. Try that on a virtual machine only.

The effects: hang; oops (or memory overwritten, where the address happens to be mapped);
wrong-result; wrong-register; harmless (a difference that nothing suffers from); refused (it
would do harm, but the kernel takes no probe there).

`

func hazardsCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:      "hazards",
		Usage:     "list the probes that a kernel accepts and that break it",
		ArgsUsage: "[IMAGE]",
		Description: hazardsHelp + `IMAGE is a vmlinux, a vmlinuz, or any x86-64 ELF file, "-" the guest kernel inside the program.` + "\n\n" + examples(
			"kprobelab hazards",
			"kprobelab hazards /boot/vmlinuz-6.1.0-18-amd64",
			"kprobelab hazards --tsv vmlinuz | grep CALL_PREFIX",
			"kprobelab hazards --json vmlinuz | jq -r 'select(.effect == \"hang\").reproducer.define'",
		),
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "tsv", Usage: "tab-separated, with a header: address, symbol, offset, hazard, effect"},
			&cli.BoolFlag{Name: "json", Usage: "one JSON object a line, with the consequence and the reproducer"},
			decoderFlag("x86asm"),
		}, imageFlags()...),
		Action: func(_ context.Context, c *cli.Command) error { return t.differences(hazards(t, c)) },
	}
}

func hazards(t *term, c *cli.Command) error {
	if err := oneOf(c, "json", "tsv"); err != nil {
		return err
	}
	if err := atMost(c, 1); err != nil {
		return err
	}
	if len(operands(c)) == 0 {
		for _, f := range imageFlags() {
			if name := f.Names()[0]; c.IsSet(name) {
				return usagef("--%s goes with an IMAGE; - is the guest kernel", name)
			}
		}
		return hazardTable(t, c)
	}
	img, err := openImage(t, c, operand(c, 0))
	if err != nil {
		return err
	}
	to := t.out
	if c.Bool("json") || c.Bool("tsv") {
		to = t.err
	}
	fmt.Fprintln(to, heading(c, img))
	list, err := report.HazardPoints(img, func(done, total int64) { t.count("hazards", "points", done, total) })
	t.progressDone()
	switch {
	case err != nil:
		return err
	case c.Bool("json"):
		return report.WriteHazardsJSON(t.out, list)
	case c.Bool("tsv"):
		return report.WriteHazardsTSV(t.out, list)
	}
	return report.WriteHazards(t.out, list, img.Profile())
}

func hazardTable(t *term, c *cli.Command) error {
	switch {
	case c.Bool("json"):
		return report.WriteHazardTableJSON(t.out)
	case c.Bool("tsv"):
		return report.WriteHazardTableTSV(t.out)
	}
	return report.WriteHazardTable(t.out)
}
