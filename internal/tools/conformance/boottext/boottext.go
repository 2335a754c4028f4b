// Package boottext compares the text that is computed for a kernel with the
// text that the kernel had after booting, byte for byte: by kind of patch site,
// and by cause.
//
// It must not know how either text was made.
package boottext

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"kprobelab/kimage"
	"kprobelab/x86"
)

// kinds are the kinds of site with their names, in the order in which a byte
// that lies in several kinds' sites is counted.
var kinds = []struct {
	kind kimage.SiteKind
	name string
}{
	{kimage.SiteStaticCall, "static call"}, {kimage.SiteJumpLabel, "jump label"}, {kimage.SiteFtrace, "ftrace"},
	{kimage.SiteAlternative, "alternative"}, {kimage.SiteParavirt, "paravirt"}, {kimage.SiteReturn, "return"},
	{kimage.SiteRetpoline, "retpoline"}, {kimage.SiteSMPLock, "SMP lock"},
}

const noSite = "no patch site"

// Tally is a comparison.
type Tally struct {
	// Bytes were compared, of which Differ differ.
	Bytes, Differ int
	// Categories are the kinds of site, and what is outside of all.
	Categories []Category
	// Causes counts the bytes that differ for a reason that only a running
	// machine decides.
	Causes map[string]int
	// Unexplained counts the other bytes, Examples are some of them, one a line.
	Unexplained int
	Examples    []string
}

// maxExamples bounds the list of differences.
const maxExamples = 400

// Category is one kind of patch site.
type Category struct {
	Name string
	// Bytes lie in its sites, of which Differ differ.
	Bytes, Differ int
}

// Compare compares the image's text from base on with live. clocks is the state of the machine's clocks, nil if it is not known.
func Compare(img *kimage.Image, base x86.Addr, live []byte, clocks *Clocks) *Tally {
	t := &Tally{Bytes: len(live), Causes: map[string]int{}}
	text := make([]byte, len(live))
	if n := img.CodeAt(base, text); n < len(text) {
		t.Differ, t.Unexplained = len(live), len(live)
		t.Examples = append(t.Examples, fmt.Sprintf("the image's text ends at %s", base.Add(int64(n))))
		return t
	}
	differ := map[string]int{}
	c := newCauses(img)
	c.base, c.live, c.clocks = base, live, clocks
	for i := range text {
		if text[i] == live[i] {
			continue
		}
		addr := base.Add(int64(i))
		category := categoryOf(img, addr)
		t.Differ++
		differ[category]++
		if cause := c.of(addr); cause != "" {
			t.Causes[cause]++
			continue
		}
		t.Unexplained++
		if len(t.Examples) < maxExamples {
			s, _ := img.SymbolAt(addr)
			t.Examples = append(t.Examples, fmt.Sprintf("%s, %s+%#x: %02x, live %02x", category, s.Name, addr.Sub(s.Addr), text[i], live[i]))
		}
	}
	end := base.Add(int64(len(live)))
	for _, k := range kinds {
		cat := Category{Name: k.name, Differ: differ[k.name]}
		for _, s := range img.Sites(k.kind) {
			if s.Addr.In(base, end) {
				cat.Bytes += s.Len
			}
		}
		t.Categories = append(t.Categories, cat)
	}
	t.Categories = append(t.Categories, Category{Name: noSite, Differ: differ[noSite]})
	return t
}

// categoryOf names the kind of patch site that a byte lies in.
func categoryOf(img *kimage.Image, addr x86.Addr) string {
	for _, k := range kinds {
		if _, ok := img.SiteAt(k.kind, addr); ok {
			return k.name
		}
	}
	return noSite
}

// WriteText writes the tally for people.
func (t *Tally) WriteText(w io.Writer) {
	for _, c := range t.Categories {
		if c.Name != noSite {
			fmt.Fprintf(w, "  %-12s %8d bytes in sites, %d differ\n", c.Name, c.Bytes, c.Differ)
		} else if c.Differ > 0 {
			fmt.Fprintf(w, "  %-12s %d bytes differ\n", c.Name, c.Differ)
		}
	}
	names := make([]string, 0, len(t.Causes))
	for name := range t.Causes {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		i := slices.IndexFunc(Causes, func(c struct{ Name, About string }) bool { return c.Name == name })
		fmt.Fprintf(w, "  %d bytes because of %s\n", t.Causes[name], Causes[i].About)
	}
	for _, e := range t.Examples {
		fmt.Fprintf(w, "  without a known cause: %s\n", e)
	}
	if more := t.Unexplained - len(t.Examples); more > 0 {
		fmt.Fprintf(w, "  and %d more bytes\n", more)
	}
	fmt.Fprintf(w, "  %d of %d bytes differ\n", t.Differ, t.Bytes)
}

