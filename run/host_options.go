package run

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"kprobelab/booted"
	"kprobelab/bpf/losses"
	"kprobelab/hostfiles"
	"kprobelab/kimage"
)

// HostOptions holds a command line's options for a program of the host: its files, and what is beside it.
type HostOptions struct {
	// Root is a folder with an unpacked system, "" for the host's.
	Root string
	// Files are texts HOST[:GUEST], Outs are GUEST:HOST. Here takes the current folder along (Surround).
	Files, Outs []string
	Here        bool
	// Workloads are lines for the guest's shell, or names (Workload). Ready is a regular expression.
	Workloads []string
	Ready     string
	// For is booted.Session's, Core is HostProgram's.
	For  time.Duration
	Core string
	// Rights are the program's.
	Rights booted.Rights
	// Module is a file with parameters after it, Build a folder with parameters after it, from which Builder makes the module of each kernel.
	Module, Build string
	Builder       Builder
	// Modprobe has names of modules, with commas between them, of the kernel's own package, which ModuleFiles has. Lockdown is a level of kernel_lockdown(7).
	Modprobe    []string
	ModuleFiles ModuleFiles
	Lockdown    string
	// Asked is HostProgram's.
	Asked losses.Asked
}

// lockdowns are the levels of kernel_lockdown(7).
var lockdowns = []string{"integrity", "confidentiality"}

// Builder builds the module of a folder for a kernel's release, and returns its name and its code.
type Builder func(ctx context.Context, release, folder string) (name string, code []byte, err error)

// ModuleFiles gives modules of the package of a kernel's release to each, after the modules on which they depend.
type ModuleFiles func(ctx context.Context, release string, names []string, each func(name string, code []byte) error) error

// HostJob makes the program of a job a program of the host: it finds the files that this one needs.
func (o *HostOptions) HostJob(j *Job) error {
	if o.For < 0 {
		return misused("--for %s: a time cannot be negative", o.For)
	}
	s := &hostfiles.Set{Root: o.Root}
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
		return unusable(err)
	}
	if err := o.files(s); err != nil {
		return err
	}
	around, err := Surround(s, j.Program.Args, o.Here)
	if err != nil {
		return unusable(err)
	}
	j.Program.Env = Latest(append(around.Env, j.Program.Env...))
	if j.Program.Dir == "" {
		j.Program.Dir = around.Dir
	}
	j.Host = &HostProgram{
		Session: booted.Session{Program: *j.Program, Rights: o.Rights, For: o.For},
		Files:   s.Files(), Wanted: s.Wanted, Outs: around.Outs, Core: o.Core,
		Modprobe: strings.FieldsFunc(strings.Join(o.Modprobe, ","), func(r rune) bool { return r == ',' }), ModuleFiles: o.ModuleFiles, Lockdown: o.Lockdown,
		Asked: &o.Asked,
	}
	return o.beside(j.Host)
}

// files adds the values of --file.
func (o *HostOptions) files(s *hostfiles.Set) (err error) {
	for _, f := range o.Files {
		host, at, ok := strings.Cut(f, ":")
		if !ok {
			if at, err = filepath.Abs(host); err != nil {
				return unusable(err)
			}
		}
		if host == "" || !path.IsAbs(at) {
			return misused("--file %q: want HOST[:GUEST], with an absolute path of the guest", f)
		}
		if err := s.Add(host, at); err != nil {
			return unusable(err)
		}
	}
	return nil
}

// beside fills in the values of --ready, --workload, --out, --module and --build.
func (o *HostOptions) beside(p *HostProgram) (err error) {
	if o.Ready != "" {
		if p.Ready, err = regexp.Compile(o.Ready); err != nil {
			return misused("--ready: %w", err)
		}
	}
	for _, text := range o.Workloads {
		p.Workloads = append(p.Workloads, &booted.Program{Args: []string{shell, "-c", Workload(text)}, Env: p.Env, Dir: p.Dir})
	}
	for _, text := range o.Outs {
		out, err := ParseOut(text)
		if err != nil {
			return misused("--out %w", err)
		}
		p.Outs = append(p.Outs, out)
	}
	if o.Lockdown != "" && !slices.Contains(lockdowns, o.Lockdown) {
		return misused("--lockdown %q: the levels are %s", o.Lockdown, strings.Join(lockdowns, " and "))
	}
	switch {
	case o.Module != "" && o.Build != "":
		return misused("--module and --build: a run has one module")
	case o.Build != "":
		folder, parameters, _ := strings.Cut(strings.TrimSpace(o.Build), " ")
		p.Module = &Module{Name: folder, Parameters: strings.TrimSpace(parameters), build: o.Builder}
	case o.Module != "":
		file, parameters, _ := strings.Cut(strings.TrimSpace(o.Module), " ")
		code, err := kimage.ReadUnpacked(file)
		if err != nil {
			return unusable(err)
		}
		p.Module = &Module{Name: file, Code: code, Parameters: strings.TrimSpace(parameters)}
	}
	return nil
}
