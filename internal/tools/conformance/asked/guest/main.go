//go:build linux && amd64

// Command guest is the first process of a kernel that is booted to be asked: it
// does to the tracing files what the initramfs lists, and tells the host what
// came of it. It must not judge any answer.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kprobelab/internal/qemu/frame"
	"kprobelab/internal/qemu/wire"
	"kprobelab/internal/tools/conformance/asked"
)

const tracing = "/sys/kernel/tracing"

func main() {
	// The right to write to the port is this thread's.
	runtime.LockOSThread()
	if err := wire.Open(); err != nil {
		fmt.Println("no debug port:", err)
	} else if answers, err := work(); err != nil {
		wire.Send(frame.Failed, []byte(err.Error()))
	} else {
		wire.Send(asked.AnswersFrame, answers)
	}
	// The host ends the machine; the first process must not end.
	for {
		time.Sleep(time.Hour)
	}
}

func work() ([]byte, error) {
	for _, m := range []struct{ dir, kind string }{{"/proc", "proc"}, {"/sys", "sysfs"}, {tracing, "tracefs"}} {
		if err := os.MkdirAll(m.dir, 0o755); err != nil {
			return nil, err
		}
		if err := unix.Mount("none", m.dir, m.kind, 0, ""); err != nil {
			return nil, fmt.Errorf("mount %s: %w", m.dir, err)
		}
	}
	list, err := os.ReadFile(asked.OpsFile)
	if err != nil {
		return nil, err
	}
	var ops []asked.Op
	if err := json.Unmarshal(list, &ops); err != nil {
		return nil, err
	}
	answers := make([]asked.Answer, len(ops))
	for i := range ops {
		answers[i] = answer(&ops[i])
	}
	return json.Marshal(answers)
}

// answer makes the system calls themselves: a library would try again.
func answer(o *asked.Op) asked.Answer {
	fd, err := unix.Open(filepath.Join(tracing, o.File), o.Flags()|unix.O_CLOEXEC, 0)
	if err != nil {
		return asked.Answer{Errno: number(err)}
	}
	defer func() { _ = unix.Close(fd) }()
	if o.Do != asked.Read {
		if o.Text == "" {
			return asked.Answer{}
		}
		_, err := unix.Write(fd, []byte(o.Text))
		return asked.Answer{Errno: number(err)}
	}
	var all []byte
	buf := make([]byte, 1<<16)
	for {
		n, err := unix.Read(fd, buf)
		if n <= 0 || err != nil {
			return asked.Answer{Errno: number(err), Text: string(all)}
		}
		all = append(all, buf[:n]...)
	}
}

func number(err error) int {
	var e syscall.Errno
	if errors.As(err, &e) {
		return int(e)
	}
	return 0
}
