// Package forms boots kernels, saves each machine in every form that QEMU and makedumpfile
// write, and has kprobelab open it: info, explain, run, run --as and exec have to say
// what they say of the dump that boot writes, or end with one sentence. It prints a row a
// form, and ends with 1 where one is neither.
package forms

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kprobelab/boot"
	"kprobelab/booted"
	"kprobelab/internal/tools/conformance/verb"
	"kprobelab/kimage/vmcore"
)

type options struct {
	lab, qemu, makedumpfile, busybox, work string
	kaslr                                  bool
	cpus                                   int
	limit                                  time.Duration
}

// Run runs the verb forms.
func Run(args []string) error {
	f := flag.NewFlagSet("forms", flag.ExitOnError)
	var o options
	f.StringVar(&o.lab, "lab", "bin/kprobelab", "the program kprobelab")
	f.StringVar(&o.qemu, "qemu", "qemu-system-x86_64", "the program that starts QEMU")
	f.StringVar(&o.makedumpfile, "makedumpfile", "makedumpfile", "the program makedumpfile")
	f.StringVar(&o.busybox, "busybox", "", "busybox, the program that --as is and exec runs")
	f.StringVar(&o.work, "work", "", "a folder with room for twice the machine's memory")
	f.BoolVar(&o.kaslr, "kaslr", false, "let the kernel choose where it is")
	f.IntVar(&o.cpus, "cpus", 1, "how many processors there are")
	f.DurationVar(&o.limit, "limit", 10*time.Minute, "how long a kernel may run")
	if err := f.Parse(args); err != nil {
		return err
	}
	bad := false
	for _, kernel := range f.Args() {
		if err := o.one(kernel); err != nil {
			fmt.Printf("%s: %v\n", kernel, err)
			bad = true
		}
	}
	return verb.Differ(bad, nil)
}

func (o *options) one(path string) error {
	kernel, err := boot.Open(path, nil)
	if err != nil {
		return err
	}
	b := &boot.Options{
		QEMU: o.qemu, Kernel: kernel, KASLR: o.kaslr, CPU: "qemu64", CPUs: o.cpus, Megabytes: 128, Append: "nopti", Limit: o.limit,
	}
	if b.Files, err = boot.Files(o.busybox, "/bin/busybox"); err != nil {
		return err
	}
	b.Files = append(b.Files, boot.Regular("/etc/hostname", 0o644, []byte("kprobelab\n")))
	return boot.Boot(context.Background(), b, func(g *boot.Guest) error {
		if err := g.Start(&booted.Program{Args: []string{"/bin/busybox", "sleep", "1000000"}}); err != nil {
			return err
		}
		fmt.Printf("%s, %d CPUs, moved by %#x\n", kernel.Release, o.cpus, g.Slide)
		return o.forms(g)
	})
}

// form is a dump, or why there is none.
type form struct {
	name string
	make func(file string) error
}

// made lists the dumps that makedumpfile makes, by its flags (how) from one of two dumps (of): packed in each of its
// ways, with level 1 (without zero pages) and 31 (also without caches, programs' pages and free pages), as ELF, and flat.
var made = []struct{ how, of string }{
	{"-c", "boot's"}, {"-l", "boot's"}, {"-p", "boot's"}, {"-z", "boot's"},
	{"-c -d 1", "boot's"}, {"-l -d 31", "boot's"}, {"-z -d 31", "boot's"},
	{"-E", "boot's"}, {"-E -d 1", "boot's"}, {"-E -d 31", "boot's"},
	{"-F -c", "boot's"}, {"-F -z -d 31", "boot's"}, {"-F -E", "boot's"},
	{"-c", "QEMU's -p"}, {"-E", "QEMU's -p"},
}

// forms are opened one after the other: only what others are made from stays.
func (o *options) forms(g *boot.Guest) error {
	own := filepath.Join(o.work, "own")
	paged := filepath.Join(o.work, "paged")
	defer os.Remove(own)
	defer os.Remove(paged)
	if _, err := g.Save(&boot.Dump{File: own, Format: boot.ELF}); err != nil {
		return err
	}
	if err := g.SaveByQEMU(paged, true, ""); err != nil {
		return err
	}
	formats, err := g.QEMUFormats()
	if err != nil {
		return err
	}
	byQEMU := func(paging bool, format string) func(string) error {
		return func(file string) error { return g.SaveByQEMU(file, paging, format) }
	}
	list := []form{{"dump-guest-memory", byQEMU(false, "")}, {"dump-guest-memory -p", byQEMU(true, "")}}
	for _, f := range formats {
		if strings.HasPrefix(f, "kdump-") {
			list = append(list, form{f, byQEMU(false, f)})
		}
	}
	for _, m := range made {
		from := map[string]string{"boot's": own, "QEMU's -p": paged}[m.of]
		list = append(list, form{"makedumpfile " + m.how + " of " + m.of, func(file string) error { return o.filter(m.how, from, file) }})
	}
	want := o.asked(own)
	fmt.Println("| form | MB | pages | " + strings.Join(names(), " | ") + " |")
	bad := 0
	for _, f := range list {
		file := filepath.Join(o.work, "form")
		err := f.make(file)
		row := []string{f.name}
		if err != nil {
			row = append(row, "none: "+firstLine(err.Error()))
		} else {
			pages, ok := beside(own, file)
			if !ok {
				bad++
			}
			row = append(row, size(file), pages)
			for i, got := range o.asked(file) {
				verdict, ok := got.beside(want[i])
				if !ok {
					bad++
				}
				row = append(row, verdict)
			}
		}
		os.Remove(file)
		fmt.Println("| " + strings.Join(row, " | ") + " |")
	}
	if bad > 0 {
		return fmt.Errorf("%d answers are neither the same nor a sentence", bad)
	}
	return nil
}

