package attach

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"kprobelab/internal/script/ways"
	"kprobelab/kimage"
)

// drawer draws commands from what a kernel has.
type drawer struct {
	r *rand.Rand
	// names are functions by what is particular to them.
	names  map[string][]string
	kinds  []string
	traced []string
	events []string
	points []string
	// parameters are the names of a function's.
	parameters func(function string) []string
	// told has each script say what becomes of a probe that is missing: versions have other defaults.
	told bool
}

// deadly begin the names of functions at which a trampoline has hung a kernel: what the
// trampoline itself calls.
var deadly = []string{"rcu_", "__rcu_", "preempt_", "migrate_", "__bpf_", "bpf_", "__this_cpu"}

func newDrawer(img *kimage.Image, seed uint64) *drawer {
	d := &drawer{r: rand.New(rand.NewPCG(seed, 31)), names: map[string][]string{}}
	w := ways.ForBpftrace(img)
	listed := map[string]bool{}
	for _, f := range w.Traced() {
		if !listed[f.Name] {
			listed[f.Name] = true
			d.traced = append(d.traced, f.Name)
		}
	}
	black := map[string]bool{}
	for _, name := range w.Blacklist() {
		black[name] = true
	}
	count := map[string]int{}
	symbols := img.Symbols()
	for i := range symbols {
		count[symbols[i].Name]++
	}
	for i := range symbols {
		s := &symbols[i]
		if !s.IsFunction() {
			continue
		}
		first, _ := img.SymbolAt(s.Addr)
		_, init := img.InInit(s.Addr)
		kind := "untraced"
		switch {
		case black[s.Name]:
			kind = "blacklisted"
		case strings.Contains(s.Name, ".cold"):
			kind = "cold"
		case strings.Contains(s.Name, "."):
			kind = "clone"
		case count[s.Name] > 1:
			kind = "ambiguous"
		case init:
			kind = "freed"
		case first.Addr == s.Addr && first.Name != s.Name:
			kind = "alias"
		case listed[s.Name]:
			kind = "traced"
		}
		d.names[kind] = append(d.names[kind], s.Name)
	}
	for kind := range d.names {
		d.kinds = append(d.kinds, kind)
	}
	slices.Sort(d.kinds)
	for _, e := range img.Events() {
		d.events = append(d.events, e.System+":"+e.Name)
	}
	for _, call := range img.SyscallEvents() {
		d.events = append(d.events, "syscalls:sys_enter_"+call.Name, "syscalls:sys_exit_"+call.Name)
	}
	for _, tp := range img.Tracepoints() {
		d.points = append(d.points, tp.Name)
	}
	d.parameters = func(function string) (names []string) {
		p, _ := img.Types().Proto(function)
		for _, one := range p.Params {
			names = append(names, one.Name)
		}
		return names
	}
	return d
}

func pick[T any](d *drawer, list []T) T { return list[d.r.IntN(len(list))] }

// function draws a function's name of some kind.
func (d *drawer) function() (name, kind string) {
	if d.r.IntN(12) == 0 {
		return pick(d, d.traced) + "_absent", "absent"
	}
	kind = pick(d, d.kinds)
	if d.r.IntN(3) == 0 {
		kind = "traced"
	}
	return pick(d, d.names[kind]), kind
}

// mostFitted bounds how many names a drawn pattern fits: each costs the boot time.
const mostFitted = 12

// pattern makes a pattern of a name that fits few of a list.
func (d *drawer) pattern(name string, all []string) string {
	for range 20 {
		i, j := d.r.IntN(len(name)), d.r.IntN(len(name)+1)
		i, j = min(i, j), max(i, j)
		p := name[:i] + "*" + name[j:]
		switch d.r.IntN(4) {
		case 0:
			p = "*" + name[i:]
		case 1:
			p = name[:max(j, 1)] + "*"
		case 2:
			p = "*" + name[i:j] + "*"
		}
		n := 0
		for _, one := range all {
			if fits(p, one) {
				n++
			}
		}
		if n <= mostFitted && strings.Trim(p, "*") != "" && !strings.Contains(p, ":") {
			return p
		}
	}
	return name + "*"
}

// fits is a pattern's meaning as a shell has it; the drawer only counts with it.
func fits(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if !strings.HasPrefix(name, parts[0]) || !strings.HasSuffix(name, parts[len(parts)-1]) {
		return false
	}
	for _, p := range parts {
		at := strings.Index(name, p)
		if at < 0 {
			return false
		}
		name = name[at+len(p):]
	}
	return true
}

