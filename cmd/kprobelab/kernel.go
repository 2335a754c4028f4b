package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/cmdline"
	"kprobelab/internal/printable"
	"kprobelab/kernels"
	"kprobelab/profile"
)

// kernelFlag names the kernel in place of the argument IMAGE.
func kernelFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "kernel", Usage: "the `KERNEL` in place of IMAGE: a dump, an image, or a release in words as kprobelab kernels has them (repeatable where several make sense)"}
}

// rulesOnly takes --kernel where no kernel is opened, and says which flag chooses the rules.
func rulesOnly() cli.Flag {
	return &cli.StringFlag{Name: "kernel", Hidden: true, Local: true, Validator: func(word string) error {
		return usagef("--kernel names a kernel to open, and none is opened here: --profile %s chooses the rules", printable.Name(profileLike(word)))
	}}
}

// profileLike is the word where it names a profile, and else the name of one.
func profileLike(word string) string {
	if _, ok := profile.Named(word); ok {
		return word
	}
	return profile.Default
}

// afterOther are the commands whose first argument is no image.
var afterOther = []string{"check", "mount"}

// operands returns the arguments of the command; the kernels of --kernel stand where IMAGE does.
func operands(c *cli.Command) []string {
	args, named := c.Args().Slice(), c.StringSlice("kernel")
	if len(named) == 0 {
		return args
	}
	at := 0
	if slices.Contains(afterOther, c.Name) {
		at = 1
	}
	for len(args) < at {
		args = append(args, "")
	}
	return slices.Insert(args, at, named...)
}

// operand returns the argument of that number, "" where there is none.
func operand(c *cli.Command, n int) string {
	if args := operands(c); n < len(args) {
		return args[n]
	}
	return ""
}

// afterBoot are the commands that take the dump of a kernel where the user's folder has one.
var afterBoot = []string{"run", "stap", "bpftrace", "mount", "bench"}

// asKernel is the file of a kernel that --kernel names: a path, or a release in words, which is looked for in the
// user's folder of kernels, and fetched. Another path stays as it is.
func (t *term) asKernel(c *cli.Command, path string) (string, error) {
	if !slices.Contains(c.StringSlice("kernel"), path) || path == "-" {
		return path, nil
	}
	if exists(path) {
		return path, nil
	}
	if !kernels.IsName(path) {
		return "", noKernel(path)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := t.store(c)
	if err != nil {
		return "", fail(exitImage, err)
	}
	k, err := s.Find(path)
	if err != nil {
		k, err = s.Fetch(ctx, path)
		t.ProgressDone()
	}
	dump := err == nil && k.Dump != "" && slices.Contains(afterBoot, c.Name)
	if dump {
		err = s.OnMachine(path, k)
	}
	if _, is := profile.Named(path); err != nil && is {
		err = fmt.Errorf("%w; --profile %s chooses that release's rules", err, path)
	}
	if err != nil {
		return "", fail(exitImage, fmt.Errorf("--kernel %s: %w", printable.Name(path), err))
	}
	if dump {
		return k.Dump, nil
	}
	return k.Image, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// noKernel is the error for a word of --kernel that is neither a file nor a release.
func noKernel(word string) error {
	return fail(exitImage, fmt.Errorf("--kernel %s: there is no such file, and no kernel has this name; "+
		"kprobelab kernels --help says how kernels are called", printable.Name(word)))
}

// kernelOf returns the kernel of --kernel, or the image of another flag that names one.
func kernelOf(c *cli.Command, flag string) (string, error) {
	named := c.StringSlice("kernel")
	switch {
	case len(named) == 0:
		return c.String(flag), nil
	case c.IsSet(flag):
		return "", cmdline.OneOf(c, flag, "kernel")
	case len(named) > 1:
		return "", usagef("--kernel %s: this command takes one kernel", printable.Name(named[1]))
	}
	return named[0], nil
}

// profileOf returns the profile that --profile names, or the one that is named here; nil where there is none.
func profileOf(c *cli.Command, usual string) (*profile.Config, error) {
	name := c.String("profile")
	if name == "" {
		name = usual
	}
	if name == "" {
		return nil, nil
	}
	p, err := profile.Find(name)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return p, nil
}
