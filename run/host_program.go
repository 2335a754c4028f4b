package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"kprobelab/booted"
	"kprobelab/bpf/losses"
	"kprobelab/hostfiles"
	"kprobelab/internal/bounded"
	"kprobelab/internal/printable"
	"kprobelab/internal/report"
)

// HostProgram is a program on a booted kernel as one of the user's own: files of the host get into the guest before it
// begins, and files of the guest out after its end.
type HostProgram struct {
	// Session is the program. The run sets its Stdout and Stderr, and the workloads'.
	booted.Session
	// Context ends the program with SIGINT when it ends; nil: nothing does.
	Context context.Context
	// Files get into the guest.
	Files []hostfiles.File
	// Wanted, if not nil, says which of the paths that the programs asked for are files to take along.
	Wanted func(asked []string, has func(guest string) bool) []string
	// Outs come out of it.
	Outs []Out
	// Module is loaded before the program begins, and unloaded after its end; nil for none.
	Module *Module
	// Modprobe names modules. ModuleFiles has their files. They are loaded first, and stay. Lockdown, if not "", locks the
	// kernel down then.
	Modprobe    []string
	ModuleFiles ModuleFiles
	Lockdown    string
	// Core names a file that gets the memory of a kernel that panicked; empty for none.
	Core string
	// Asked chooses the ledger, the costs and the lines of a BPF tool's programs; nil: none of them. The ledger is an event, Lost, at the end. The file of
	// lines is written when the program has ended, on each kernel of a plan anew.
	Asked *losses.Asked
}

// Out is a file or a folder of the guest, and where it goes on the host.
type Out struct {
	Guest, Host string

	// ifThere: without such a file in the guest, nothing is taken out. isFolder: it is a folder, which the program finds.
	ifThere, isFolder bool
}

// ParseOut reads GUEST:HOST.
func ParseOut(text string) (Out, error) {
	guest, host, ok := strings.Cut(text, ":")
	if !ok || !strings.HasPrefix(guest, "/") || host == "" {
		return Out{}, misused("%q: want GUEST:HOST, an absolute path of the guest and one of the host", text)
	}
	return Out{Guest: guest, Host: host}, nil
}

// Module is a module of the kernel's own kind, with its parameters.
type Module struct {
	// Name is the name of its file, or of the folder from which build makes it.
	Name       string
	Code       []byte
	Parameters string
	// build is not nil if the module is built for each kernel.
	build Builder
}

// file has the module's name and code for a kernel's release.
func (m *Module) file(ctx context.Context, release string) (name string, code []byte, err error) {
	if m.build == nil {
		return m.Name, m.Code, nil
	}
	return m.build(ctx, release, m.Name)
}

// ErrFailed: the guest kernel failed while a program ran: a panic, or an oops.
var ErrFailed = errors.New("the guest kernel failed")

// shell runs the workloads.
const shell = "/bin/sh"

// ErrNoShell: a workload has nothing that runs it.
var ErrNoShell = errors.New("the guest has no " + shell + " for a workload: --file BUSYBOX:/bin/busybox brings one, and kernels boot --again RELEASE makes a dump that has it")

// own lists the files that belong to the program's user: the files of its folder, if that came along, and the folders for the output that
// its caller asked for.
func (h *HostProgram) own() (paths []string) {
	for _, f := range h.Files {
		if h.Dir != "" && h.Dir != "/" && (f.Path == h.Dir || strings.HasPrefix(f.Path, h.Dir+"/")) {
			paths = append(paths, f.Path)
		}
	}
	for _, o := range h.Outs {
		if o.ifThere {
			paths = append(paths, o.folder())
		}
	}
	return paths
}

// host runs a program of the host on the booted kernel.
func (r *runner) host(j bound) error {
	h := *j.Host
	k, err := r.lab.Booted()
	if err != nil {
		return refused(OneLine(err))
	}
	if h.Context == nil {
		h.Context = context.Background()
	}
	module, err := r.load(k, &h)
	if err != nil {
		return err
	}
	h.Stdout, h.Stderr = stream{r.to, 1}, stream{r.to, 2}
	lines := make([]*logLines, len(h.Workloads))
	h.Workloads = slices.Clone(h.Workloads) // the plan may be done on several kernels at once
	for i, w := range h.Workloads {
		lines[i] = &logLines{r: r, kind: workload}
		p := *w
		p.Stdout, p.Stderr = lines[i], lines[i]
		h.Workloads[i] = &p
	}
	watch, err := r.watchLosses(&h, k)
	if err != nil {
		return err
	}
	res, err := k.Run(h.Context, &h.Session)
	for _, l := range lines {
		l.end()
	}
	failed := r.hostEnded(j, &h, k, res, err)
	if costs := r.lost(&h, watch); failed == nil {
		failed = costs
	}
	switch {
	case module == nil:
	case failed != nil && err != nil: // the kernel does not run any more
		r.judged(module, module.Judge(), "is not unloaded")
	default:
		if err := r.unload(&h, k, module); failed == nil {
			failed = err
		}
	}
	if failed != nil {
		return failed
	}
	return r.out(&h, k)
}

