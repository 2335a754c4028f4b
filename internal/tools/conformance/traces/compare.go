package traces

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// hostsTask is the process number of init, which does what the host asks for: to it the
// tracing files that the host wrote are system calls like others. supervisor is the name of
// the task that starts a program on a dump; under QEMU init does.
const (
	hostsTask  = "1"
	supervisor = "kprobelab"
)

// starts matches a record of a task that still has init's or the supervisor's name, executes one where it opens a program to execute it
// (__FMODE_EXEC).
var (
	starts   = regexp.MustCompile(`comm="(init|kprobelab)"`)
	executes = regexp.MustCompile(`flags=0x\w*[2367abef]\w$`)
)

// result counts the records of a comparison by its findings.
type result struct {
	// ours and kernels count the compared records of each side, tasks the tasks that made
	// them.
	ours, kernels, tasks int
	// same counts the records that are equal as they are, by the records that a rule made
	// equal, one count per rule.
	same int
	by   []int
	// renumbered: process numbers differ. moved are the records whose place among those
	// of other tasks differs.
	renumbered bool
	moved      int
	// background are the records of tasks of the kernel's own that one side has.
	background int
	// pointers counts the records that differ in the pointers of objects, numbered the records that differ in a process
	// number.
	pointers, numbered int
	// raced are the records of futexes of tasks that had to wait at others.
	raced int
	// different are the differences.
	different []string
}

// program leaves out the host's task, the supervisor, and what their copies do until the program that they execute has its name.
func program(list []record) []record {
	executed, until := map[string]bool{}, map[string]int{}
	for i, r := range list {
		executed[r.pid] = executed[r.pid] || r.event == "filp" && executes.MatchString(r.place)
		if slices.ContainsFunc(r.text, starts.MatchString) {
			until[r.pid] = i + 1
		}
	}
	var kept []record
	for i, r := range list {
		if r.pid != hostsTask && r.comm != supervisor && (!executed[r.pid] || i >= until[r.pid]) {
			kept = append(kept, r)
		}
	}
	return kept
}

// tasksOf are the process numbers of a trace's tasks by a name that does not depend on
// them: how the task was called first, and the how manyth with that name it is.
func tasksOf(list []record) map[string]string {
	pids, seen, count := map[string]string{}, map[string]bool{}, map[string]int{}
	for _, r := range list {
		if !seen[r.pid] {
			seen[r.pid] = true
			count[r.comm]++
			pids[fmt.Sprintf("%s#%d", r.comm, count[r.comm])] = r.pid
		}
	}
	return pids
}

// sequence is a trace by its tasks.
type sequence struct {
	order []string // the task of each record
	all   []record
	by    map[string][]record
}

func sequenceOf(list []record, names map[string]string) *sequence {
	s := &sequence{all: list, by: map[string][]record{}}
	for _, r := range list {
		name := names[r.pid]
		s.order = append(s.order, name)
		s.by[name] = append(s.by[name], r)
	}
	return s
}

// names are names for the tasks of two traces by their process numbers: these, where both
// have the same, in whatever order they come.
func names(a, b []record) (ofA, ofB map[string]string, renumbered bool) {
	as, bs := tasksOf(a), tasksOf(b)
	ofA, ofB = map[string]string{}, map[string]string{}
	for name, pid := range as {
		ofA[pid] = name
		if other, ok := bs[name]; ok && other != pid {
			renumbered = true
		}
	}
	for name, pid := range bs {
		ofB[pid] = name
	}
	if slices.Equal(slices.Sorted(maps.Keys(ofA)), slices.Sorted(maps.Keys(ofB))) {
		return ofB, ofB, false
	}
	return ofA, ofB, renumbered
}

// compare compares two traces: each task's records in their order, and then the order
// of all.
func compare(ours, kernels []record) *result {
	ours, kernels = program(ours), program(kernels)
	ofOurs, ofKernels, renumbered := names(ours, kernels)
	a, b := sequenceOf(ours, ofOurs), sequenceOf(kernels, ofKernels)
	res := &result{ours: len(a.all), kernels: len(b.all), tasks: len(b.by), by: make([]int, len(rules)), renumbered: renumbered}
	for name := range union(a.by, b.by) {
		if (len(a.by[name]) == 0 || len(b.by[name]) == 0) && kernelsOwn(append(slices.Clone(a.by[name]), b.by[name]...)) {
			res.background += len(a.by[name]) + len(b.by[name])
			continue
		}
		res.task(&task{name, a.by[name], b.by[name], ofOurs, ofKernels, newRenaming()})
	}
	slices.Sort(res.different)
	res.moved = len(b.order) - common(a.order, b.order)
	return res
}

