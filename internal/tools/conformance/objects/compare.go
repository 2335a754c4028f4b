package objects

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/report"
	"kprobelab/internal/tools/conformance/sections"
	"kprobelab/internal/tools/conformance/verb"
	"kprobelab/kimage"
)

// answersFile is the file with the output of all.sh: for each object a line "=== NAME", the
// output of bpftool, and a line "ended with CODE".
const answersFile = "answers"

// outcome is the result of loading and attaching an object.
type outcome struct {
	// attached: it was loaded, and its program attached.
	attached bool
	// unplaced: it was loaded, and nothing said where to attach.
	unplaced bool
	// errno is the reason why the object was not loaded or attached, 0 if bpftool does not print it.
	errno errno.Errno
	// said holds the lines that bpftool printed.
	said []string
}

// String is the outcome in a word or two.
func (o *outcome) String() string {
	switch {
	case o.attached:
		return "attaches"
	case o.unplaced:
		return "loads, with no place"
	case o.errno == 0:
		return "refused"
	}
	return o.errno.Name()
}

var (
	ends = regexp.MustCompile(`^ended with (\d+)$`)
	// The error is at a line's end: a number, a name, or the C library's words.
	failedNumber = regexp.MustCompile(`^libbpf: .*: -(\d+)$`)
	failedName   = regexp.MustCompile(`^libbpf: .*: -(E[A-Z]+)$`)
	failedWords  = regexp.MustCompile(`^libbpf: prog '[^']*': failed to .*: ([A-Z][a-z][^:]*)$`)
	failedOther  = regexp.MustCompile(`(?:ERROR: strerror_r\(-?|unknown error \(-)(\d+)\)`)
)

// fallsBack begins what bpftool says where a program does not attach.
const fallsBack = "does not support autoattach, falling back to pinning"

// readOutcome reads what bpftool printed of one object.
func readOutcome(lines []string) (o outcome, err error) {
	code := -1
	back := false
	for _, line := range lines {
		if m := ends.FindStringSubmatch(line); m != nil {
			code, _ = strconv.Atoi(m[1])
			continue
		}
		o.said = append(o.said, line)
		back = back || strings.Contains(line, fallsBack)
		switch {
		case o.errno != 0:
		case failedNumber.MatchString(line):
			n, _ := strconv.Atoi(failedNumber.FindStringSubmatch(line)[1])
			o.errno = errno.Errno(n)
		case failedName.MatchString(line):
			o.errno = byName(failedName.FindStringSubmatch(line)[1])
		case failedOther.MatchString(line):
			n, _ := strconv.Atoi(failedOther.FindStringSubmatch(line)[1])
			o.errno = errno.Errno(n)
		case failedWords.MatchString(line):
			o.errno = byText(failedWords.FindStringSubmatch(line)[1])
		}
	}
	switch {
	case code < 0:
		return o, fmt.Errorf("bpftool did not end: %q", lines)
	case code == 0 && !back:
		o.attached = true
	case back && o.errno == 0 && !slices.ContainsFunc(o.said, func(line string) bool { return strings.HasPrefix(line, "libbpf:") }):
		o.unplaced = true
	}
	return o, nil
}

const mostErrno = 4096

func byName(name string) errno.Errno {
	for n := errno.Errno(1); n < mostErrno; n++ {
		if n.Name() == name {
			return n
		}
	}
	return 0
}

// byText finds an error by the C library's words for it.
func byText(text string) errno.Errno {
	for n := errno.Errno(1); n < mostErrno; n++ {
		if strings.EqualFold(n.Error(), text) {
			return n
		}
	}
	return 0
}

func compareFiles(args []string) error {
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	kernel := f.String("kernel", "", "the kernel that was asked")
	show := f.Bool("v", false, "print every answer")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 1 {
		return flag.ErrHelp
	}
	img, err := kimage.Open(*kernel, nil)
	if err != nil {
		return err
	}
	list, err := os.ReadFile(filepath.Join(f.Arg(0), listFile))
	if err != nil {
		return err
	}
	names := strings.Split(strings.TrimSpace(string(list)), "\n")
	outcomes, err := readAnswers(filepath.Join(f.Arg(0), answersFile))
	if err != nil {
		return err
	}
	if len(outcomes) != len(names) {
		return fmt.Errorf("%d of %d objects were answered", len(outcomes), len(names))
	}
	t := tally{caused: map[string]int{}}
	k := report.OfImage(img)
	for i, section := range names {
		cell, err := check(k, section)
		if err != nil {
			return err
		}
		t.add(section, cell, &outcomes[i], *show)
	}
	return t.end()
}

// readAnswers reads the outcomes in the order of the objects.
func readAnswers(name string) (list []outcome, err error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var lines []string
	begun := false
	flush := func() error {
		if begun {
			o, err := readOutcome(lines)
			if err != nil {
				return err
			}
			list = append(list, o)
		}
		lines = nil
		return nil
	}
	in := bufio.NewScanner(bytes.NewReader(b))
	for in.Scan() {
		if strings.HasPrefix(in.Text(), "=== ") {
			if err := flush(); err != nil {
				return nil, err
			}
			begun = true
			continue
		}
		lines = append(lines, in.Text())
	}
	if err := flush(); err != nil {
		return nil, err
	}
	return list, in.Err()
}

// check returns the result of report.Check for an object with that section.
func check(k report.Kernel, section string) (*report.CheckCell, error) {
	probes, err := report.ReadProbes(bytes.NewReader(sections.Object(section)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", section, err)
	}
	var c report.Check
	c.Add(k, probes)
	return &c.Probes[0].Cells[0], nil
}

// tally counts what is the same.
type tally struct {
	same, differ int
	caused       map[string]int
}

func (t *tally) add(section string, cell *report.CheckCell, o *outcome, show bool) {
	ours := "attaches"
	if !cell.Attaches {
		ours = errno.Errno(-cell.Errno).Name()
	}
	if cell.NotAsked {
		ours = "not asked"
	}
	if show {
		fmt.Printf("%-50s %-12s %-12s %s\n", section, o, ours, cell.Reason)
	}
	switch {
	case cell.NotAsked:
		t.caused["not asked: "+cell.Detail]++
	case cell.Attaches == o.attached && (o.attached || o.errno == 0 || int(o.errno) == -cell.Errno):
		t.same++
	default:
		t.differ++
		fmt.Printf("DIFFERS %s: bpftool %s; check %s %s (%s)\n", section, o, ours, cell.Reason, cell.Detail)
		for _, line := range o.said {
			fmt.Println("        " + line)
		}
	}
}

func (t *tally) end() error {
	fmt.Printf("%d the same, %d differ", t.same, t.differ)
	for why, n := range t.caused {
		fmt.Printf("; %d %s", n, why)
	}
	fmt.Println()
	if t.differ > 0 {
		return verb.ErrDiffer
	}
	return nil
}