// hostEnded says how the program has ended, and what the kernel logged of its own faults.
func (r *runner) hostEnded(j bound, h *HostProgram, k *booted.Kernel, res *booted.Result, err error) error {
	name := h.Args[0]
	switch {
	case res == nil:
		return misused("%s: %w", j.Text, err)
	case err != nil:
		r.put(Failed{Task: -1, Call: j.Text})
		if failed := r.failed(h, k, res, err); failed != nil {
			return failed
		}
		if r.fullMemory(res) { // the killed process may be the supervisor
			r.trouble(res.Trouble)
		}
		return programError(r.lab.Image.Name(), name, err)
	}
	r.put(Exited{j.Text, res.Code})
	if h.Wanted != nil {
		flags := ""
		for _, file := range h.Wanted(res.Asked, k.Has) {
			flags += " --file " + printable.Name(file)
		}
		if flags != "" {
			r.log("exec", "files of the host that were looked for in vain:"+flags)
		}
	}
	if h.Module == nil { // else the lines come with the judgement
		r.trouble(res.Trouble)
	}
	for i, w := range res.Workloads {
		switch {
		case res.NeverReady:
			r.log(workload, fmt.Sprintf("%s ended before it was ready: no workload ran", name))
		case res.Unstarted[i] != nil:
			r.log(workload, res.Unstarted[i].Error())
		case w.Code != 0:
			r.log(workload, fmt.Sprintf("workload %d ended with exit code %d", i+1, w.Code))
		}
		if res.NeverReady {
			break
		}
	}
	if res.Code == 128+int(syscall.SIGILL) {
		r.log("exec", name+" ended by SIGILL: it has an instruction that the guest's processor does not execute. If it was built for AVX, build it for "+
			"all x86-64: -march=x86-64 for gcc and clang, GOAMD64=v1 for Go, -Ctarget-cpu=x86-64 for rustc")
	}
	r.fullMemory(res)
	if res.Killed {
		r.log("exec", name+" did not end by SIGINT, and was killed")
	}
	if oops := booted.Oops(res.Trouble); oops != "" {
		return refused(fmt.Errorf("%w: %s", ErrFailed, oops))
	}
	if res.Code != 0 && r.ended == nil {
		r.ended = &ExitError{Program: name, Code: res.Code}
	}
	return nil
}

// fullMemory says that the guest's memory was full, if its kernel killed a process for that.
func (r *runner) fullMemory(res *booted.Result) bool {
	full := slices.ContainsFunc(res.Trouble, func(line string) bool { return strings.Contains(line, "] Out of memory: Killed process ") })
	if full {
		r.log("exec", "the guest's memory was full, and its kernel killed a process: boot --memory makes a dump with more")
	}
	return full
}

// failed says what a kernel logged that panicked, and keeps its memory; nil if it did not.
func (r *runner) failed(h *HostProgram, k *booted.Kernel, res *booted.Result, err error) error {
	var p *booted.PanicError
	if !errors.As(err, &p) {
		return nil
	}
	lines := res.Trouble
	if len(lines) == 0 {
		lines = p.Log
	}
	r.trouble(lines)
	failure := fmt.Errorf("%w: %w", ErrFailed, err)
	if h.Core != "" {
		if err := writeCore(k, h.Core); err != nil {
			return unusable(OneLine(errors.Join(failure, err)))
		}
		r.log("exec", "the kernel's memory is in "+h.Core)
	}
	return refused(failure)
}

func writeCore(k *booted.Kernel, file string) error {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(k.Core(f), f.Close())
}

// trouble gives what a kernel logged that is in trouble: of a log without end, the first lines, which have the cause, and the last.
func (r *runner) trouble(lines []string) {
	const some = bounded.TroubleLines / 2
	if out := len(lines) - 2*some; out > 0 {
		r.dmesg(lines[:some])
		r.log("exec", "left out of the kernel's log: "+report.Counted(out, "line"))
		lines = lines[len(lines)-some:]
	}
	r.dmesg(lines)
}

// dmesg gives lines of the kernel's log.
func (r *runner) dmesg(lines []string) {
	for _, line := range lines {
		r.log("dmesg", line)
	}
}

// out takes files out of the guest.
func (r *runner) out(h *HostProgram, k *booted.Kernel) error {
	for _, o := range h.Outs {
		if !o.there(k.Has) {
			continue
		}
		files, err := k.Get(o.Guest)
		if err == nil {
			err = hostfiles.Write(o.Host, files)
		}
		if err != nil {
			return unusable(fmt.Errorf("--out %s:%s: %w", o.Guest, o.Host, err))
		}
	}
	return nil
}

// workload marks the lines of workloads in the log.
const workload = "workload"

// logLines gives what is written as lines of the log.
type logLines struct {
	r    *runner
	kind string
	rest []byte
}

// Write implements io.Writer.
func (l *logLines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		line, rest, ok := strings.Cut(string(l.rest), "\n")
		if !ok && len(line) < longLine {
			return len(b), nil
		}
		l.rest = []byte(rest)
		if err := l.r.to.Put(Logged{l.kind, line}); err != nil {
			return 0, err
		}
	}
}

// longLine is the number of bytes after which Write logs a line that has no end yet.
const longLine = 64 << 10

func (l *logLines) end() {
	if len(l.rest) > 0 {
		l.r.log(l.kind, string(l.rest))
		l.rest = nil
	}
}

// TakeSignals gives the program the interrupts and terminations of this process, until stop; the third one ends this process.
func (p *HostProgram) TakeSignals() (stop func()) {
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
	return func() { signal.Stop(came); close(came) }
}
