package qemu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"kprobelab/internal/bounded"
	"kprobelab/internal/qemu/frame"
	"kprobelab/x86"
)

// Machine describes the machine and the kernel to boot.
type Machine struct {
	// QEMU is the program that starts qemu-system-x86_64.
	QEMU string
	// Kernel is the image's path, CPU the model as QEMU writes it.
	Kernel, CPU string
	// CPUs is the number of processors of the guest. One thread of QEMU runs them in turn. With
	// Parallel each has its own thread: QEMU then sometimes translates an instruction while another
	// CPU patches it, and the guest dies.
	CPUs     int
	Parallel bool
	// SurvivesOops: an oops ends the task that it happens in; else it ends the machine.
	SurvivesOops bool
	// Megabytes is the size of the guest's memory, 0 for 1024.
	Megabytes int
	// From is a file that Save has written of the same machine: the machine continues from it.
	From string
	// Debugged opens the socket that Debug connects to.
	Debugged bool
	// KASLR lets the kernel choose its addresses at each boot. Memory works without it only: it
	// needs the text at its link address.
	KASLR bool
	// Init is the init program, Arguments are its arguments, Files are the other
	// files of the initramfs, and Tree more of them, in order.
	Init      []byte
	Arguments []string
	Files     map[string][]byte
	Tree      []Entry
	// Line is the kernel's command line; "" means the tools' line, which includes Arguments,
	// SurvivesOops and KASLR.
	Line string
	// NoFrames leaves out the port that Frame reads from.
	NoFrames bool
	// Counted lets instructions make the time: the same machine of one CPU does the same
	// each time (of several, nearly always: work of QEMU's other thread can end a CPU's turn), at three fifths of the speed, and time in which all CPUs sleep passes at once.
	Counted bool
	// Console gets the machine's console output as it comes; may be nil.
	Console io.Writer
	// Limit is the longest time that the machine may run.
	Limit time.Duration
}

// physicalText returns the physical address of the kernel's text without KASLR: it is as far from
// address 0 as the link address is from the base of kernel text.
func physicalText(addr x86.Addr) uint64 { return uint64(addr) - 0xffffffff80000000 }

// Boot boots the kernel, calls follow to speak with it, and ends it. The error is an *Ended, which
// wraps follow's.
func (m *Machine) Boot(follow func(*Running) error) error {
	return m.BootContext(context.Background(), follow)
}

// BootContext is Boot, which ends early when the context does.
func (m *Machine) BootContext(ctx context.Context, follow func(*Running) error) error {
	dir, err := os.MkdirTemp("", "qemu")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(ctx, m.Limit)
	defer cancel()
	r, err := m.start(ctx, dir)
	if err != nil {
		return err
	}
	err = r.connectAnd(follow)
	if quit := r.stop(); err == nil && ctx.Err() != nil {
		err = quit
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("not done after %s: %w", m.Limit, err)
	}
	if err != nil {
		err = &Ended{Kernel: m.Kernel, CPU: m.CPU, Console: r.console.String(), Cause: ctx.Err(), Err: err}
	}
	return err
}

// Ended describes a machine that ended before all was done.
type Ended struct {
	Kernel, CPU string
	// Console is the end of the output of QEMU and the kernel.
	Console string
	// Cause is the context's error, if its end or the limit ended the machine.
	Cause error
	Err   error
}

func (e *Ended) Error() string {
	return fmt.Sprintf("%s on %s: %v; the console's end:\n%s", e.Kernel, e.CPU, e.Err, e.Console)
}

func (e *Ended) Unwrap() error { return e.Err }

// Running is a machine that runs.
type Running struct {
	dir     string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	frames  *os.File
	console tail
	monitor *monitor
	// ended is closed when QEMU has ended, with the error status.
	ended  chan struct{}
	status error
}

