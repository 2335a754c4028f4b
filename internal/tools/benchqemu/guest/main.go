//go:build linux && amd64

// Command guest is the first process of a kernel that is booted to be
// measured: it loads the module of internal/tools/benchqemu/module, lets it make its
// rounds, and tells the host what they took.
//
// It must not know what the module probes.
package main

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"kprobelab/internal/tools/qemu/frame"
	"kprobelab/internal/tools/qemu/wire"
)

func main() { wire.Init(work) }

const (
	// optimization is the sysctl that allows and forbids jump optimization;
	// writing it waits until every probe is as it says.
	optimization = "/proc/sys/debug/kprobes-optimization"
	// measuring is the module's file.
	measuring = "/proc/kprobelab_bench"
)

// work makes the rounds. The last arguments are their number and the calls of
// each; in front of them the kernel passes on what of its own it does not know.
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