// point draws an attach point; only is its provider, where the block's body asks for one.
func (d *drawer) point() (text, kind string) {
	switch d.r.IntN(12) {
	case 0, 1, 2:
		name, kind := d.function()
		return pick(d, []string{"kprobe:", "k:", "kprobe:vmlinux:", "kretprobe:", "kr:", "kretprobe:vmlinux:"}) + name, "kprobe " + kind
	case 3:
		name, kind := d.function()
		return fmt.Sprintf("kprobe:%s+%s", name, pick(d, []string{"0", "1", "4", "5", "9", "0x10", "17", "40", "100000"})), "offset " + kind
	case 4, 5:
		p := d.pattern(pick(d, d.traced), d.traced)
		return pick(d, []string{"kprobe:", "k:", "kretprobe:", "kprobe:vmlinux:", "kprobe:*:", "kprobe:v*x:", "kprobe:nothere:", "kretprobe:*:"}) + p, "kprobe pattern"
	case 6, 7:
		name, kind := d.function()
		if slices.ContainsFunc(deadly, func(p string) bool { return strings.HasPrefix(name, p) }) {
			name, kind = "vfs_read", "traced"
		}
		return pick(d, []string{"fentry:", "f:", "kfunc:", "fexit:", "fr:", "kretfunc:", "fentry:vmlinux:", "fexit:vmlinux:", "fentry:nothere:"}) + name, "fentry " + kind
	case 8:
		for {
			name := pick(d, d.traced)
			p := d.pattern(name, d.traced)
			if !slices.ContainsFunc(d.traced, func(n string) bool {
				return fits(p, n) && slices.ContainsFunc(deadly, func(p string) bool { return strings.HasPrefix(n, p) })
			}) {
				return pick(d, []string{"fentry:", "fexit:", "fentry:vmlinux:", "f:*:"}) + p, "fentry pattern"
			}
		}
	case 9:
		e := pick(d, d.events)
		system, name, _ := strings.Cut(e, ":")
		switch d.r.IntN(5) {
		case 0:
			return "tracepoint:" + system + ":" + d.pattern(name, d.events), "tracepoint pattern"
		case 1:
			return "t:*:" + d.pattern(name, d.events), "tracepoint pattern"
		case 2:
			return "tracepoint:" + e + "_absent", "tracepoint absent"
		case 3:
			return "tracepoint:" + d.pattern(name, d.events), "tracepoint pattern alone"
		}
		return "tracepoint:" + e, "tracepoint"
	case 10:
		name := pick(d, d.points)
		switch d.r.IntN(4) {
		case 0:
			return "rawtracepoint:" + d.pattern(name, d.points), "rawtracepoint pattern"
		case 1:
			return "rt:" + name + "_absent", "rawtracepoint absent"
		}
		return "rawtracepoint:" + name, "rawtracepoint"
	}
	name, kind := d.function()
	return pick(d, []string{"k*:", "*probe:", "f*:", "r*:", "kprobe:nothere:", "kprobe:vmlinu:", "x*:", "*:"}) + name, "provider " + kind
}

// block draws a block of points with a body.
func (d *drawer) block() (text, kind string) {
	n := pick(d, []int{1, 1, 1, 1, 2, 2, 3})
	var points, kinds []string
	for range n {
		p, k := d.point()
		points, kinds = append(points, p), append(kinds, k)
	}
	if n > 1 && d.r.IntN(12) == 0 {
		points[1] = points[0]
	}
	body := pick(d, []string{"{ }", "{ }", "{ }", "{ print(probe); }", "{ printf(\"%s %d\\n\", comm, pid); }", "{ $x = probe; }"})
	provider, name, _ := strings.Cut(points[0], ":")
	if n == 1 && (provider == "fentry" || provider == "fexit") && !strings.ContainsAny(name, ":*") {
		if names := d.parameters(name); len(names) > 0 && d.r.IntN(2) == 0 && names[0] != "" {
			body = "{ $x = args." + names[0] + "; }"
		}
	}
	return strings.Join(points, pick(d, []string{", ", ","})) + " " + body, strings.Join(kinds, ", ")
}

// command draws a command line, with the text of its file where it has one.
func (d *drawer) command(i int) (c one, script string) {
	if d.r.IntN(10) == 0 {
		p, kind := d.point()
		return one{Args: d.shuffled([][]string{{"-l", p}}, nil), Kind: "list " + kind}, ""
	}
	text, kind := d.block()
	if d.r.IntN(5) == 0 {
		more, k := d.block()
		text, kind = text+"\n"+more, kind+"; "+k
	}
	if d.r.IntN(5) == 0 {
		text = "BEGIN { printf(\"begin\\n\"); }\n" + text
	}
	if d.r.IntN(6) == 0 || d.told {
		text = fmt.Sprintf("config = { missing_probes = \"%s\" }\n", pick(d, []string{"ignore", "error", "warn"})) + text
	}
	options := [][]string{{"--dry-run"}}
	for _, o := range []string{"-q", "--no-warnings", "--unsafe"} {
		if d.r.IntN(6) == 0 {
			options = append(options, []string{o})
		}
	}
	var rest []string
	if before, after, ok := strings.Cut(text, "kprobe:vmlinux:"); ok && d.r.IntN(2) == 0 {
		text, rest, kind = before+"kprobe:$1:"+after, []string{"vmlinux"}, kind+" parameter"
	}
	if d.r.IntN(2) == 0 {
		options = append(options, []string{"-e", text})
		return one{Args: d.shuffled(options, rest), Kind: kind}, ""
	}
	return one{Args: d.shuffled(options, append([]string{fmt.Sprintf("%d.bt", i)}, rest...)), Kind: kind}, text + "\n"
}

// shuffled is a command line: the operands in their order, options anywhere between them,
// sometimes after two dashes.
func (d *drawer) shuffled(options [][]string, operands []string) (args []string) {
	d.r.Shuffle(len(options), func(i, j int) { options[i], options[j] = options[j], options[i] })
	places := make([]int, len(options))
	for i := range places {
		places[i] = d.r.IntN(len(operands) + 1)
	}
	slices.Sort(places)
	for at := 0; at <= len(operands); at++ {
		for i, o := range options {
			if places[i] == at {
				args = append(args, o...)
			}
		}
		if at < len(operands) {
			if !slices.ContainsFunc(places, func(p int) bool { return p > at }) && d.r.IntN(4) == 0 && !slices.Contains(args, "--") {
				args = append(args, "--")
			}
			args = append(args, operands[at])
		}
	}
	return args
}
