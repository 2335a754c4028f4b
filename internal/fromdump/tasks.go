package fromdump

import (
	"slices"

	"kprobelab/x86"
)

// Tasks are the numbers of a booted kernel's tasks, by the address of their task_struct: the first
// task seen has 0. Numbers of dead tasks are used again.
type Tasks struct {
	number map[x86.Addr]int
	byNum  []x86.Addr // 0: free
}

// Of is the number of a task, which it gets if it has none.
func (t *Tasks) Of(task x86.Addr) int {
	if n, ok := t.number[task]; ok {
		return n
	}
	n := slices.Index(t.byNum, 0)
	if n < 0 {
		n = len(t.byNum)
		t.byNum = append(t.byNum, 0)
	}
	if t.number == nil {
		t.number = map[x86.Addr]int{}
	}
	t.number[task], t.byNum[n] = n, task
	return n
}

// Forget frees the number of a task, if it has one.
func (t *Tasks) Forget(task x86.Addr) (n int, known bool) {
	if n, known = t.number[task]; known {
		delete(t.number, task)
		t.byNum[n] = 0
	}
	return n, known
}

// Clone copies them.
func (t *Tasks) Clone() Tasks {
	c := Tasks{byNum: slices.Clone(t.byNum), number: map[x86.Addr]int{}}
	for n, task := range c.byNum {
		if task != 0 {
			c.number[task] = n
		}
	}
	return c
}

// Struct is the address of a task by its number, 0 where there is none.
func (t *Tasks) Struct(n int) x86.Addr {
	if n < 0 || n >= len(t.byNum) {
		return 0
	}
	return t.byNum[n]
}

// Number is the number of a task by its address, -1 if it has none.
func (t *Tasks) Number(task x86.Addr) int {
	if n, ok := t.number[task]; ok {
		return n
	}
	return -1
}
