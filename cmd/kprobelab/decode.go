package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/decoder"
	"kprobelab/decoder/view"
	"kprobelab/internal/cmdline"
	"kprobelab/profile"
	"kprobelab/x86"
)

func decodeCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:        "decode",
		Usage:       "take instructions apart, as the processor and as the kernel's decoder read them",
		ArgsUsage:   "HEX...|-",
		Description: described("decode"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "addr", Usage: "the hexadecimal `ADDRESS` of the first instruction", Value: "0", Local: true},
			rulesOnly(),
			&cli.StringFlag{Name: "profile", Usage: "whose decoder the kernel's view is: `PROFILE` is one of " + strings.Join(profile.All(), ", "), Value: "6.1", Local: true},
			&cli.StringFlag{Name: "vendor", Usage: "whose processor reads the few bytes that they read differently: `VENDOR` is intel or amd", Value: "intel", Local: true},
			&cli.BoolFlag{Name: "no-mpx", Usage: "a processor without MPX: 0F 1A and 0F 1B are nops", Local: true},
			&cli.BoolFlag{Name: "json", Usage: "one JSON object a line: addr, bytes, length, class, target, rip_relative, text, kernel_length, kernel_error, error, kernel_opcode, kernel_class, kernel_target, and the fields", Local: true},
		},
		Commands: []*cli.Command{decodeCheckCommand(t), decodeFuzzCommand(t), decodeCorpusCommand(t)},
		Action:   func(_ context.Context, c *cli.Command) error { return decode(t, c) },
	}
}

func decode(t *term, c *cli.Command) (err error) {
	if c.Args().Len() == 0 {
		return usagef("decode wants the bytes of an instruction in hex, or -; try kprobelab decode --help")
	}
	addr, err := parseAddr(c.String("addr"))
	if err != nil {
		return err
	}
	p, err := profileOf(c, "")
	if err != nil {
		return err
	}
	processor := decoder.Processor{AMD: c.String("vendor") == "amd", NoMPX: c.Bool("no-mpx")}
	if v := c.String("vendor"); v != "amd" && v != "intel" {
		return usagef("--vendor: there is no %q: there are intel and amd", v)
	}
	v := view.New(t.Out, view.View{Style: t.OutStyle, JSON: c.Bool("json"), Kernel: &p.Decoder, Processor: processor, At: addr})
	defer func() { err = errors.Join(err, v.Flush()) }()
	if c.Args().Len() == 1 && c.Args().First() == "-" {
		bad, err := v.Lines(os.Stdin)
		if errors.Is(err, decoder.ErrLine) {
			return fail(exitImage, err)
		}
		if wrong := bad.Wrong(); wrong != nil {
			err = errors.Join(err, fail(exitRefused, wrong))
		}
		return err
	}
	b, err := decoder.ParseHex(strings.Join(c.Args().Slice(), ""))
	if err != nil {
		if name := c.Args().First(); cmdline.IsSlip(c, name) {
			return cmdline.NoCommand(c, name)
		}
		return usagef("%w", err)
	}
	if v.All(b) > 0 {
		return fail(exitRefused, fmt.Errorf("not every byte belongs to an instruction"))
	}
	return nil
}

func parseAddr(s string) (x86.Addr, error) {
	var a uint64
	if _, err := fmt.Sscanf(strings.TrimPrefix(strings.ToLower(s), "0x")+"\n", "%x\n", &a); err != nil {
		return 0, usagef("--addr: %q is not a hexadecimal address", s)
	}
	return x86.Addr(a), nil
}
