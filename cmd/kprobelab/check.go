package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/report"
)

func checkCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "tell whether a tool's probes attach, and how they run, on several kernels",
		ArgsUsage: "PROBES IMAGE...",
		Description: "PROBES is a compiled BPF object (its sections kprobe/, kretprobe/, kprobe.multi/,\n" +
			"kretprobe.multi/, ksyscall/ and kretsyscall/), or text with a probe a line, - for standard\n" +
			"input: SYM+OFF or an address, with %return after it for a return probe, as a module would\n" +
			"register it; or a definition as in kprobe_events (p:NAME SYM+OFF, r:NAME SYM).\n\n" +
			"Each probe is asked for in its own way, and the matrix says for each image how it would run:\n" +
			"ftrace (from the function tracer), optimized (a jump), int3 (a trap); or the errno, and whether\n" +
			"the symbol is absent, or only a clone of it with a suffix (.isra, .constprop, .cold) is left.\n" +
			"\"return too\": a return probe is accepted there; \"not by kprobe_events\": that, and a perf event,\n" +
			"refuses what register_kprobe accepts, such as a function without an ftrace site. Definitions\n" +
			"are read whole, names and arguments too; \"waits for a module\": nothing is there to be probed yet.\n" +
			"The exit code is 1 when any probe does not attach on any image, for a gate in CI.\n" +
			imageHelp + "\n\n" +
			examples(
				"echo vfs_read | kprobelab check - /boot/vmlinuz-*",
				"kprobelab check tool.bpf.o vmlinuz-5.10 vmlinuz-6.1 vmlinuz-6.12",
				"kprobelab check --json probes.txt vmlinuz | jq '.probes[] | select(.images[0].attaches | not)'",
				"kprobelab check --tsv --cpu EPYC probes.txt vmlinuz",
			),
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "tsv", Usage: "a header, and a line for each probe and image"},
			&cli.BoolFlag{Name: "json", Usage: "one JSON object: images, and probes with an answer for each image"},
			decoderFlag("x86asm"),
		}, imageFlags()...),
		Action: func(_ context.Context, c *cli.Command) error { return t.differences(check(t, c)) },
	}
}

func check(t *term, c *cli.Command) error {
	if err := oneOf(c, "tsv", "json"); err != nil {
		return err
	}
	args := c.Args().Slice()
	if len(args) < 2 {
		return usagef("check takes the probes and at least one image; try %s --help", c.FullName())
	}
	probes, err := readProbes(args[0])
	if err != nil {
		return err
	}
	var r report.Check
	for _, path := range args[1:] {
		img, err := openImage(t, c, path)
		if err != nil {
			return err
		}
		r.Add(report.OfImage(img), probes)
	}
	write := r.WriteText
	switch {
	case c.Bool("json"):
		write = r.WriteJSON
	case c.Bool("tsv"):
		write = r.WriteTSV
	}
	if err := write(t.out); err != nil {
		return err
	}
	if r.Refused > 0 {
		if r.Refused == 1 {
			return &failure{exitRefused, errors.New("1 probe does not attach")}
		}
		return &failure{exitRefused, fmt.Errorf("%d probes do not attach", r.Refused)}
	}
	return nil
}

func readProbes(name string) (probes []report.Probe, err error) {
	err = readList(name, name, func(r io.Reader) error {
		probes, err = report.ReadProbes(r)
		return err
	})
	return probes, err
}
