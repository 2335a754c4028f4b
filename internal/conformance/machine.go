package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"kprobelab/internal/conformance/frame"
	"kprobelab/x86"
)

// Machine says how to boot a kernel.
type Machine struct {
	// QEMU is the program that starts qemu-system-x86_64.
	QEMU string
	// Kernel is the image's path, CPU the model as QEMU writes it.
	Kernel, CPU string
	// CPUs is their number.
	CPUs int
	// Init is the init program, Files what else the initramfs holds.
	Init  []byte
	Files map[string][]byte
	// Limit is how long the machine may run.
	Limit time.Duration
	// Say, when not nil, is told what happens.
	Say func(format string, args ...any)
}

// Booted is what a machine has told.
type Booted struct {
	// Frames are what init sent, by name.
	Frames map[string][]byte
	// Text and Settled are the kernel's text as boot left it, and with the
	// probes in place.
	Text, Settled []byte
	// Console is the end of what the kernel printed.
	Console string
}

// physicalText is where the kernel's text lies in physical memory without
// KASLR: as far behind its start as it is linked behind the base of kernel text.
func physicalText(addr x86.Addr) uint64 { return uint64(addr) - 0xffffffff80000000 }

// Boot boots the kernel, whose text is the given range, and waits until init
// is done.
func (m *Machine) Boot(text x86.Range) (*Booted, error) {
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), m.Limit)
	defer cancel()
	r, err := m.start(ctx, dir)
	if err != nil {
		return nil, err
	}
	out, err := r.follow(text)
	if quit := r.stop(); err == nil && ctx.Err() != nil {
		err = quit
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("not done after %s: %w", m.Limit, err)
	}
	out.Console = r.console.String()
	if err != nil {
		err = fmt.Errorf("%s on %s: %w; the console's end:\n%s", m.Kernel, m.CPU, err, out.Console)
	}
	return out, err
}

// running is a machine that runs.
type running struct {
	*Machine
	dir     string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	frames  *os.File
	console tail
	monitor *monitor
}

// start begins QEMU with its monitor on a socket, the console on its standard
// files, and the debug console on a pipe.
func (m *Machine) start(ctx context.Context, dir string) (*running, error) {
	r := &running{Machine: m, dir: dir}
	initrd := filepath.Join(dir, "initrd")
	if err := os.WriteFile(initrd, initramfs(m.Init, m.Files), 0o600); err != nil {
		return nil, err
	}
	frames, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	r.frames = frames
	socket := filepath.Join(dir, "monitor")
	// One thread runs all CPUs in turn: with a thread each, QEMU now and then
	// translates an instruction while another CPU patches it, and the guest dies.
	args := []string{
		"-nodefaults", "-display", "none", "-no-reboot", "-accel", "tcg,thread=single", "-m", "1024", "-smp", fmt.Sprint(m.CPUs), "-cpu", m.CPU,
		"-kernel", m.Kernel, "-initrd", initrd, "-append", "console=ttyS0 nokaslr quiet panic=-1 oops=panic",
		"-serial", "stdio", "-debugcon", "file:/dev/fd/3",
		"-qmp", "unix:" + socket + ",server=on,wait=off",
	}
	r.cmd = exec.CommandContext(ctx, m.QEMU, args...)
	r.cmd.ExtraFiles = []*os.File{write}
	r.cmd.Stdout, r.cmd.Stderr = &r.console, &r.console
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("QEMU: %w", err)
	}
	return r, nil
}

// follow reads frames to the last one.
func (r *running) follow(text x86.Range) (out *Booted, err error) {
	out = &Booted{Frames: map[string][]byte{}}
	if r.monitor, err = dialMonitor(filepath.Join(r.dir, "monitor")); err != nil {
		return out, err
	}
	for {
		name, data, err := frame.Read(r.frames)
		if err != nil {
			return out, fmt.Errorf("the machine ended early: %w", err)
		}
		out.Frames[name] = data
		switch name {
		case frame.Booted:
			r.say("booted; reading its text")
			if out.Text, err = r.memory(text); err != nil {
				return out, err
			}
			if _, err := io.WriteString(r.stdin, "\n"); err != nil {
				return out, err
			}
		case frame.Errnos:
			r.say("every definition is written")
		case frame.Attached:
			r.say("every program is attached or refused")
		case frame.Failed:
			return out, errors.New("init: " + string(data))
		case frame.Done:
			out.Settled, err = r.memory(text)
			return out, err
		}
	}
}

func (r *running) say(format string, args ...any) {
	if r.Say != nil {
		r.Say(format, args...)
	}
}

// memory reads the guest's memory at a range of kernel text.
func (r *running) memory(text x86.Range) ([]byte, error) {
	file := filepath.Join(r.dir, "memory")
	defer os.Remove(file)
	err := r.monitor.do("pmemsave", map[string]any{
		"val": physicalText(text.Start), "size": uint64(text.End - text.Start), "filename": file,
	})
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// stop ends QEMU and waits for it.
func (r *running) stop() error {
	defer r.frames.Close()
	if r.monitor != nil {
		defer r.monitor.conn.Close()
		// The answer may be lost with the process.
		_ = r.monitor.do("quit", nil)
	} else {
		_ = r.cmd.Process.Kill()
	}
	return r.cmd.Wait()
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if over := len(t.b) - tailSize; over > 0 {
		t.b = append([]byte(nil), t.b[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.b)) }
