package selfcheck

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/internal/own"
	"kprobelab/internal/report"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/x86"
)

// check is a function that register_kprobe calls, and the rule of its refusal.
type check struct {
	function string
	rule     rule.ID
	refuses  func(*own.Kernel, x86.Addr) (bool, error)
}

// checks returns the checks that can refuse any address, in the kernel's order. Each
// refuses with EINVAL.
func checks(img *kimage.Image) []check {
	c := &img.Profile().Check
	all := []struct {
		asked bool
		check
	}{
		{true, check{"kernel_text_address", rule.NotText, func(k *own.Kernel, a x86.Addr) (bool, error) {
			text, err := k.KernelText(a)
			return !text, err
		}}},
		{true, check{"within_kprobe_blacklist", rule.Blacklisted, (*own.Kernel).Blacklisted}},
		{c.JumpLabels, check{"jump_label_text_reserved", rule.JumpLabel, func(k *own.Kernel, a x86.Addr) (bool, error) { return k.JumpLabelReserved(a, a) }}},
		{c.StaticCalls, check{"static_call_text_reserved", rule.StaticCall, func(k *own.Kernel, a x86.Addr) (bool, error) { return k.StaticCallReserved(a, a) }}},
		{c.BugTable, check{"find_bug", rule.BugTable, (*own.Kernel).FindBug}},
	}
	var list []check
	for _, one := range all {
		if one.asked {
			list = append(list, one.check)
		}
	}
	return list
}

// Decider lets an image decide about points with its own functions. It is safe for
// concurrent use.
type Decider struct {
	img      *kimage.Image
	checks   []check
	machines chan *own.Kernel

	mu sync.Mutex
	// silent counts the questions without an answer, by function; why is the first
	// reason.
	silent map[string]int
	why    map[string]string
}

// NewDecider opens machines with the image. The error is theirs.
func NewDecider(img *kimage.Image) (*Decider, error) {
	d := &Decider{img: img, checks: checks(img), machines: make(chan *own.Kernel, workers), silent: map[string]int{}, why: map[string]string{}}
	for range workers {
		k, err := own.Open(img, 0)
		if err != nil {
			d.Close()
			return nil, err
		}
		d.machines <- k
	}
	return d, nil
}

// Close ends the machines. Nobody may ask any more.
func (d *Decider) Close() {
	close(d.machines)
	for k := range d.machines {
		k.Close()
	}
}

// At decides one address. ftrace says that the probe would run from the function
// tracer, so that it has no copy.
func (d *Decider) At(a x86.Addr, ftrace bool) (o report.Own) {
	k := <-d.machines
	defer func() { d.machines <- k }()
	o.ErrnoDecided = true
	for _, c := range d.checks {
		refuses, ok := ask(d, c.function, func() (bool, error) { return c.refuses(k, a) })
		switch {
		case !ok:
			o.ErrnoDecided = false
		case refuses:
			o.ErrnoDecided, o.Errno, o.Rule = true, -int(errno.EINVAL), c.rule
			return o
		}
	}
	if ftrace {
		return o
	}
	no, ok := ask(d, "arch_prepare_kprobe", func() (int, error) { return k.Prepare(a) })
	switch {
	case !ok:
		o.ErrnoDecided = false
		return o
	case no != 0:
		o.Errno, o.Rule = no, rule.NotBoundary
		return o
	}
	var code [decoder.MaxInsnSize]byte
	n := d.img.CodeAt(a, code[:])
	if c := d.img.Profile(); !c.Preemption && !c.Slot.LazyBoost { // else nothing is boosted at registration
		o.Boostable, o.BoostableDecided = ask(d, "can_boost", func() (bool, error) { return k.CanBoost(code[:n], a) })
	}
	no, o.OptimizedDecided = ask(d, "arch_prepare_optimized_kprobe", func() (int, error) { return k.PrepareOptimized(a) })
	o.Optimized = no == 0
	return o
}

// ask calls one function of the image; ok is false if there is no answer. A function
// that fails too often is not called again.
func ask[T any](d *Decider, function string, question func() (T, error)) (answer T, ok bool) {
	d.mu.Lock()
	given := d.silent[function] >= tries
	d.mu.Unlock()
	if given {
		return answer, false
	}
	answer, err := question()
	if err == nil {
		return answer, true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.silent[function]++; errors.Is(err, own.ErrNotThere) {
		d.silent[function] = tries
	}
	if d.why[function] == "" {
		d.why[function] = strings.TrimPrefix(err.Error(), function+": ")
	}
	return answer, false
}

// always are the questions that the rules decide for every image.
var always = []string{"ftrace sites and lock prefixes: boot fills their tables", "the symbols of a name, and the rules about modules and neighbours"}

// JoinRest makes one list of the lines of several Rests. Of the lines about a function the first is taken.
func JoinRest(lines []string) []string {
	why := map[string]string{}
	for _, l := range lines {
		if function, _, _ := strings.Cut(l, ": "); !slices.Contains(always, l) && why[function] == "" {
			why[function] = l
		}
	}
	list := slices.Clone(always)
	for _, f := range slices.Sorted(maps.Keys(why)) {
		list = append(list, why[f])
	}
	return list
}

// Rest are the questions that the rules decided, in words, one a line.
func (d *Decider) Rest() []string {
	list := slices.Clone(always)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range slices.Sorted(maps.Keys(d.why)) {
		list = append(list, fmt.Sprintf("%s: %s", f, d.why[f]))
	}
	return list
}