// arguments are QEMU's, but for what confines it.
func (m *Machine) arguments(kernel, from string) []string {
	accel := "tcg,thread=single"
	if m.Parallel {
		accel = "tcg,thread=multi"
	}
	megabytes := 1024
	if m.Megabytes > 0 {
		megabytes = m.Megabytes
	}
	args := []string{
		"-nodefaults", "-no-user-config", "-nic", "none", "-display", "none", "-no-reboot", "-accel", accel, "-m", fmt.Sprint(megabytes), "-smp", fmt.Sprint(m.CPUs), "-cpu", m.CPU,
		"-kernel", kernel, "-initrd", initrdName, "-append", m.commandLine(),
		"-serial", "stdio",
		"-qmp", "unix:" + monitorName + ",server=on,wait=off",
	}
	if m.Counted {
		// An instruction takes 4 ns. The date and what the machine calls random are
		// always the same; without an HPET the clock is in the processor.
		args = append(args, "-icount", "shift=2,sleep=off", "-rtc", "base=2026-01-01,clock=vm", "-seed", "1", "-machine", "pc,hpet=off")
	}
	if !m.NoFrames {
		args = append(args, "-debugcon", "file:/dev/fd/3")
	}
	if m.From != "" {
		args = append(args, "-incoming", "file:"+from)
	}
	if m.Debugged {
		if m.Counted {
			args = append(args, "-S") // the debugger lets it go
		}
		args = append(args, "-gdb", "unix:"+debuggerName+",server=on,wait=off")
	}
	return args
}

// start begins QEMU with its monitor on a socket, the console on its standard
// files, and the debug console on a pipe.
func (m *Machine) start(ctx context.Context, dir string) (*Running, error) {
	r := &Running{dir: dir}
	initrd := filepath.Join(dir, initrdName)
	if err := m.writeInitramfs(initrd); err != nil {
		return nil, err
	}
	frames, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	r.frames = frames
	// QEMU stands in the folder: no path of the host's is in an option that it takes apart at commas.
	program, kernel, from, err := m.absolute()
	if err != nil {
		return nil, err
	}
	args := m.arguments(kernel, from)
	if confines(ctx, program) {
		args = append(args, "-sandbox", confinement)
	}
	r.cmd = exec.CommandContext(ctx, program, args...)
	r.cmd.Dir = dir
	endsWithUs(r.cmd)
	r.cmd.ExtraFiles = []*os.File{write}
	var console io.Writer = &r.console
	if m.Console != nil {
		console = io.MultiWriter(console, m.Console)
	}
	r.cmd.Stdout, r.cmd.Stderr = console, console
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("QEMU: %w", err)
	}
	r.ended = make(chan struct{})
	go func() {
		r.status = r.cmd.Wait()
		close(r.ended)
	}()
	return r, nil
}

func (m *Machine) writeInitramfs(file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(writeInitramfs(f, m.Init, append(entries(m.Files), m.Tree...)), f.Close())
}

// commandLine is the kernel's command line; the words after -- are for init.
func (m *Machine) commandLine() string {
	if m.Line != "" {
		return m.Line
	}
	line := "console=ttyS0 quiet panic=-1"
	if !m.SurvivesOops {
		line += " oops=panic"
	}
	if !m.KASLR {
		line += " nokaslr"
	}
	return strings.Join(append([]string{line, "--"}, m.Arguments...), " ")
}

// Names of files in the machine's folder.
const (
	initrdName   = "initrd"
	monitorName  = "monitor"
	debuggerName = "debugger"
)

func (r *Running) socket() string { return filepath.Join(r.dir, monitorName) }

func (r *Running) debugSocket() string { return filepath.Join(r.dir, debuggerName) }

// absolute are the paths of QEMU, the kernel and the saved machine, from the root on.
func (m *Machine) absolute() (program, kernel, from string, err error) {
	program, kernel, from = m.QEMU, m.Kernel, m.From
	if found, e := exec.LookPath(program); e == nil {
		program = found // one that is not there is an error of its start
	}
	for _, p := range []*string{&program, &kernel, &from} {
		if *p != "" && (p != &program || strings.ContainsRune(*p, filepath.Separator)) {
			var e error
			*p, e = filepath.Abs(*p)
			err = errors.Join(err, e)
		}
	}
	return program, kernel, from, err
}

// confinement keeps QEMU, once the guest runs (seccomp), from starting programs, getting other rights, changing
// its priority.
const confinement = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"

// confines reports whether a QEMU can confine itself. One that was built without seccomp cannot.
func confines(ctx context.Context, program string) bool {
	if can, known := confined.Load(program); known {
		return can.(bool)
	}
	cmd := exec.CommandContext(ctx, program, "-sandbox", confinement, "-machine", "help")
	can := cmd.Run() == nil
	confined.Store(program, can)
	return can
}

// confined are the answers of confines by program.
var confined sync.Map

// Console returns the end of the machine's console output.
func (r *Running) Console() string { return r.console.String() }

