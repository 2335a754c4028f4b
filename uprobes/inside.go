package uprobes

import "kprobelab/decoder"

// MaxFunction is the maximum number of bytes of a function that Inside needs; code after them is not examined.
const MaxFunction = 1 << 20

// Inside reports whether no instruction begins at an offset of a function's code, and where the one that it is in
// begins and how long it is. The processor's view decides, from the function's first byte on; where that
// meets what is no instruction, nothing is known. A place that a branch of the function leads to is a
// beginning, too: code jumps past a lock prefix so.
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

// branchesTo reports a branch of the function to an offset of it.
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
