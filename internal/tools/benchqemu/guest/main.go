//go:build linux && amd64

// Command guest is the first process of a kernel that is booted to be
// measured: it loads the module of internal/tools/benchqemu/module, has it run its
// rounds, and sends the host their times.
//
// It must not know what the module probes.
package main

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"kprobelab/internal/qemu/frame"
	"kprobelab/internal/qemu/wire"
)

func main() { wire.Init(work) }

const (
	// optimization is the sysctl that allows and forbids jump optimization. A
	// write returns when every probe has been changed.
	optimization = "/proc/sys/debug/kprobes-optimization"
	// measuring is the file by which the module is asked.
	measuring = "/proc/kprobelab_bench"
)

// work runs the rounds. The last two arguments are the number of rounds and the
// calls in each. Before them the kernel passes the parameters of its command line
// that it does not know.
func work() error {
	if len(os.Args) < 3 {
		return fmt.Errorf("the arguments are %q, not the rounds and the calls", os.Args[1:])
	}
	last := os.Args[len(os.Args)-2:]
	rounds, err := strconv.Atoi(last[0])
	if err != nil {
		return err
	}
	if err := prepare(); err != nil {
		return err
	}
	for range rounds {
		if err := round("0", "int3 "+last[1]); err != nil {
			return err
		}
		if err := round("1", "optimized "+last[1]); err != nil {
			return err
		}
		wire.Send(frame.Round, nil)
	}
	figures, err := os.ReadFile(measuring)
	if err != nil {
		return err
	}
	wire.Send(frame.Measured, figures)
	return nil
}

func prepare() error {
	if err := os.MkdirAll("/proc", 0o755); err != nil {
		return err
	}
	if err := unix.Mount("none", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	module, err := os.ReadFile(frame.ModuleFile)
	if err != nil {
		return err
	}
	if err := unix.InitModule(module, ""); err != nil {
		return fmt.Errorf("loading the module: %w", err)
	}
	return nil
}

func round(optimize, request string) error {
	if err := os.WriteFile(optimization, []byte(optimize), 0); err != nil {
		return err
	}
	if err := os.WriteFile(measuring, []byte(request), 0); err != nil {
		return fmt.Errorf("%q: %w", request, err)
	}
	return nil
}
