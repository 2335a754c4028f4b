package traces

import "regexp"

// A renaming has the pointers of a task's records here by those of the kernel's. What is allocated after the dump was
// made is elsewhere: the real kernel allocates for the events that the host defines, and it gives back memory after a
// grace period, which has more time to end there. An object has one address on each side while it lives.
type renaming struct {
	to, from map[string]string
	// ended are pairs that another one has replaced: the memory was given to another object.
	ended map[[2]string]bool
}

func newRenaming() *renaming {
	return &renaming{map[string]string{}, map[string]string{}, map[[2]string]bool{}}
}

var pointer = regexp.MustCompile(`\b0xffff[0-9a-f]{12}\b`)

// same reports whether two records differ in pointers only, of which each names on both sides the same object.
func (n *renaming) same(a, b record) bool {
	if a.replaced(pointer, "POINTER").String() != b.replaced(pointer, "POINTER").String() {
		return false
	}
	as, bs := pointer.FindAllString(a.String(), -1), pointer.FindAllString(b.String(), -1)
	for i := range as {
		if !n.pair(as[i], bs[i]) {
			return false
		}
	}
	return true
}

// note keeps the pointers of two records that are equal.
func (n *renaming) note(r record) {
	for _, p := range pointer.FindAllString(r.String(), -1) {
		n.pair(p, p)
	}
}

// pair says that two pointers name one object. One that named another object before cannot do so again: that one
// has ended.
func (n *renaming) pair(a, b string) bool {
	if n.to[a] == b {
		return true
	}
	if n.ended[[2]string{a, b}] {
		return false
	}
	if old, ok := n.to[a]; ok {
		n.ended[[2]string{a, old}] = true
		delete(n.from, old)
	}
	if old, ok := n.from[b]; ok {
		n.ended[[2]string{old, b}] = true
		delete(n.to, old)
	}
	n.to[a], n.from[b] = b, a
	return true
}
