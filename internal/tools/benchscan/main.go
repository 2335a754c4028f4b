// Command benchscan times the scan of a whole kernel image, from opening the file
// to the last verdict, and objdump's disassembly of the same text. Each runs as a
// process of its own, in turns. It prints both times.
//
// benchscan PROGRAM IMAGE: the kprobelab to time, and a vmlinuz or vmlinux.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"time"

	"kprobelab/kimage"
)

// rounds is the number of runs of each program; the median counts.
const rounds = 5

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "benchscan: give a kprobelab program and a kernel image")
		os.Exit(2)
	}
	if err := bench(os.Stdout, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "benchscan:", err)
		os.Exit(1)
	}
}

func bench(w io.Writer, program, image string) error {
	objdump, err := exec.LookPath("objdump")
	if err != nil {
		return errors.New("there is no objdump to compare with (Debian: apt install binutils)")
	}
	dir, err := os.MkdirTemp("", "benchscan-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	text := filepath.Join(dir, "text")
	start, size, err := writeText(image, text)
	if err != nil {
		return err
	}
	scan, list := command{program, []string{"scan", image}}, command{objdump, []string{
		"-D", "-b", "binary", "-m", "i386:x86-64", fmt.Sprintf("--adjust-vma=%#x", start), text,
	}}
	var ours, theirs []run
	for range rounds {
		for _, r := range []struct {
			c  command
			to *[]run
		}{{scan, &ours}, {list, &theirs}} {
			one, err := r.c.run(dir)
			if err != nil {
				return err
			}
			*r.to = append(*r.to, one)
		}
	}
	points, err := scanned(filepath.Join(dir, filepath.Base(program)+".out"))
	if err != nil {
		return err
	}
	print(w, size, points, median(ours), median(theirs))
	return nil
}

// writeText writes the image's text, _stext to the end of its section, as
// objdump gets it: flat, so that it has no symbols to look up.
func writeText(image, to string) (start uint64, size int, err error) {
	img, err := kimage.Open(image, &kimage.Options{NoBoot: true})
	if err != nil {
		return 0, 0, err
	}
	for _, s := range img.Sections() {
		if s.Exec && s.Alloc && len(s.Data) > size {
			start, size = uint64(s.Addr), len(s.Data)
			err = os.WriteFile(to, s.Data, 0o600)
		}
	}
	if size == 0 {
		return 0, 0, fmt.Errorf("%s has no text", image)
	}
	return start, size, err
}

// command is a program whose output goes to a file.
type command struct {
	name string
	args []string
}

// run is the real time and the processor's time of one run of a command.
type run struct{ wall, cpu time.Duration }

func (c command) run(dir string) (run, error) {
	out, err := os.Create(filepath.Join(dir, filepath.Base(c.name)+".out"))
	if err != nil {
		return run{}, err
	}
	defer out.Close()
	p := exec.Command(c.name, c.args...)
	p.Stdout, p.Stderr = out, os.Stderr
	began := time.Now()
	if err := p.Run(); err != nil {
		return run{}, fmt.Errorf("%s: %w", c.name, err)
	}
	s := p.ProcessState
	return run{time.Since(began), s.UserTime() + s.SystemTime()}, out.Close()
}

func median(list []run) run {
	slices.SortFunc(list, func(a, b run) int { return int(a.wall - b.wall) })
	return list[len(list)/2]
}

var inAll = regexp.MustCompile(`(?m)^ *(\d+)  in all$`)

// scanned is the number of points that the scan gave a verdict for.
func scanned(file string) (int, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	m := inAll.FindSubmatch(b)
	if m == nil {
		return 0, errors.New("the scan printed no totals")
	}
	return strconv.Atoi(string(m[1]))
}

func print(w io.Writer, size, points int, ours, theirs run) {
	fmt.Fprintf(w, "%d bytes of text, %d instruction boundaries, %d processors, median of %d runs\n",
		size, points, runtime.NumCPU(), rounds)
	fmt.Fprintf(w, "%-16s %8.2f s wall, %6.2f s of processor time, %5.0f ns a boundary\n", "kprobelab scan",
		ours.wall.Seconds(), ours.cpu.Seconds(), float64(ours.wall.Nanoseconds())/float64(points))
	fmt.Fprintf(w, "%-16s %8.2f s wall, %6.2f s of processor time\n", "objdump", theirs.wall.Seconds(), theirs.cpu.Seconds())
	fmt.Fprintf(w, "%-16s %8.2f of objdump's wall time\n", "scan takes", ours.wall.Seconds()/theirs.wall.Seconds())
}
