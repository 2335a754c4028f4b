package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab"
	"kprobelab/decoder"
	"kprobelab/internal/cmdline"
	"kprobelab/internal/debuginfo"
	"kprobelab/internal/engine"
	"kprobelab/internal/printable"
	"kprobelab/internal/report"
	"kprobelab/kimage"
	"kprobelab/profile"
)

// imageFlags are the flags that say how an image is opened.
func imageFlags() []cli.Flag {
	return []cli.Flag{
		kernelFlag(), profileFlag(), configFlag(),
		&cli.StringFlag{Name: "live-text", Usage: "text dump laid over the image's: an ELF, or raw bytes as `FILE[@ADDR]`"},
		symbolsFlag(), moduleFlag(), cpuFlag(), engineFlag(),
	}
}

func profileFlag() cli.Flag {
	return &cli.StringFlag{Name: "profile", Usage: "behave like this `PROFILE` instead of the one the image's facts choose: " +
		strings.Join(profile.All(), ", ")}
}

func configFlag() cli.Flag {
	return &cli.StringFlag{Name: "config", Usage: "kernel configuration `FILE`, plain or gzip (default: the image's own, or config-RELEASE beside vmlinuz-RELEASE)"}
}

func symbolsFlag() cli.Flag {
	return &cli.StringFlag{Name: "symbols", Usage: "System.map or kallsyms `FILE` in place of the image's symbols"}
}

func moduleFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "module", Usage: "load this .ko or .o `FILE`; beside a booted kernel's dump one of plain code and data (repeatable)"}
}

func cpuFlag() cli.Flag {
	return &cli.StringFlag{Name: "cpu", Usage: "make the boot-time text for `MODEL[,+feature][,-feature]` (default: qemu64): " +
		strings.Join(kimage.CPUModels(), ", ") + ", " + kimage.HostCPU + ", or a file like /proc/cpuinfo"}
}

// engineFlag chooses what executes guest code, an image's own functions too.
func engineFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "engine", Usage: "execute guest code by this `ENGINE`: " + strings.Join(engine.Known, ", ") + " (default: " + engine.Names()[0] + ")",
		Action: func(_ context.Context, _ *cli.Command, name string) error {
			if err := engine.Use(name); err != nil {
				return usagef("--engine: %w", err)
			}
			return nil
		},
	}
}

// openImage opens the image that the command names, with its modules and more. An
// image without symbols is an error: no function of it could be found, and
// "there is no such symbol" would read as the kernel's answer.
func openImage(t *term, c *cli.Command, path string, more ...string) (*kimage.Image, error) {
	img, err := openAnyImage(t, c, path, more...)
	if err == nil {
		err = hasSymbols(img)
	}
	return img, err
}

func hasSymbols(img *kimage.Image) error {
	if len(img.Symbols()) > 0 {
		return nil
	}
	return fail(exitImage, fmt.Errorf("%s: %s", img.Name(), noSymbols))
}

// noSymbols says what is wrong with an image without symbols, and what to do.
const noSymbols = "no symbols: the file is stripped, or its kallsyms tables are not in a form that is known here; " +
	"--symbols FILE names a System.map or a copy of /proc/kallsyms"

// openAnyImage is openImage for an image that may have no symbols.
func openAnyImage(t *term, c *cli.Command, path string, more ...string) (*kimage.Image, error) {
	path, err := t.asKernel(c, path)
	if err != nil {
		return nil, err
	}
	o := &kimage.Options{
		LiveText: c.String("live-text"), Config: c.String("config"), SystemMap: c.String("symbols"),
		Modules: append(c.StringSlice("module"), more...), CPU: c.String("cpu"), Progress: t.Progress,
		Package: c.String(packageFlag),
	}
	if o.Reader, err = t.reader(c); err != nil {
		return nil, err
	}
	if o.Profile, err = profileOf(c, ""); err != nil {
		return nil, err
	}
	img, err := kprobelab.OpenImage(path, o)
	t.ProgressDone()
	if errors.Is(err, kimage.ErrCPU) {
		return nil, usagef("--cpu: %w", err)
	}
	if errors.Is(err, kimage.ErrForImage) {
		return nil, usagef("%w", err)
	}
	if err != nil {
		return nil, fail(exitImage, imageFirst(c, path, err))
	}
	if o.Package != "" && len(img.Packaged()) == 0 {
		fmt.Fprintf(t.Err, "%s: no module below %s is one of this kernel that can be loaded\n", img.Name(), printable.Name(o.Package))
	}
	t.read(img.Name(), img)
	return img, nil
}

// imageFirst gives a hint where a symbol was named in the image's place.
func imageFirst(c *cli.Command, path string, err error) error {
	var missing *fs.PathError
	if path == operand(c, 0) && errors.As(err, &missing) && missing.Path == path && errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(path, "./") {
		return fmt.Errorf("%w (the image comes first, - for the guest kernel)", err)
	}
	return err
}

// upTo is an action of a command with at most n positional arguments.
func upTo(n int, do cli.ActionFunc) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		if err := atMost(c, n); err != nil {
			return err
		}
		return do(ctx, c)
	}
}

// atMost refuses more positional arguments than the command takes.
func atMost(c *cli.Command, n int) error {
	args := operands(c)
	if len(args) <= n {
		return nil
	}
	return usagef("unexpected %q; try %s --help", args[n], c.FullName())
}

const debuginfoFlagName = "debuginfo"

func debuginfoFlag() cli.Flag {
	return &cli.StringFlag{Name: debuginfoFlagName, Usage: "DWARF for probes in the words of the source is in `FILE`, not in IMAGE and its modules"}
}

// debuginfoOf describes an image by the file of --debuginfo, or by its own and its modules'.
func debuginfoOf(c *cli.Command, img *kimage.Image) *debuginfo.Info {
	if path := c.String(debuginfoFlagName); path != "" {
		return debuginfo.OfFile(img, path)
	}
	return debuginfo.Of(img, c.StringSlice("module")...)
}

// decoders lists the values of --decoder, with a description of each.
var decoders = []cmdline.Choice{
	{Value: "x86asm", What: "golang.org/x/arch/x86/x86asm, put right where it is known to be wrong"},
	{Value: "tables", What: "kprobelab's own tables, several times faster"},
	{Value: "both", What: "x86asm, and every instruction once more by the tables: what differs is listed, and exits with 1"},
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
