package main

import (
	"fmt"

	"github.com/urfave/cli/v3"

	"kprobelab/decoder"
	"kprobelab/internal/report"
	"kprobelab/kimage"
)

// decoders lists the values of --decoder, with a description of each.
var decoders = []struct{ name, what string }{
	{"x86asm", "golang.org/x/arch/x86/x86asm, put right where it is known to be wrong"},
	{"tables", "kprobelab's own tables, several times faster"},
	{"both", "x86asm, and every instruction once more by the tables: what differs is listed, and exits with 1"},
}

// decoderFlag is --decoder for a command that takes standard without it.
func decoderFlag(standard string) cli.Flag {
	return &cli.StringFlag{
		Name: "decoder", Value: standard,
		Usage: "read lengths, branches and targets by `NAME`: x86asm, tables, or both, to compare them; where the kernel's decoder reads differently, it decides",
	}
}

// compared holds the two decoders of --decoder both, and the image or dump that they read.
type compared struct {
	name string
	view kimage.View
	both *decoder.Both
}

// reader is the Reader that --decoder asks for.
func (t *term) reader(c *cli.Command) (decoder.Reader, error) {
	switch asked := c.String("decoder"); asked {
	case "", "x86asm": // a command without the flag takes x86asm
		return decoder.X86asm{}, nil
	case "tables":
		return decoder.Tables{}, nil
	case "both":
		b := decoder.NewBoth(decoder.X86asm{}, decoder.Tables{})
		t.compared = append(t.compared, &compared{both: b})
		return b, nil
	default:
		return nil, usagef("--decoder: there is no %q: there are x86asm, tables and both", asked)
	}
}

// read notes what is read with the last Reader.
func (t *term) read(name string, v kimage.View) {
	if n := len(t.compared); n > 0 {
		t.compared[n-1].name, t.compared[n-1].view = name, v
	}
}

// differences lists on standard error what --decoder both has found. The
// command's own error comes first.
func (t *term) differences(err error) error {
	different := 0
	for _, c := range t.compared {
		if c.view != nil { // else it could not be opened
			different += report.WriteDifferences(t.Err, c.name, c.view, c.both)
		}
	}
	if err == nil && different > 0 {
		err = fail(exitRefused, fmt.Errorf("the decoders differ at %s", report.Addresses(different)))
	}
	return err
}