func (r *Running) connectAnd(follow func(*Running) error) (err error) {
	if r.monitor, err = dialMonitor(r.socket(), r.ended); err != nil {
		return err
	}
	if err := r.loaded(); err != nil {
		return err
	}
	return follow(r)
}

// loaded waits until a saved machine is loaded: earlier commands are lost.
func (r *Running) loaded() error {
	for {
		var state struct{ Status string }
		if err := r.monitor.ask("query-status", nil, &state); err != nil {
			return err
		}
		if state.Status != "inmigrate" {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Frame waits for the next frame that init sends.
func (r *Running) Frame() (name string, data []byte, err error) {
	name, data, err = frame.Read(r.frames)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errors.New("the machine said nothing for too long")
	case err != nil:
		err = fmt.Errorf("the machine ended early: %w", err)
	}
	return name, data, err
}

// Within bounds how long the next frame may take; 0 is no bound but the machine's.
func (r *Running) Within(d time.Duration) {
	var until time.Time
	if d > 0 {
		until = time.Now().Add(d)
	}
	// The pipe to QEMU takes deadlines.
	_ = r.frames.SetReadDeadline(until)
}

// Tell writes a line to the console, which init can read.
func (r *Running) Tell(line string) error {
	_, err := io.WriteString(r.stdin, line+"\n")
	return err
}

// Memory reads the guest's memory at a range of kernel text, without KASLR.
func (r *Running) Memory(text x86.Range) ([]byte, error) {
	file := filepath.Join(r.dir, "memory")
	defer os.Remove(file)
	err := r.monitor.do("pmemsave", map[string]any{
		"val": physicalText(text.Start), "size": uint64(text.End - text.Start), "filename": file,
	})
	if err != nil {
		return nil, err
	}
	return bounded.ReadFile(file, int64(text.End-text.Start))
}

// Asleep reports whether the machine's CPU is halted with interrupts off: nothing but a
// reset or an NMI wakes it.
func (r *Running) Asleep() (bool, error) {
	text, err := r.human("info registers")
	if err != nil {
		return false, err
	}
	m := flagsAndHalt.FindStringSubmatch(text)
	if m == nil {
		return false, fmt.Errorf("QEMU's monitor: no flags in %.60q", text)
	}
	flags, err := strconv.ParseUint(m[1], 16, 64)
	return m[2] == "1" && flags&x86.FlagIF == 0, err
}

var flagsAndHalt = regexp.MustCompile(`RFL=([0-9a-f]+).* HLT=(\d)`)

// Spent returns the CPU time of the host that the machine has used.
func (r *Running) Spent() (time.Duration, error) {
	b, err := bounded.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid), 4096)
	if err != nil {
		return 0, err
	}
	// After the name in parentheses; user and system time are the 14th and 15th field
	// (proc_pid_stat(5)), in hundredths of a second.
	_, rest, _ := strings.Cut(string(b), ") ")
	words := strings.Fields(rest)
	if len(words) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat: %q", r.cmd.Process.Pid, b)
	}
	var ticks int64
	for _, w := range words[11:13] {
		n, err := strconv.ParseInt(w, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// Save stops the machine and writes its state to a file. Machines with From go on
// from it, any number of times.
func (r *Running) Save(file string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	if err := r.monitor.do("migrate", map[string]any{"uri": "file:" + file}); err != nil {
		return err
	}
	for {
		var state struct{ Status string }
		if err := r.monitor.ask("query-migrate", nil, &state); err != nil {
			return err
		}
		switch state.Status {
		case "completed":
			return nil
		case "failed", "cancelled":
			return fmt.Errorf("QEMU does not save the machine: %s", state.Status)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// stop ends QEMU and waits for it.
func (r *Running) stop() error {
	defer r.frames.Close()
	if r.monitor != nil {
		defer r.monitor.conn.Close()
		// The answer may be lost with the process.
		_ = r.monitor.do("quit", nil)
	} else {
		_ = r.cmd.Process.Kill()
	}
	<-r.ended
	return r.status
}

// tail keeps the end of the bytes written to it.
type tail struct {
	m sync.Mutex
	b []byte
}

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.m.Lock()
	defer t.m.Unlock()
	t.b = append(t.b, p...)
	if over := len(t.b) - tailSize; over > 0 {
		t.b = append([]byte(nil), t.b[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.m.Lock()
	defer t.m.Unlock()
	return strings.TrimSpace(string(t.b))
}
