package uprobes

import "kprobelab/decoder"

// MaxFunction is the maximum number of bytes of a function that Inside needs; code after them is not examined.
const MaxFunction = 1 << 20

// Inside reports whether no instruction begins at an offset of a function's code, and returns the
// start and length of the instruction around it. The processor's view decides, from the function's
// first byte on; after bytes that are no instruction, nothing is known. A place that a branch of
// the function leads to is a start, too: code jumps past a lock prefix in this way.
func Inside(function []byte, offset int) (begin, length int, inside bool) {
	if offset < 0 || offset >= len(function) {
		return 0, 0, false
	}
	for begin < offset {
		i, err := decoder.Decode(function[begin:])
		if err != nil {
			return 0, 0, false
		}
		if length = i.Length; begin+length > offset {
			return begin, length, !branchesTo(function, offset)
		}
		begin += length
	}
	return 0, 0, false
}

// branchesTo reports whether the function has a branch to an offset of it.
func branchesTo(function []byte, offset int) bool {
	for at := 0; at < len(function); {
		i, err := decoder.Decode(function[at:])
		if err != nil {
			return false
		}
		at += i.Length
		if i.HasTarget && int64(at)+i.Rel == int64(offset) {
			return true
		}
	}
	return false
}
