package sections

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"kprobelab/internal/report"
	"kprobelab/internal/systemcall"
	"kprobelab/kimage"
)

// kind is a kind of section, how often it is drawn, and what stands after its slash.
type kind struct {
	name   string
	weight int
	place  func(*Drawing) string
}

var kinds = []kind{
	{"kprobe", 10, (*Drawing).point},
	{"kretprobe", 8, (*Drawing).point},
	{"ksyscall", 3, (*Drawing).syscall},
	{"kretsyscall", 2, (*Drawing).syscall},
	{"kprobe.multi", 6, (*Drawing).pattern},
	{"kretprobe.multi", 3, (*Drawing).pattern},
	{"kprobe.session", 3, (*Drawing).pattern},
	{"fentry", 12, (*Drawing).function},
	{"fexit", 12, (*Drawing).function},
	{"fmod_ret", 6, (*Drawing).function},
	{"fentry.s", 6, (*Drawing).function},
	{"fexit.s", 4, (*Drawing).function},
	{"fmod_ret.s", 4, (*Drawing).function},
	{"lsm", 4, (*Drawing).hook},
	{"lsm.s", 4, (*Drawing).hook},
	{"lsm_cgroup", 1, (*Drawing).hook},
	{"iter", 4, (*Drawing).iterator},
	{"iter.s", 3, (*Drawing).iterator},
	{"tp", 3, (*Drawing).event},
	{"tracepoint", 2, (*Drawing).event},
	{"raw_tp", 3, (*Drawing).tracepoint},
	{"raw_tracepoint", 1, (*Drawing).tracepoint},
	{"raw_tp.w", 1, (*Drawing).tracepoint},
	{"tp_btf", 4, (*Drawing).tracepoint},
	{"uprobe", 1, (*Drawing).user},
	{"uretprobe.s", 1, (*Drawing).user},
	{"usdt", 1, (*Drawing).user},
	{"freplace", 1, (*Drawing).function},
	{"perf_event", 1, nil},
	{"syscall", 1, nil},
	{"xdp", 1, nil},
	{"struct_ops", 1, (*Drawing).function},
	{"kprobe.s", 1, (*Drawing).point},
	{"fentry.multi", 1, (*Drawing).pattern},
	{"tracing", 1, (*Drawing).function},
	{"fsession", 1, (*Drawing).function},
}

// Drawing draws of one kernel.
type Drawing struct {
	*rand.Rand
	kernel *report.ImageKernel
	// pools are names by what is particular to them.
	pools [][]string
	// text are the kernel's functions, which a point may be in.
	text   []kimage.Symbol
	points []kimage.Tracepoint
	hooks  []string
	iters  []string
}

// manyWords is one more than the words that a trampoline has taken since it exists.
const manyWords = 7

// New sorts a kernel's functions into pools.
func New(img *kimage.Image, seed uint64) *Drawing {
	d := &Drawing{Rand: rand.New(rand.NewPCG(seed, 0)), kernel: report.OfImage(img)}
	const (
		plain = iota
		untyped
		notrace
		blacklisted
		initText
		variadic
		returnsStruct
		takesStruct
		wide
		stub
		hook
		security
		listed
		clone
		several
		pools
	)
	d.pools = make([][]string, pools)
	put := func(pool int, name string) { d.pools[pool] = append(d.pools[pool], name) }
	for _, s := range img.Symbols() {
		if name, ok := strings.CutPrefix(s.Name, "_eil_addr_"); ok {
			put(listed, name)
		}
		if s.Module != "" || !s.IsFunction() {
			continue
		}
		_, init := img.InInit(s.Addr)
		_, black := img.Blacklisted(s.Addr)
		proto, typed := img.Proto(s.Name)
		params, ret, _ := img.Types().ProtoTypes(s.Name)
		switch {
		case init:
			put(initText, s.Name)
		case black:
			put(blacklisted, s.Name)
		case strings.Contains(s.Name, "."):
			put(clone, s.Name)
		case len(img.Lookup(s.Name)) > 1:
			put(several, s.Name)
		case !d.kernel.Traceable(s.Addr):
			put(notrace, s.Name)
		case !typed:
			put(untyped, s.Name)
		default:
			put(plain, s.Name)
		}
		if img.InText(s.Addr) {
			d.text = append(d.text, s)
		}
		words, composite := 0, false
		for _, p := range params {
			words += max(1, (p.Size()+7)/8)
			composite = composite || p.Composite()
		}
		switch {
		case strings.HasPrefix(s.Name, "bpf_iter_"):
			d.iters = append(d.iters, s.Name)
			put(stub, s.Name)
		case strings.HasPrefix(s.Name, "bpf_lsm_"):
			put(hook, s.Name)
			d.hooks = append(d.hooks, strings.TrimPrefix(s.Name, "bpf_lsm_"))
		case strings.HasPrefix(s.Name, "security_"):
			put(security, s.Name)
		case !typed:
		case proto.Variadic:
			put(variadic, s.Name)
		case ret.Composite():
			put(returnsStruct, s.Name)
		case words >= manyWords:
			put(wide, s.Name)
		case composite:
			put(takesStruct, s.Name)
		}
	}
	programs := img.Programs()
	for _, set := range []string{kimage.SetDenied, kimage.SetNoReturn} {
		put := len(d.pools)
		d.pools = append(d.pools, nil)
		for _, id := range programs.Sets[set] {
			if name, ok := img.Types().FuncName(id); ok {
				d.pools[put] = append(d.pools[put], name)
			}
		}
	}
	var modifiable []string
	for id := range programs.Modifiable {
		if name, ok := img.Types().FuncName(id); ok {
			modifiable = append(modifiable, name)
		}
	}
	slices.Sort(modifiable)
	d.pools = append(d.pools, modifiable)
	d.points = img.Tracepoints()
	return d
}