// causes finds what only a running machine decides.
type causes struct {
	img    *kimage.Image
	labels []kimage.JumpLabel
	// constants are the runtime constants that depend on the machine.
	constants []x86.Addr
	// base, live and clocks are the running machine's.
	base   x86.Addr
	live   []byte
	clocks *Clocks
	hashes hashes
}

// The causes' names.
const (
	causeOnce      = "once"
	causeRandom    = "random"
	causeClock     = "clock"
	causeTimers    = "timers"
	causeConstants = "constants"
	causeUnnamed   = "unnamed"
	causeHashes    = "hashes"
)

// Causes are the reasons for differences that only a running machine decides.
var Causes = []struct{ Name, About string }{
	{causeOnce, "code that runs once (DO_ONCE), which a machine has run or not"},
	{causeConstants, "addresses and sizes of what boot allocates, constants in the text: the dentry hash, from 6.19 on the futex hash and caches of objects"},
	{causeRandom, "randomness that a machine without RDRAND gathers with time"},
	{causeClock, "a clock that the machine, when slow, has found unstable or could not calibrate"},
	{causeTimers, "clocks that never got to their high resolution on this machine"},
	{causeUnnamed, "static keys that boot switches on: without KALLSYMS_ALL an image does not say which they are"},
	{causeHashes, "hashes of indirect calls' types, which each boot of a kernel with FineIBT makes anew: one seed makes all of them"},
}

// keyCauses are the beginnings of names of static keys.
var keyCauses = []struct{ key, cause string }{
	{"___once_key", causeOnce}, {"crng_is_ready", causeRandom}, {"not_filled_random_ptr_key", causeRandom},
	{"__sched_clock_stable", causeClock}, {"clocksource_read_inlined", causeClock}, {"__use_tsc", causeClock},
	{"timers_nohz_active", causeTimers}, {"timers_migration_enabled", causeTimers}, {"hrtimer_highres_enabled_key", causeTimers},
}

func newCauses(img *kimage.Image) *causes {
	c := &causes{img: img, labels: img.JumpLabels(), hashes: newHashes(img)}
	for _, name := range constantTables(img) {
		start, stop := img.Lookup("__start_"+name), img.Lookup("__stop_"+name)
		if len(start) != 1 || len(stop) != 1 {
			continue
		}
		for at := start[0].Addr; at < stop[0].Addr; at += 4 {
			var rel [4]byte
			img.CodeAt(at, rel[:])
			c.constants = append(c.constants, at.Add(int64(int32(binary.LittleEndian.Uint32(rel[:])))))
		}
	}
	return c
}

// constantTables are the tables of runtime constants (runtime-const.h). The one
// that boot does not allocate is where user memory ends.
func constantTables(img *kimage.Image) []string {
	var list []string
	for _, s := range img.Symbols() {
		name, ok := strings.CutPrefix(s.Name, "__start_runtime_")
		if ok && name != "ptr_USER_PTR_MAX" {
			list = append(list, "runtime_"+name)
		}
	}
	return list
}

// constantSize bounds a runtime constant in bytes.
const constantSize = 8

// of is the cause of a difference, "" without a known one.
func (c *causes) of(addr x86.Addr) string {
	for _, at := range c.constants {
		if addr.In(at, at+constantSize) {
			return causeConstants
		}
	}
	if c.hashed(addr) {
		return causeHashes
	}
	i := sort.Search(len(c.labels), func(i int) bool { return c.labels[i].Addr > addr })
	if i == 0 || !addr.In(c.labels[i-1].Addr, c.labels[i-1].Addr.Add(int64(c.labels[i-1].Len))) {
		return ""
	}
	label := &c.labels[i-1]
	key, named := c.img.SymbolAt(label.Key)
	if !named {
		return causeUnnamed
	}
	cause := causeOfKey(key.Name)
	if (cause == causeClock || cause == causeTimers) && !c.shown(label, key.Name, cause) {
		return ""
	}
	return cause
}

// causeOfKey is by which cause a static key is switched, "" for others.
func causeOfKey(name string) string {
	if j := slices.IndexFunc(keyCauses, func(k struct{ key, cause string }) bool { return strings.HasPrefix(name, k.key) }); j >= 0 {
		return keyCauses[j].cause
	}
	return ""
}
