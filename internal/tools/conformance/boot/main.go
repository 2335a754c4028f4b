// Package boot boots kernels and compares what they say with what the project
// computes; scripts/conformance.sh gives it what it needs. It ends with 1 when
// something differs, and with 77 when nothing does, but a kernel did not run.
package boot

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"kprobelab"
	"kprobelab/internal/bounded"
	"kprobelab/internal/qemu"
	"kprobelab/internal/qemu/frame"
	"kprobelab/internal/tools/conformance"
	"kprobelab/internal/tools/conformance/verb"
	"kprobelab/kimage"
)

// options are the command line.
type options struct {
	qemu, init, cpu, object, keep string
	again, measured               bool
	points, names, together       int
	seed                          uint64
	limit                         time.Duration
}

// Run runs the verb boot.
func Run(args []string) error {
	f := flag.NewFlagSet("boot", flag.ExitOnError)
	var o options
	f.StringVar(&o.qemu, "qemu", "qemu-system-x86_64", "the program that starts QEMU")
	f.StringVar(&o.init, "init", "", "the init program")
	f.StringVar(&o.cpu, "cpu", kimage.DefaultCPU, "the CPU models, with blanks between them")
	f.StringVar(&o.object, "object", "", "a compiled BPF object to attach, too")
	f.StringVar(&o.keep, "keep", "", "keep answers and results in this folder")
	f.BoolVar(&o.again, "again", false, "compare the kept answers again, without a boot")
	f.BoolVar(&o.measured, "measured", false, "ask the image's own functions how it behaves, as the command does; without, its release and symbols tell")
	f.IntVar(&o.points, "points", 3000, "how many points to register on each kernel")
	f.IntVar(&o.names, "names", 200, "how many definitions to write by name, too")
	f.Uint64Var(&o.seed, "seed", 1, "chooses the points")
	f.DurationVar(&o.limit, "limit", 10*time.Minute, "how long a kernel may run")
	f.IntVar(&o.together, "together", runtime.NumCPU(), "how many kernels run at the same time")
	if err := f.Parse(args); err != nil {
		return err
	}
	// An interrupt reaches QEMU too and ends it; this program goes on, to clean
	// up.
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	differ, skipped := false, false
	var printing sync.Mutex
	var guests sync.WaitGroup
	places := make(chan struct{}, max(1, o.together))
	for _, kernel := range f.Args() {
		for _, cpu := range strings.Fields(o.cpu) {
			places <- struct{}{}
			guests.Go(func() {
				defer func() { <-places }()
				if interrupted.Err() != nil {
					return
				}
				var report bytes.Buffer
				err := o.one(kernel, cpu, &report)
				if err != nil {
					fmt.Fprintln(&report, "  "+err.Error())
				}
				printing.Lock()
				defer printing.Unlock()
				fmt.Printf("\n%s on %s\n%s", kernel, cpu, &report)
				skipped = skipped || errors.Is(err, verb.ErrNotRun)
				differ = differ || err != nil && !errors.Is(err, verb.ErrNotRun)
			})
		}
	}
	guests.Wait()
	if err := interrupted.Err(); err != nil {
		return err
	}
	if skipped {
		fmt.Println("conformance was NOT checked where a kernel did not run")
	}
	switch {
	case differ:
		return verb.ErrDiffer
	case skipped:
		return verb.ErrNotRun
	}
	return nil
}

// one asks one kernel on one processor, and reports to out.
func (o *options) one(kernel, cpu string, out io.Writer) error {
	open := kimage.Open
	if o.measured {
		open = kprobelab.OpenImage
	}
	img, err := open(kernel, &kimage.Options{CPU: cpu})
	if err != nil {
		return err
	}
	a, err := o.answers(img, kernel, cpu)
	if err != nil {
		return err
	}
	r, err := a.Compare(img, out)
	if err != nil {
		return err
	}
	r.Kernel, r.CPU, r.Date = release(kernel), cpu, time.Now().UTC().Format(time.DateOnly)
	if o.keep != "" {
		if err := r.Save(o.kept(kernel, cpu, ".json")); err != nil {
			return err
		}
	}
	if n := r.Differences(); n > 0 {
		return fmt.Errorf("%d differences", n)
	}
	return nil
}

// answers boots a kernel and asks it, or reads what it answered before.
func (o *options) answers(img *kimage.Image, kernel, cpu string) (*conformance.Asked, error) {
	if o.again {
		a, err := conformance.LoadAsked(o.kept(kernel, cpu, ".answers"))
		if err != nil {
			err = fmt.Errorf("%w: %w", verb.ErrNotRun, err)
		}
		return a, err
	}
	a, err := o.ask(img, kernel, cpu)
	if err != nil {
		return nil, err
	}
	if o.keep != "" {
		err = a.Save(o.kept(kernel, cpu, ".answers"))
	}
	return a, err
}

// kept is the path of a file in the folder of what is kept.
func (o *options) kept(kernel, cpu, kind string) string {
	return filepath.Join(o.keep, release(kernel)+"@"+cpu+kind)
}

// release is the kernel's name by its file's.
func release(kernel string) string {
	return strings.TrimPrefix(filepath.Base(kernel), "vmlinuz-")
}

// ask boots a kernel on a processor and asks it.
func (o *options) ask(img *kimage.Image, kernel, cpu string) (*conformance.Asked, error) {
	began := time.Now()
	points := conformance.Points(img, o.points, o.seed)
	a := &conformance.Asked{Points: points, Names: conformance.Names(img, points, o.names, o.seed)}
	cpus := 2
	cpu, one := strings.CutSuffix(cpu, ",+up")
	if one {
		cpus = 1
	}
	m := &qemu.Machine{
		QEMU: o.qemu, Kernel: kernel, CPU: cpu, CPUs: cpus, Limit: o.limit,
		Files: map[string][]byte{
			frame.DefinitionsFile: []byte(conformance.Definitions(points) + strings.Join(a.Names, "\n") + "\n"),
		},
	}
	var err error
	if m.Init, err = bounded.ReadFile(o.init, maxFile); err != nil {
		return nil, err
	}
	if o.object != "" {
		if a.Object, err = bounded.ReadFile(o.object, maxFile); err != nil {
			return nil, err
		}
		m.Files[frame.ObjectFile] = a.Object
	}
	b, err := conformance.Ask(m, img, len(points), func(what string) {
		fmt.Printf("%4.0f s  %s on %s: %s\n", time.Since(began).Seconds(), release(kernel), cpu, what)
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", verb.ErrNotRun, err)
	}
	a.Booted = *b
	return a, nil
}

// maxFile bounds the files that go into the machine.
const maxFile = 64 << 20
