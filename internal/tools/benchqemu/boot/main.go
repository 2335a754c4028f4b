// Command boot boots a kernel under QEMU, lets its module measure what a hit
// costs there, and prints the figures in the form that kprobelab bench
// --against reads; scripts/bench-qemu.sh gives it what it needs.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"kprobelab/internal/qemu"
	"kprobelab/internal/qemu/frame"
	"kprobelab/kimage"
)

func main() {
	log.SetFlags(0)
	var init, module string
	var rounds, calls int
	m := &qemu.Machine{KASLR: true, Files: map[string][]byte{}}
	flag.StringVar(&m.QEMU, "qemu", "qemu-system-x86_64", "the program that starts QEMU")
	flag.StringVar(&init, "init", "", "the init program")
	flag.StringVar(&module, "module", "", "the kernel module that measures, built for this kernel")
	flag.StringVar(&m.CPU, "cpu", kimage.DefaultCPU, "the CPU model")
	flag.IntVar(&m.CPUs, "cpus", 1, "how many CPUs")
	flag.BoolVar(&m.Parallel, "parallel", false, "a thread for each CPU, which QEMU does when it is not told")
	flag.IntVar(&rounds, "rounds", 15, "how often every path is measured")
	flag.IntVar(&calls, "calls", 500, "how many calls a loop makes")
	flag.DurationVar(&m.Limit, "limit", 10*time.Minute, "how long the machine may run")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("boot: one kernel image")
	}
	m.Kernel = flag.Arg(0)
	m.Arguments = []string{strconv.Itoa(rounds), strconv.Itoa(calls)}
	var err, err2 error
	m.Init, err = os.ReadFile(init)
	m.Files[frame.ModuleFile], err2 = os.ReadFile(module)
	if err := errors.Join(err, err2); err != nil {
		log.Fatal(err)
	}
	figures, err := measure(m)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("machine cpu=%q cpus=%d parallel=%t qemu=%q\n%s", m.CPU, m.CPUs, m.Parallel, version(m.QEMU), figures)
}

// measure waits for the figures and reports each round on standard error.
func measure(m *qemu.Machine) (figures []byte, err error) {
	began, round := time.Now(), 0
	err = m.Boot(func(r *qemu.Running) error {
		for {
			name, data, err := r.Frame()
			if err != nil {
				return err
			}
			switch name {
			case frame.Round:
				round++
				log.Printf("  %4.0f s  round %d of %s", time.Since(began).Seconds(), round, m.Arguments[0])
			case frame.Measured:
				figures = data
			case frame.Failed:
				return errors.New("init: " + string(data))
			case frame.Done:
				return nil
			}
		}
	})
	return figures, err
}

// version is the version that QEMU prints, "" where it prints none.
func version(qemu string) string {
	out, _ := exec.Command(qemu, "--version").Output()
	_, rest, _ := strings.Cut(string(out), "version ")
	number, _, _ := strings.Cut(rest, "\n")
	return number
}
