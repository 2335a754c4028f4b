// Command boot boots kernels and compares what they say with what the project
// computes; scripts/conformance.sh gives it what it needs. It ends with 1 when
// something differs, and with 77 when nothing does, but a kernel did not run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"kprobelab/internal/tools/conformance"
	"kprobelab/internal/tools/conformance/boottext"
	"kprobelab/internal/tools/qemu"
	"kprobelab/internal/tools/qemu/frame"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// options are the command line.
type options struct {
	qemu, init, cpu, object string
	points, names           int
	seed                    uint64
	limit                   time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.qemu, "qemu", "qemu-system-x86_64", "the program that starts QEMU")
	flag.StringVar(&o.init, "init", "", "the init program")
	flag.StringVar(&o.cpu, "cpu", kimage.DefaultCPU, "the CPU models, with blanks between them")
	flag.StringVar(&o.object, "object", "", "a compiled BPF object to attach, too")
	flag.IntVar(&o.points, "points", 3000, "how many points to register on each kernel")
	flag.IntVar(&o.names, "names", 200, "how many definitions to write by name, too")
	flag.Uint64Var(&o.seed, "seed", 1, "chooses the points")
	flag.DurationVar(&o.limit, "limit", 10*time.Minute, "how long a kernel may run")
	flag.Parse()
	// An interrupt reaches QEMU too and ends it; this program goes on, to clean
	// up.
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	differ, skipped := false, false
	for _, kernel := range flag.Args() {
		for _, cpu := range strings.Fields(o.cpu) {
			if interrupted.Err() != nil {
				os.Exit(1)
			}
			err := o.one(kernel, cpu)
			if err != nil {
				fmt.Println("  " + err.Error())
			}
			skipped = skipped || errors.Is(err, errNotRun)
			differ = differ || err != nil && !errors.Is(err, errNotRun)
		}
	}
	if skipped {
		fmt.Println("conformance was NOT checked where a kernel did not run")
	}
	switch {
	case differ:
		os.Exit(1)
	case skipped:
		os.Exit(77)
	}
}

// errNotRun is the error of a guest that did not run to its end. It says nothing
// about the kernel's answers.
var errNotRun = errors.New("the guest did not run to its end")

// one asks one kernel on one processor.
func (o *options) one(kernel, cpu string) error {
	began := time.Now()
	fmt.Printf("\n%s on %s\n", kernel, cpu)
	img, err := kimage.Open(kernel, &kimage.Options{CPU: cpu})
	if err != nil {
		return err
	}
	points := conformance.Points(img, o.points, o.seed)
	names := conformance.Names(img, points, o.names, o.seed)
	m := &qemu.Machine{
		QEMU: o.qemu, Kernel: kernel, CPU: cpu, CPUs: 2, Limit: o.limit,
		Files: map[string][]byte{
			frame.DefinitionsFile: []byte(conformance.Definitions(points) + strings.Join(names, "\n") + "\n"),
		},
	}
	if m.Init, err = os.ReadFile(o.init); err != nil {
		return err
	}
	if o.object != "" {
		if m.Files[frame.ObjectFile], err = os.ReadFile(o.object); err != nil {
			return err
		}
	}
	text, err := textOf(img)
	if err != nil {
		return err
	}
	b, err := conformance.Ask(m, text, func(what string) {
		fmt.Printf("  %4.0f s  %s\n", time.Since(began).Seconds(), what)
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errNotRun, err)
	}
	return compare(img, text, points, names, m.Files[frame.ObjectFile], b)
}

func textOf(img *kimage.Image) (r x86.Range, err error) {
	start, end := img.Lookup("_stext"), img.Lookup("_etext")
	if len(start) != 1 || len(end) != 1 {
		return r, fmt.Errorf("%s: no _stext and _etext", img.Name())
	}
	return x86.Range{Start: start[0].Addr, End: end[0].Addr}, nil
}

// compare prints how many answers are the same, and every difference. It returns
// an error where there is a difference.
func compare(img *kimage.Image, text x86.Range, points []x86.Addr, names []string, object []byte, b *conformance.Booted) error {
	fmt.Println("  the text after booting, computed and real:")
	tally := boottext.Compare(img, text.Start, b.Text)
	tally.WriteText(os.Stdout)
	different := len(tally.Unexplained)
	a, err := conformance.ComparePoints(img, points, len(names), b)
	if err != nil {
		return err
	}
	fmt.Printf("  points by address: %s\n  of the refused ones, %d only by kprobe_events\n", a, a.OnlyEvents)
	different += show(a)
	if a, err = conformance.CompareNames(img, len(points), names, b); err != nil {
		return err
	}
	fmt.Printf("  definitions by name: %s\n", a)
	different += show(a)
	if object != nil {
		if a, err = conformance.CompareObject(img, object, b); err != nil {
			return err
		}
		fmt.Printf("  programs of the BPF object: %s\n", a)
		different += show(a)
	}
	if different > 0 {
		return fmt.Errorf("%d differences", different)
	}
	return nil
}

func show(a *conformance.Agreement) int {
	for _, d := range a.Differences {
		fmt.Println("    " + d)
	}
	return len(a.Differences)
}
