// Package boot tries the hazards of kernels under QEMU; scripts/conformance-hazards.sh
// gives it what it needs. It ends with 1 when something did not happen as predicted,
// and with 77 when a kernel did not run.
package boot

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kprobelab/internal/tools/conformance/hazards"
	"kprobelab/internal/tools/conformance/verb"
)

// Run runs the verb hazards.
func Run(args []string) error {
	f := flag.NewFlagSet("hazards", flag.ExitOnError)
	var o hazards.Options
	page := ""
	f.StringVar(&o.QEMU, "qemu", "qemu-system-x86_64", "the program that starts QEMU")
	init := f.String("init", "", "the init program")
	f.StringVar(&o.CPU, "cpu", "qemu64", "the CPU model")
	f.IntVar(&o.Points, "points", 30, "how many hazard points to try on each kernel, and as many neighbours")
	f.Uint64Var(&o.Seed, "seed", 1, "chooses the points")
	f.DurationVar(&o.Limit, "limit", 10*time.Minute, "how long a machine may take to come up")
	f.StringVar(&o.Dir, "dir", "", "where states of machines are kept while it runs")
	modules := f.String("modules", "", "a folder with RELEASE.ko, the module built for each kernel; without one, what needs it is left out")
	f.StringVar(&page, "page", "", "write the results into this page")
	if err := f.Parse(args); err != nil {
		return err
	}
	program, err := os.ReadFile(*init)
	if err != nil {
		return err
	}
	o.Init = program
	differ, skipped := false, false
	for _, kernel := range f.Args() {
		o.Kernel = kernel
		release := strings.TrimPrefix(filepath.Base(kernel), "vmlinuz-")
		if o.Module, err = os.ReadFile(filepath.Join(*modules, release+".ko")); err != nil {
			fmt.Printf("  no module for %s: points that kprobe_events does not take are left out\n", release)
		}
		r, err := o.Run(func(line string) { fmt.Println("  " + line) })
		switch {
		case errors.Is(err, hazards.ErrNotRun):
			fmt.Println("  " + err.Error())
			skipped = true
			continue
		case err != nil:
			return err
		}
		text := r.Markdown(release)
		fmt.Println(text)
		differ = differ || r.Differ() > 0
		if page != "" {
			if err := hazards.WritePage(page, release, text); err != nil {
				return err
			}
		}
	}
	switch {
	case differ:
		return verb.ErrDiffer
	case skipped:
		return verb.ErrNotRun
	}
	return nil
}