func union(a, b map[string][]record) map[string]bool {
	all := map[string]bool{}
	for _, m := range []map[string][]record{a, b} {
		for name := range m {
			all[name] = true
		}
	}
	return all
}

// kernelsOwn reports whether a task has never been in user mode: so say all its stacks.
func kernelsOwn(list []record) bool {
	stacks := 0
	for _, r := range list {
		if !r.isStack() {
			continue
		}
		if len(r.text) == 0 || !strings.HasPrefix(r.text[len(r.text)-1], "ret_from_fork") {
			return false
		}
		stacks++
	}
	return stacks > 0
}

// A task has its records on both sides, and the names of all tasks by their process numbers.
type task struct {
	name              string
	ours, kernels     []record
	ofOurs, ofKernels map[string]string
	pointers          *renaming
}

// task compares the records of one task.
func (res *result) task(t *task) {
	a, b := t.ours, t.kernels
	if !slices.EqualFunc(futexes(a), futexes(b), func(a, b record) bool { return a.String() == b.String() }) {
		n := len(a) + len(b)
		a, b = withoutFutexes(a), withoutFutexes(b)
		res.raced += n - len(a) - len(b)
	}
	if len(a) != len(b) && kernelsOwn(a) && kernelsOwn(b) {
		n := min(len(a), len(b))
		res.background += len(a) + len(b) - 2*n
		a, b = a[:n], b[:n]
	}
	if len(a) != len(b) {
		res.different = append(res.different, fmt.Sprintf("%s: %d records here, %d of the kernel's", t.name, len(a), len(b)))
	}
	for i := range min(len(a), len(b)) {
		if !res.equal(t, a[i], b[i]) {
			res.different = append(res.different, fmt.Sprintf("%s, record %d:\n  here   %s\n  kernel %s", t.name, i+1, a[i], b[i]))
			if len(a) != len(b) {
				return // the rest is shifted
			}
		}
	}
}

// futexes are the records of a task's futexes: which task comes first, and has the others wait, is a matter of time.
func futexes(list []record) []record {
	return slices.DeleteFunc(slices.Clone(list), func(r record) bool { return r.event != "futex" })
}

// withoutFutexes leaves out such records, and their stacks.
func withoutFutexes(list []record) []record {
	futex := false
	return slices.DeleteFunc(slices.Clone(list), func(r record) bool {
		futex = r.event == "futex" || futex && r.isStack()
		return futex
	})
}

// equal reports whether two records are the same, or are so by rules; the last one that
// it took is counted.
func (res *result) equal(t *task, a, b record) bool {
	if a.String() == b.String() {
		t.pointers.note(a)
		res.same++
		return true
	}
	if named(a, t.ofOurs) == named(b, t.ofKernels) {
		res.numbered++
		return true
	}
	for i, r := range rules {
		a, b = r.same(a), r.same(b)
		if a.String() == b.String() {
			res.by[i]++
			return true
		}
	}
	if t.pointers.same(a, b) {
		res.pointers++
		return true
	}
	return false
}

var returned = regexp.MustCompile(`\bret=(\d+)$`)

// named is a record whose process number is replaced by the task's name: do_wait returns one.
func named(r record, names map[string]string) string {
	text := r.String()
	if r.event != "waitr" {
		return text
	}
	return returned.ReplaceAllStringFunc(text, func(s string) string {
		if name, ok := names[strings.TrimPrefix(s, "ret=")]; ok {
			return "ret=" + name
		}
		return s
	})
}

// common is the length of the longest sequence that two have in common.
func common(a, b []string) int {
	n := 0
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b, n = a[1:], b[1:], n+1
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b, n = a[:len(a)-1], b[:len(b)-1], n+1
	}
	row := make([]int, len(b)+1)
	for _, x := range a {
		before := 0 // of the row above, one to the left
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = before + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			before = above
		}
	}
	return n + row[len(b)]
}