// filter has makedumpfile write a form of a dump; flat (-F) is to its standard output.
func (o *options) filter(how, from, to string) (err error) {
	c := exec.Command(o.makedumpfile, append(strings.Fields(how), from, to)...)
	var text strings.Builder
	c.Stdout, c.Stderr = &text, &text
	if strings.Contains(how, "-F") {
		out, err := os.Create(to)
		if err != nil {
			return err
		}
		defer out.Close()
		c.Args, c.Stdout = c.Args[:len(c.Args)-1], out
	}
	if err := c.Run(); err != nil {
		return errors.Join(errors.New(lastReason(text.String())), os.Remove(to))
	}
	return nil
}

// beside compares the machine's memory in two dumps, page by page.
func beside(own, file string) (verdict string, ok bool) {
	want, err := vmcore.Open(own)
	if err != nil {
		return err.Error(), false
	}
	defer want.Close()
	got, err := vmcore.Open(file)
	if err != nil {
		return err.Error(), false
	}
	defer got.Close()
	var same, left, absent, differ int
	a, b := make([]byte, vmcore.PageSize), make([]byte, vmcore.PageSize)
	for _, r := range want.RAM() {
		for phys := r.Phys; phys < r.End(); phys += vmcore.PageSize {
			var filtered *vmcore.FilteredError
			var none *vmcore.AbsentError
			err := errors.Join(want.ReadPhys(phys, a), got.ReadPhys(phys, b))
			switch {
			case errors.As(err, &filtered):
				left++
			case errors.As(err, &none):
				absent++
			case err == nil && bytes.Equal(a, b):
				same++
			default:
				differ++
			}
		}
	}
	return fmt.Sprintf("%d the same, %d left out, %d not mapped by a kernel, %d differ", same, left, absent, differ), differ == 0
}

// question is a command on a dump. common returns true for a line of its output that does not depend on the form.
type question struct {
	name   string
	args   []string
	common func(string) bool
}

var questions = []question{
	{"info", []string{"info", "DUMP"}, func(line string) bool {
		return slices.ContainsFunc([]string{"release", "text", "symbols", "tasks", "kaslr"}, func(s string) bool {
			return strings.HasPrefix(strings.TrimSpace(line), s+" ")
		})
	}},
	{"explain", []string{"explain", "DUMP", "vfs_read"}, func(line string) bool { return !strings.Contains(line, "profile") }},
	{"run", []string{"run", "DUMP", "--kprobe", "vfs_read", "--call", `openat(AT_FDCWD, "/etc/hostname", O_RDONLY)`, "--call", "read(3, buf[16], 16)"}, every},
	{"--as", []string{"run", "DUMP", "--as", "busybox", "--call", "getppid()"}, every},
	{"exec", []string{"exec", "--kernel", "DUMP", "/bin/busybox", "cat", "/etc/hostname"}, every},
}

func every(string) bool { return true }

func names() (list []string) {
	for _, q := range questions {
		list = append(list, q.name)
	}
	return list
}

// answer is the exit code and the output of a command on a dump.
type answer struct {
	code     int
	out, err string
}

func (o *options) asked(file string) (list []answer) {
	for _, q := range questions {
		args := slices.Clone(q.args)
		args[slices.Index(args, "DUMP")] = file
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		c := exec.CommandContext(ctx, o.lab, args...)
		var out, err strings.Builder
		c.Stdout, c.Stderr = &out, &err
		_ = c.Run() // its exit code says it
		cancel()
		var kept []string
		for line := range strings.Lines(out.String()) {
			if q.common(line) {
				kept = append(kept, strings.ReplaceAll(line, file, "DUMP"))
			}
		}
		list = append(list, answer{c.ProcessState.ExitCode(), strings.Join(kept, ""), strings.TrimSpace(strings.ReplaceAll(err.String(), file, "DUMP"))})
	}
	return list
}

// beside compares an answer with the answer for boot's own dump.
func (a answer) beside(want answer) (verdict string, ok bool) {
	switch {
	case a.code == want.code && a.out == want.out:
		return "the same", true
	case a.code > 0 && strings.Contains(a.err, "goroutine "), a.code < 0, a.code == 0, a.err == "":
		return fmt.Sprintf("DIFFERS (%d): %s", a.code, firstDifference(a.out, want.out)), false
	}
	return "sentence: " + lastReason(a.err), true
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range x {
		if i >= len(y) || x[i] != y[i] {
			other := "nothing"
			if i < len(y) {
				other = y[i]
			}
			return fmt.Sprintf("%q, not %q", x[i], other)
		}
	}
	return fmt.Sprintf("it ends after %d of %d lines", len(x), len(y))
}

func firstLine(s string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return first
}

// lastReason is the last line that says something: what ends a program is said last.
func lastReason(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(lines[i]); line != "" && line != "makedumpfile Failed." {
			return line
		}
	}
	return s
}

func size(file string) string {
	info, err := os.Stat(file)
	if err != nil {
		return "?"
	}
	return fmt.Sprintf("%.1f", float64(info.Size())/1e6)
}
