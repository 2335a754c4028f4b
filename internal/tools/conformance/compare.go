package conformance

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/qemu/frame"
	"kprobelab/internal/report"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// Agreement counts the project's answers that are equal to a kernel's, and lists the others.
type Agreement struct {
	// Asked is the number of questions, Same the number of equal answers.
	Asked, Same int
	// Kinds counts the kernel's answers by kind.
	Kinds map[string]int
	// OnlyEvents counts the points that kprobe_events refuses and that register_kprobe
	// would take.
	OnlyEvents int
	// Left counts the points and programs that were not enabled, because they stop the
	// kernel. For such a point only its acceptance is compared, and such a program is left out.
	Left int
	// Differences are the others, one a line.
	Differences []string
}

func (a *Agreement) count(question, got, want string) {
	if a.Kinds == nil {
		a.Kinds = map[string]int{}
	}
	a.Asked++
	a.Kinds[want]++
	if got == want {
		a.Same++
		return
	}
	a.Differences = append(a.Differences, fmt.Sprintf("%s: computed %s, the kernel says %s", question, got, want))
}

// String is the comparison in one line.
func (a *Agreement) String() string {
	var kinds []string
	for k, n := range a.Kinds {
		kinds = append(kinds, fmt.Sprintf("%s %d", k, n))
	}
	sort.Strings(kinds)
	return fmt.Sprintf("%d of %d answers are the same (%.3f %%): %s", a.Same, a.Asked, 100*float64(a.Same)/float64(max(a.Asked, 1)), strings.Join(kinds, ", "))
}

// errnos are the kernel's answers to the definitions, in their order.
func (b *Booted) errnos(want int) ([]int, error) {
	words := strings.Fields(string(b.Frames[frame.Errnos]))
	if len(words) != want {
		return nil, fmt.Errorf("the kernel answered %d of %d definitions", len(words), want)
	}
	list := make([]int, len(words))
	for i, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil {
			return nil, err
		}
		list[i] = n
	}
	return list, nil
}

// computed are check's answers for lines or an object.
func computed(img *kimage.Image, probes []byte) ([]report.CheckRow, error) {
	list, err := report.ReadProbes(bytes.NewReader(probes))
	if err != nil {
		return nil, err
	}
	var c report.Check
	c.Add(report.OfImage(img), list)
	return c.Probes, nil
}

// CompareNames compares the answers for definitions by name, which were
// written after the definitions of the points.
func CompareNames(img *kimage.Image, points int, names []string, b *Booted) (*Agreement, error) {
	rows, err := computed(img, []byte(strings.Join(names, "\n")))
	if err != nil {
		return nil, err
	}
	errnos, err := b.errnos(points + len(names))
	if err != nil {
		return nil, err
	}
	a := &Agreement{}
	for i := range rows {
		a.count(rows[i].Text, answer(rows[i].Cells[0].Errno, "accepted"), answer(errnos[points+i], "accepted"))
	}
	return a, nil
}

// ComparePoints compares the answers for points that were defined by address,
// with names more definitions after them.
func ComparePoints(img *kimage.Image, points []x86.Addr, names int, b *Booted) (*Agreement, error) {
	rows, err := computed(img, []byte(Definitions(points)))
	if err != nil {
		return nil, err
	}
	errnos, err := b.errnos(len(points) + names)
	if err != nil {
		return nil, err
	}
	kprobes, err := parseList(b.Frames[frame.List])
	if err != nil {
		return nil, err
	}
	a := &Agreement{}
	for i, at := range points {
		cell := &rows[i].Cells[0]
		want := answer(errnos[i], "")
		switch {
		case errnos[i] == 0 && slices.Contains(b.Left, pointEvent(i)):
			a.Left++
			a.count(place(img, at), answer(cell.Errno, notEnabled), notEnabled)
			continue
		case errnos[i] == 0:
			want = b.runs(img, kprobes, at)
		case cell.Register == 0:
			a.OnlyEvents++
		}
		a.count(place(img, at), answer(cell.Errno, cell.Runs), want)
	}
	return a, nil
}

// notEnabled is the kind of answer of a point that was taken and not enabled.
const notEnabled = "accepted, not enabled"

// answer is an errno's name, or how an accepted probe runs.
func answer(no int, runs string) string {
	if no != 0 {
		return errno.Errno(-no).Name()
	}
	return runs
}

