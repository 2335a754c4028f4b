package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"kprobelab/booted"
	"kprobelab/hostfiles"
	"kprobelab/internal/bounded"
	"kprobelab/kimage"
	"kprobelab/run"
)

// hostDoor holds exec's flags for the files of the host, and for the workloads, the core and the module beside the
// program.
type hostDoor struct {
	root, ready, core, module string
	files, workloads, outs    []string
	here                      bool
	rights                    booted.Rights
	limit                     time.Duration
}

func (h *hostDoor) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "root", Destination: &h.root, Usage: "take interpreters and libraries from the unpacked system in `DIR`, not from the host"},
		&cli.StringSliceFlag{Name: "file", Destination: &h.files, Usage: "take a file or a folder along, `HOST[:GUEST]`; programs in it bring their libraries (repeatable)"},
		&cli.BoolFlag{Name: "here", Destination: &h.here, Usage: "take the current folder along, without hidden folders and caches, and begin in it"},
		&cli.StringSliceFlag{Name: "out", Destination: &h.outs, Usage: "take a file or a folder out afterwards, `GUEST:HOST` (repeatable)"},
		&cli.StringSliceFlag{Name: "workload", Destination: &h.workloads,
			Usage: "run this line of the guest's shell, `COMMAND`, beside the program when that is ready; at its end the program gets SIGINT (repeatable)"},
		&cli.StringFlag{Name: "ready", Destination: &h.ready, DefaultText: "when it sleeps", Usage: "the program is ready when a line of its output matches `REGEX`"},
		&cli.DurationFlag{Name: "for", Destination: &h.limit, HideDefault: true, Usage: "send SIGINT to the program after this much virtual `TIME`, as in 5s"},
		&cli.GenericFlag{Name: "user", Value: each(h.rights.SetUser), Usage: "run the program as this user, `UID[:GID]`, root or nobody"},
		&cli.GenericFlag{Name: "cap", Value: each(h.rights.AddCapabilities),
			Usage: "let it have these capabilities and no others, `NAME,...` of capabilities(7), as bpf,perfmon, all or none (repeatable)"},
		&cli.GenericFlag{Name: "ulimit", Value: each(h.rights.SetLimit), Usage: "limit a resource of it, `NAME=SOFT[:HARD]`, as memlock=64K (repeatable)"},
		&cli.StringFlag{Name: "core", Destination: &h.core, Usage: "if the kernel panics, write its memory to `FILE`, for crash and gdb"},
		&cli.GenericFlag{Name: "module", Value: each(func(text string) error { h.module = text; return nil }),
			Usage: "load a module of the kernel's before, 'FILE.ko [PARAM=VALUE]', unload it after, and say what it has left"},
	}
}

// job makes PROGRAM a program of the host.
func (h *hostDoor) job(j *run.Job) error {
	if h.limit < 0 {
		return usagef("--for %s: a time cannot be negative", h.limit)
	}
	s := &hostfiles.Set{Root: h.root}
	for _, v := range j.Program.Env {
		if dirs, ok := strings.CutPrefix(v, "LD_LIBRARY_PATH="); ok {
			s.Libraries = filepath.SplitList(dirs)
		}
	}
	guest, err := s.Program(j.Program.Args[0])
	switch {
	case err == nil:
		j.Program.Args[0] = guest
	case !path.IsAbs(j.Program.Args[0]) || !errors.Is(err, fs.ErrNotExist):
		return &failure{exitImage, err}
	}
	for _, f := range h.files {
		host, at, ok := strings.Cut(f, ":")
		if !ok {
			if at, err = filepath.Abs(host); err != nil {
				return err
			}
		}
		if host == "" || !path.IsAbs(at) {
			return usagef("--file %q: want HOST[:GUEST], with an absolute path of the guest", f)
		}
		if err := s.Add(host, at); err != nil {
			return &failure{exitImage, err}
		}
	}
	around, err := run.Surround(s, j.Program.Args, h.here)
	if err != nil {
		return &failure{exitImage, err}
	}
	j.Program.Env = run.Latest(append(around.Env, j.Program.Env...))
	if j.Program.Dir == "" {
		j.Program.Dir = around.Dir
	}
	j.Host = &run.HostProgram{Outs: around.Outs, Session: booted.Session{Program: *j.Program, Rights: h.rights, For: h.limit}, Files: s.Files(), Wanted: s.Wanted, Core: h.core}
	return h.beside(j.Host)
}

// beside fills in the values of --ready, --workload, --out and --module.
func (h *hostDoor) beside(p *run.HostProgram) (err error) {
	if h.ready != "" {
		if p.Ready, err = regexp.Compile(h.ready); err != nil {
			return usagef("--ready: %w", err)
		}
	}
	for _, line := range h.workloads {
		p.Workloads = append(p.Workloads, &booted.Program{Args: []string{"/bin/sh", "-c", line}, Env: p.Env, Dir: p.Dir})
	}
	for _, text := range h.outs {
		o, err := run.ParseOut(text)
		if err != nil {
			return usagef("--out %w", err)
		}
		p.Outs = append(p.Outs, o)
	}
	if h.module == "" {
		return nil
	}
	file, parameters, _ := strings.Cut(strings.TrimSpace(h.module), " ")
	code, err := kimage.ReadUnpacked(file)
	if err != nil {
		return &failure{exitImage, err}
	}
	p.Module = &run.Module{Name: file, Code: code, Parameters: strings.TrimSpace(parameters)}
	return nil
}

// give gives a program what the user types, and the user's signals: the third one ends kprobelab itself.
func give(p *run.HostProgram, stdin string) (stop func(), err error) {
	switch stdin {
	case "", "-":
		p.Input = os.Stdin
	default:
		if p.Stdin, err = bounded.ReadFile(stdin, bounded.GuestBytes); err != nil {
			return nil, err
		}
	}
	came, to := make(chan os.Signal, 1), make(chan syscall.Signal, 2)
	signal.Notify(came, os.Interrupt, syscall.SIGTERM)
	go func() {
		for n := 1; ; n++ {
			s, ok := <-came
			if !ok {
				return
			}
			if n == cap(to) {
				signal.Reset(os.Interrupt, syscall.SIGTERM)
			}
			to <- s.(syscall.Signal)
		}
	}()
	p.Signals, p.Context = to, context.Background()
	return func() { signal.Stop(came); close(came) }, nil
}
