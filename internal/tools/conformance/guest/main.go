//go:build linux && amd64

// Command guest is the first process of a kernel that is booted to be asked:
// it registers the probes that the initramfs lists, lets them settle, and
// tells the host what the kernel said.
//
// It must not judge any answer.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kprobelab/internal/qemu/frame"
	"kprobelab/internal/qemu/wire"
)

const (
	tracing = "/sys/kernel/tracing/"
	debugfs = "/sys/kernel/debug/"
)

func main() { wire.Init(work) }

func work() error {
	if err := mount(); err != nil {
		return err
	}
	for _, f := range []string{"/proc/version", "/proc/cpuinfo", debugfs + "kprobes/blacklist"} {
		data, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		wire.Send(f, data)
	}
	wire.Send(frame.Booted, nil)
	if err := waitForHost(); err != nil {
		return err
	}
	if err := define(); err != nil {
		return err
	}
	list, err := os.ReadFile(frame.LeaveFile)
	if err != nil {
		return err
	}
	leave := strings.Fields(string(list))
	if err := attachAll(leave); err != nil {
		return err
	}
	if err := enable(leave); err != nil {
		return err
	}
	return settle()
}

// mount mounts the file systems that the rest of the program uses.
func mount() error {
	for _, m := range []struct{ dir, kind string }{
		{"/proc", "proc"}, {"/sys", "sysfs"}, {"/sys/kernel/debug", "debugfs"}, {"/sys/kernel/tracing", "tracefs"}, {"/dev", "devtmpfs"},
	} {
		if err := os.MkdirAll(m.dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("none", m.dir, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.dir, err)
		}
	}
	// The records of the probes are not read, and recording is slow.
	return os.WriteFile(tracing+"tracing_on", []byte("0"), 0)
}

// waitForHost reads a line from the console: the host has seen the text that
// boot left.
func waitForHost() error {
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	return err
}

// define writes every definition to kprobe_events by itself, and tells each
// one's errno.
func define() error {
	list, err := os.ReadFile(frame.DefinitionsFile)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(tracing+"kprobe_events", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var out bytes.Buffer
	for line := range strings.Lines(string(list)) {
		_, err := f.WriteString(line)
		fmt.Fprintln(&out, errnoOf(err))
	}
	wire.Send(frame.Errnos, out.Bytes())
	return nil
}

// errnoOf is the kernel's negative number, 0 for none.
func errnoOf(err error) int {
	var e syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return -int(e)
	}
	return -1 << 16
}

// enable enables events one after another, and names each before: a kernel takes
// probes that then stop it, and the host learns which one did.
func enable(leave []string) error {
	list, err := os.ReadFile(frame.EventsFile)
	if err != nil {
		return err
	}
	for i, name := range strings.Fields(string(list)) {
		event := tracing + "events/" + frame.Group + "/" + name
		if _, err := os.Stat(event); err != nil || slices.Contains(leave, name) {
			continue // the kernel refused its definition, or it is left off
		}
		wire.Send(frame.Enabling, []byte(name))
		if err := os.WriteFile(event+"/enable", []byte("1"), 0); err != nil {
			return fmt.Errorf("enabling %s: %w", name, err)
		}
		// What the kernel runs all the time hits the probes now. A sleep takes some
		// ticks of the clock.
		if i%4 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// settleTime is the time for which kprobes/list has to stay unchanged. The optimizer works
// 5 ticks after a change, and then waits until every task has scheduled.
const settleTime = 2 * time.Second

// settle waits until nothing changes any more.
func settle() error {
	before := []byte(nil)
	for range 30 {
		time.Sleep(settleTime)
		list, err := os.ReadFile(debugfs + "kprobes/list")
		if err != nil {
			return err
		}
		if bytes.Equal(list, before) {
			wire.Send(frame.List, list)
			return nil
		}
		before = list
	}
	return errors.New("kprobes/list did not come to rest")
}
