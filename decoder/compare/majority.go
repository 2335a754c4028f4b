package compare

// Majority is the name under which the majority's answer differs: the length
// that two of Zydis, objdump and LLVM have, where all three accept.
const Majority = "majority"

// votes are the lengths of the three for each question of a batch.
type votes struct {
	lengths [][3]uint8
	voters  int
}

var voters = map[string]int{"zydis": 0, "objdump": 1, "llvm": 2}

func (v *votes) reset(n int) {
	if cap(v.lengths) < n {
		v.lengths = make([][3]uint8, n)
	}
	v.lengths, v.voters = v.lengths[:n], 0
	clear(v.lengths)
}

func (v *votes) add(name string, answers []Answer) {
	n, ok := voters[name]
	if !ok {
		return
	}
	v.voters++
	for i := range answers {
		v.lengths[i][n] = uint8(answers[i].Length)
	}
}

// majority is false where one of the three is not there or refuses, and where
// all three differ.
func (v *votes) majority(i int) (int, bool) {
	a, b, c := v.lengths[i][0], v.lengths[i][1], v.lengths[i][2]
	switch {
	case v.voters < len(voters), a == 0 || b == 0 || c == 0:
		return 0, false
	case a == b, a == c:
		return int(a), true
	}
	return int(b), b == c
}