func place(img *kimage.Image, at x86.Addr) string {
	s, ok := img.SymbolAt(at)
	if !ok {
		return at.String()
	}
	return fmt.Sprintf("%s (%s+%#x)", at, s.Name, at.Sub(s.Addr))
}

// endbr is the size of the ENDBR at an entry, past which a kernel with IBT places the entry's probe.
const endbr = 4

// runs says how the kernel runs a registered probe. It reads the flags of kprobes/list;
// for an optimized probe, it also looks for the jump in the text.
func (b *Booted) runs(img *kimage.Image, l *list, at x86.Addr) string {
	flags, ok := l.flags(img, at)
	if !ok {
		at += endbr
		if flags, ok = l.flags(img, at); !ok {
			return "not in kprobes/list"
		}
	}
	switch {
	case strings.Contains(flags, "[DISABLED]"):
		return "disabled"
	case strings.Contains(flags, "[FTRACE]"):
		return report.RunsFtrace
	case !strings.Contains(flags, optimized):
		return report.RunsInt3
	}
	start := img.Lookup("_stext")
	if off := at.Sub(start[0].Addr); off < 0 || off >= int64(len(b.Settled)) || b.Settled[off] != x86.Jmp32 {
		return "optimized in the list, not in the text"
	}
	return report.RunsOptimized
}

// optimized is the flag of kprobes/list on a probe that is optimized, or queued for it.
const optimized = "[OPTIMIZED]"

// list is kprobes/list: flags by address, and by symbol and offset, for 4.15 to 4.18 do
// not tell addresses.
type list struct {
	byAddr  map[x86.Addr]string
	byPlace map[string]string
}

// hidden is the text that 4.15 to 4.18 may print in place of an address. Else they print a hash of it.
const hidden = "(____ptrval____)"

// parseList reads kprobes/list: address, k or r, place, flags.
func parseList(text []byte) (*list, error) {
	l := &list{map[x86.Addr]string{}, map[string]string{}}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) < 3 {
			return nil, fmt.Errorf("kprobes/list: %q", lines.Text())
		}
		flags := strings.Join(words[3:], " ")
		l.byPlace[words[2]] = flags
		if words[0] == hidden {
			continue
		}
		v, err := strconv.ParseUint(words[0], 16, 64)
		if err != nil {
			return nil, fmt.Errorf("kprobes/list: %q", lines.Text())
		}
		l.byAddr[x86.Addr(v)] = flags
	}
	return l, nil
}

func (l *list) flags(img *kimage.Image, at x86.Addr) (string, bool) {
	if flags, ok := l.byAddr[at]; ok {
		return flags, true
	}
	s, _ := img.SymbolAt(at)
	flags, ok := l.byPlace[fmt.Sprintf("%s+0x%x", s.Name, at.Sub(s.Addr))]
	return flags, ok
}

// perfUnit is the kprobe unit of perf, by which programs are attached: kernels have it from 4.17 on. Without it none is asked about.
const perfUnit = "perf_kprobe"

// CompareObject compares check's answers for a BPF object with what attaching
// its programs returned.
func CompareObject(img *kimage.Image, object []byte, b *Booted) (*Agreement, error) {
	rows, err := computed(img, object)
	if err != nil {
		return nil, err
	}
	said := map[string]string{}
	for line := range strings.Lines(string(b.Frames[frame.Attached])) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) == 3 {
			said[f[0]] = f[1]
		}
	}
	a := &Agreement{}
	if sent, ok := b.Frames[frame.Attached]; ok && len(sent) == 0 && len(img.Lookup(perfUnit)) == 0 {
		return a, nil
	}
	for i := range rows {
		p, cell := &rows[i], &rows[i].Cells[0]
		if slices.Contains(b.Left, p.Program) {
			a.Left++
			continue
		}
		want, ok := said[p.Program]
		if !ok {
			return nil, fmt.Errorf("the kernel did not answer for %s", p.Program)
		}
		no, err := strconv.Atoi(want)
		if err != nil {
			return nil, err
		}
		a.count(p.Text, attached(p.Via, cell.Errno), attached(p.Via, no))
	}
	return a, nil
}

// attached is the errno's name or that it attaches. Of links to many functions
// loaders ask the kernel first whether it has them, so no errno arrives.
func attached(via report.Via, no int) string {
	switch {
	case no == 0:
		return "attached"
	case via == report.ViaMulti:
		return "refused"
	}
	return errno.Errno(-no).Name()
}
