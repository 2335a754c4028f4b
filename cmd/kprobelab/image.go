package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab"
	"kprobelab/internal/debuginfo"
	"kprobelab/internal/engine"
	"kprobelab/internal/printable"
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