func pick[T any](d *Drawing, list []T) (one T) {
	if len(list) == 0 {
		return one
	}
	return list[d.IntN(len(list))]
}

// Section draws one.
func (d *Drawing) Section() string {
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	n := d.IntN(total)
	for _, k := range kinds {
		if n -= k.weight; n >= 0 {
			continue
		}
		text := k.name
		if k.place != nil && d.IntN(30) > 0 { // else a section that names no place
			text += "/" + k.place(d)
		}
		if d.IntN(20) == 0 {
			text = "?" + text
		}
		return text
	}
	panic("BUG: a weight is left")
}

// name draws a function: each pool as often as another, and one time in ten a name that is wrong.
func (d *Drawing) name() string {
	name := ""
	for name == "" {
		name = pick(d, d.pools[d.IntN(len(d.pools))])
	}
	switch d.IntN(40) {
	case 0:
		return name + "_absent"
	case 1:
		return strings.ToUpper(name)
	case 2:
		return "ext4:" + name
	case 3:
		return "vmlinux:" + name
	}
	return name
}

func (d *Drawing) function() string { return d.name() }

// point draws a function, or a place in one in one of the ways to write it.
func (d *Drawing) point() string {
	if d.IntN(3) > 0 {
		return d.name()
	}
	s := pick(d, d.text)
	off := uint64(0)
	if s.Size > 0 {
		off = d.Uint64N(min(s.Size, 64))
	}
	switch d.IntN(12) {
	case 0:
		return fmt.Sprintf("%s+%d", s.Name, off)
	case 1:
		return fmt.Sprintf("%s+0%o", s.Name, off)
	case 2:
		return fmt.Sprintf("%s-%#x", s.Name, off)
	case 3:
		return s.Name + "+0x"
	case 4:
		return fmt.Sprintf("%s+%#xzz", s.Name, off)
	case 5:
		return s.Name + "+"
	case 6:
		return s.Name + "+0"
	case 7:
		return fmt.Sprintf("%s + %d", s.Name, off)
	}
	return fmt.Sprintf("%s+%#x", s.Name, off)
}

// pattern draws a name, or a pattern that a few functions match.
func (d *Drawing) pattern() string {
	name := d.name()
	if len(name) < 6 || d.IntN(2) == 0 {
		return name
	}
	cut := len(name) - 1 - d.IntN(3)
	switch d.IntN(6) {
	case 0:
		return name[:cut] + "?" + name[cut+1:]
	case 1:
		return "*" + name[2:]
	case 2:
		return name[:cut-1] + "[a-z]*"
	case 3:
		return name + "*,kfree"
	}
	return name[:cut] + "*"
}

func (d *Drawing) syscall() string {
	s, ok := strings.CutPrefix(pick(d, d.text).Name, systemcall.Wrapped)
	for n := 0; !ok && n < 1<<16; n++ {
		s, ok = strings.CutPrefix(pick(d, d.text).Name, systemcall.Wrapped)
	}
	switch d.IntN(6) {
	case 0:
		return s + "_absent"
	case 1:
		return systemcall.Wrapped + s
	case 2:
		return s + "+0x10"
	}
	return s
}

func (d *Drawing) hook() string {
	if d.IntN(5) == 0 {
		return d.name()
	}
	return pick(d, d.hooks)
}

func (d *Drawing) iterator() string {
	if d.IntN(6) == 0 {
		return d.name()
	}
	return strings.TrimPrefix(pick(d, d.iters), "bpf_iter_")
}

func (d *Drawing) event() string {
	t := pick(d, d.points)
	switch d.IntN(6) {
	case 0:
		return t.Name
	case 1:
		return t.System + "/" + t.Name + "_absent"
	case 2:
		return pick(d, d.points).System + "/" + t.Name
	}
	return t.System + "/" + t.Name
}

func (d *Drawing) tracepoint() string {
	t := pick(d, d.points)
	switch d.IntN(6) {
	case 0:
		return t.Name + "_absent"
	case 1:
		return t.System + "/" + t.Name
	case 2:
		return d.name()
	}
	return t.Name
}

func (d *Drawing) user() string { return "/bin/busybox:main" }
