package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"kprobelab/boot"
	"kprobelab/internal/cmdline"
	"kprobelab/internal/outfile"
	"kprobelab/internal/printable"
	"kprobelab/internal/terminal"
	"kprobelab/kernels"
)

func kernelsCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:        "kernels",
		Usage:       "list, fetch, add, boot and carry kernels, without root, apt or dpkg",
		Description: described("kernels"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "cache", Usage: "keep all in the folder `DIR`"},
			&cli.StringFlag{Name: "mirror", Usage: "the address of Debian's archive, `URL`"},
			&cli.StringSliceFlag{Name: "keyring", Usage: "check with the keys of `FILE` (repeatable)"},
			&cli.BoolFlag{Name: "refresh", Usage: "fetch indexes of today again"},
			&cli.BoolFlag{Name: "offline", Usage: "fetch nothing"},
		},
		Commands: []*cli.Command{
			kernelsSub(t, "list", "", "print which kernels there are", "", []cli.Flag{
				&cli.BoolFlag{Name: "available", Usage: "and which can be fetched"},
				&cli.BoolFlag{Name: "json", Usage: "one JSON object for each"},
			}, kernelsList),
			kernelsSub(t, "fetch", "RELEASE...", "fetch kernels, print their images' paths", "", []cli.Flag{
				&cli.BoolFlag{Name: "debuginfo", Usage: "with vmlinux and its debugging symbols (0.3 to 1 GB)"},
				&cli.BoolFlag{Name: "modules", Usage: "with the modules"},
			}, kernelsFetch),
			kernelsSub(t, "boot", "RELEASE...", "boot kernels under QEMU, keep and print their dumps", "", append(machineOfBoot(),
				&cli.BoolFlag{Name: "again", Usage: "boot it although there is a dump"}), kernelsBoot),
			kernelsSub(t, "lock", "[RELEASE...]", "pin kernels and their machines in the file kernels.lock", described("kernels lock"), append(machineOfBoot(),
				&cli.StringFlag{Name: "cpu", Value: kernels.DefaultMachine.CPU, Usage: "which processors, as QEMU names them: `MODEL[,+feature][,-feature]`"}), kernelsLock),
			kernelsSub(t, "key", "", "print the key of a CI's cache for the kernels of kernels.lock", "", nil, kernelsKey),
			kernelsSub(t, "add", "FILE [MODULES]", "take a .deb, an .rpm or an image of any vendor", described("kernels add"), nil, kernelsAdd),
			kernelsSub(t, "remove", "RELEASE...", "remove kernels", "", nil, kernelsRemove),
			kernelsSub(t, "export", "RELEASE", "write a booted kernel into a file", described("kernels export"), []cli.Flag{
				&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE`"},
			}, kernelsExport),
			kernelsSub(t, "import", "FILE...", "take what export has written; needs no QEMU", "", nil, kernelsImport),
			kernelsSub(t, "qemu", "", "print the path of Debian's QEMU, fetched if need be", "", nil, kernelsQEMU),
		},
		Action: cmdline.OnlyCommands,
	}
}

// kernelsSub is a command that works on the user's kernels, and ends with an interrupt.
func kernelsSub(t *term, name, args, usage, description string, flags []cli.Flag, do func(context.Context, *term, *cli.Command, *kernels.Store) error) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: args, Description: description, Flags: flags,
		Action: func(ctx context.Context, c *cli.Command) error {
			ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
			defer stop()
			least, most := 0, 0
			switch {
			case args == "":
			case strings.HasPrefix(args, "["):
				most = c.Args().Len()
			case strings.Contains(args, "..."):
				least, most = 1, c.Args().Len()
			default:
				least, most = 1, len(strings.Fields(args))
			}
			if c.Args().Len() < least {
				return usagef("%s needs %s; try %s --help", c.FullName(), args, c.FullName())
			}
			if err := atMost(c, most); err != nil {
				return err
			}
			s, err := t.store(c)
			if err != nil {
				return fail(exitImage, err)
			}
			err = do(ctx, t, c, s)
			t.ProgressDone()
			if f := (*cmdline.Failure)(nil); err != nil && !errors.As(err, &f) {
				err = fail(exitImage, err) // something cannot be had or read
			}
			return err
		},
	}
}

// store is the user's folder of kernels, with the lock of the working directory.
func (t *term) store(c *cli.Command) (*kernels.Store, error) {
	lock, err := kernels.FindLock(".")
	if err != nil {
		return nil, err
	}
	return kernels.Open(&kernels.Options{
		Dir: c.String("cache"), Mirror: c.String("mirror"), Keyrings: c.StringSlice("keyring"), Refresh: c.Bool("refresh"), Offline: c.Bool("offline"),
		Say: t.Err, Progress: t.Progress, Lock: lock, Strict: os.Getenv("CI") == "true",
	})
}

func kernelsList(ctx context.Context, t *term, c *cli.Command, s *kernels.Store) error {
	list, err := s.List(ctx, c.Bool("available"))
	if err != nil {
		return err
	}
	t.ProgressDone()
	if len(list) == 0 && !c.Bool("json") {
		t.Sayf("no kernel is there; kprobelab kernels list --available says which can be fetched")
	}
	return kernels.WriteList(t.Out, list, c.Bool("json"))
}

// eachWord has a file made for each argument, and prints its path.
func eachWord(t *term, c *cli.Command, do func(word string) (path string, err error)) error {
	for _, word := range c.Args().Slice() {
		path, err := do(word)
		if err != nil {
			return err
		}
		t.ProgressDone()
		fmt.Fprintln(t.Out, printable.Name(path))
	}
	return nil
}

func kernelsFetch(ctx context.Context, t *term, c *cli.Command, s *kernels.Store) error {
	return eachWord(t, c, func(word string) (string, error) {
		k, err := s.Fetch(ctx, word)
		if err == nil && c.Bool("debuginfo") {
			_, err = s.Debuginfo(ctx, k)
		}
		if err == nil && c.Bool("modules") {
			_, err = s.FetchModules(ctx, k)
		}
		if err != nil {
			return "", err
		}
		return k.Image, nil
	})
}

// machineOfBoot returns the flags for the machine of a kernel that is booted; machineFrom reads them.
func machineOfBoot() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "memory", Value: "128M", Usage: "how much memory the guest has"},
		&cli.IntFlag{Name: "cpus", Value: 1, Usage: "how many processors it has"},
		&cli.StringFlag{Name: "append", Usage: "more `WORDS` for the kernel's command line"},
	}
}

func machineFrom(c *cli.Command) (o boot.Options, set bool, err error) {
	o.On(kernels.DefaultMachine)
	set = c.IsSet("memory") || c.IsSet("cpus") || c.IsSet("append") || c.IsSet("cpu")
	if c.IsSet("cpu") {
		o.CPU = c.String("cpu")
	}
	return o, set, onMachine(c, &o)
}

// onMachine reads --memory, --cpus and --append.
func onMachine(c *cli.Command, o *boot.Options) (err error) {
	o.CPUs, o.Append = c.Int("cpus"), c.String("append")
	if o.Megabytes, err = boot.ParseMegabytes(c.String("memory")); err != nil {
		return usagef("--memory: %w", err)
	}
	if o.CPUs < 1 || o.CPUs > boot.MaxCPUs {
		return usagef("--cpus: %d is not from 1 to %d", o.CPUs, boot.MaxCPUs)
	}
	if err := o.CheckWords(); err != nil {
		return usagef("--append: %w", err)
	}
	return nil
}

func kernelsBoot(ctx context.Context, t *term, c *cli.Command, s *kernels.Store) error {
	o, set, err := machineFrom(c)
	if err != nil {
		return err
	}
	return eachWord(t, c, func(word string) (string, error) {
		k, err := s.Kernel(ctx, word)
		if err != nil {
			return "", err
		}
		with := o
		if p := s.Pin(word); p != nil && set {
			return "", usagef("%s has the machine of %s: kprobelab kernels lock changes it", kernels.LockName, word)
		} else if p != nil {
			with.On(p.Machine)
		}
		if k.Dump == "" || c.Bool("again") {
			_, err = t.keep(s, &with, func(b *boot.Keeper) (string, error) { return "", b.Keep(ctx, k) })
		}
		return k.Dump, err
	})
}

// kernelsLock pins words.
func kernelsLock(ctx context.Context, t *term, c *cli.Command, s *kernels.Store) error {
	o, set, err := machineFrom(c)
	if err != nil {
		return err
	}
	m := o.Machine()
	on := &m
	if !set {
		on = nil
	}
	pins, err := s.Lock(ctx, c.Args().Slice(), on)
	t.ProgressDone()
	for _, p := range pins {
		fmt.Fprintln(t.Out, printable.Name(p.String()))
	}
	return err
}

// kernelsKey prints the key of a cache.
func kernelsKey(_ context.Context, t *term, _ *cli.Command, s *kernels.Store) error {
	key, err := boot.Key(s.TheLock())
	if err == nil {
		_, err = fmt.Fprintln(t.Out, key)
	}
	return err
}

// bootTimeout ends a boot that hangs, if boot --timeout says no other time.
const bootTimeout = 5 * time.Minute

// keep boots kernels of the user's folder, and says what is done.
func (t *term) keep(s *kernels.Store, o *boot.Options, do func(*boot.Keeper) (string, error)) (string, error) {
	wait := &terminal.Lines{Stage: "boot", T: t.Term}
	o.Console, o.Limit = wait, bootTimeout
	dump, err := do(&boot.Keeper{
		Store: s, Options: *o,
		Booting: func(k *kernels.Kernel) {
			t.ProgressDone()
			t.Sayf("booting %s", printable.Name(k.Release))
		},
		NoShell:  func(why error) { t.Sayf("the guest gets no shell: %v", why) },
		Progress: func(stage string, done, total int64) { wait.End(); t.Progress(stage, done, total) },
	})
	wait.End()
	t.ProgressDone()
	if err != nil {
		return "", t.bootFailed(err, o.CPU)
	}
	return dump, nil
}

func kernelsAdd(ctx context.Context, t *term, c *cli.Command, s *kernels.Store) error {
	k, err := s.Add(ctx, c.Args().Get(0), c.Args().Get(1))
	if err != nil {
		return err
	}
	t.ProgressDone()
	_, err = fmt.Fprintf(t.Out, "%s: %s\n", printable.Name(k.Image), k.Has())
	return err
}

func kernelsRemove(_ context.Context, t *term, c *cli.Command, s *kernels.Store) error {
	for _, release := range c.Args().Slice() {
		gone, err := s.Remove(release)
		if err != nil {
			return err
		}
		for _, k := range gone {
			t.Sayf("removed %s", printable.Name(k.Dir))
		}
	}
	return nil
}

func kernelsExport(ctx context.Context, t *term, c *cli.Command, s *kernels.Store) error {
	to := c.String("output")
	if to == "" {
		return usagef("export needs -o FILE")
	}
	k, err := s.Find(c.Args().First())
	if err != nil {
		return err
	}
	f, err := outfile.Create(to)
	if err != nil {
		return err
	}
	return f.Done(s.Export(ctx, k, f))
}

func kernelsImport(ctx context.Context, t *term, c *cli.Command, s *kernels.Store) error {
	return eachWord(t, c, func(file string) (string, error) {
		k, err := s.Import(ctx, file)
		if err != nil {
			return "", err
		}
		return k.Dump, nil
	})
}

func kernelsQEMU(ctx context.Context, t *term, _ *cli.Command, s *kernels.Store) error {
	program, err := s.QEMU(ctx)
	if err != nil {
		return err
	}
	t.ProgressDone()
	_, err = fmt.Fprintln(t.Out, program)
	return err
}
