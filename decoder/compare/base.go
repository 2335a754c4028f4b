package compare

import (
	"cmp"
	"slices"

	"kprobelab/decoder"
)

// Verdict classifies a change between two versions of a decoder.
type Verdict string

// The verdicts.
const (
	// Better: the old answer differed from ours, the new one does not.
	Better Verdict = "better"
	// Worse: the new answer differs from ours, the old one did not.
	Worse Verdict = "worse"
	// Other: both differ from ours, or neither does.
	Other Verdict = "other"
)

// Change is a kind of difference between an old and a new version: one verdict, one
// opcode, one thing that differs.
type Change struct {
	Verdict Verdict
	// Opcode and What are as in Difference: What differs between old and new, where "accepted" and
	// "refused" are the new one's answer.
	Opcode, What string
	Count        int
	// Example is the first, at At where it came from a file.
	Example        []byte
	At             uint64
	Ours, Old, New Answer
}

// Bytes returns the example without the bytes after it.
func (c *Change) Bytes() []byte {
	n := max(1, c.Ours.Length, c.Old.Length, c.New.Length)
	return c.Example[:min(n, len(c.Example))]
}

// Versions compares two versions of a decoder. Ours is the judge.
type Versions struct {
	Old, New Decoder
	// Asked counts the questions. The new version refuses Refused of them that ours
	// accepts, and accepts Accepted that ours refuses; OldRefused and OldAccepted count
	// the same for the old version.
	Asked, Refused, OldRefused, Accepted, OldAccepted int
	groups                                            map[changeKey]*Change
}

type changeKey struct {
	verdict      Verdict
	opcode, what string
}

// whatChanged names the differences between old and new.
func whatChanged(old, new Answer) string {
	if what := whatDiffers(old, new); what != "" {
		return what
	}
	switch {
	case (old.Class == nil) != (new.Class == nil):
		return "class"
	case old.HasTarget != new.HasTarget:
		return "target"
	}
	return ""
}

// judge classifies a change. A fact that an answer leaves out is no fault of it, unless the other
// answer has it right.
func judge(ours, old, new Answer) Verdict {
	was, is := faults(ours, old), faults(ours, new)
	switch {
	case was < is:
		return Worse
	case was > is:
		return Better
	}
	return Other
}

// textFor returns our text, if one of the two has a text to compare with.
func textFor(q []byte, ours, old, new Answer) string {
	if old.Text+new.Text == "" || ours.Length == 0 {
		return ""
	}
	return decoder.Text(q, 0)
}

// faults ranks an answer compared with ours: 0 for no fault, and more the earlier it is wrong. A
// missing fact counts less than a wrong one.
func faults(ours, theirs Answer) int {
	switch whatDiffers(ours, theirs) {
	case "accepted", "refused":
		return 60
	case "length":
		return 60
	case "class":
		return 50
	case "target":
		return 40
	case "mnemonic":
		return 30
	case "operands":
		return 20
	}
	unsaid := 0
	if ours.Length > 0 {
		if theirs.Class == nil {
			unsaid += 2
		}
		if ours.HasTarget && !theirs.HasTarget {
			unsaid++
		}
	}
	return unsaid
}

// Add compares the answers of one question.
func (v *Versions) Add(q []byte, at uint64, ours, old, new Answer) {
	v.Asked++
	count := func(theirs Answer, refused, accepted *int) {
		switch {
		case ours.Length > 0 && theirs.Length == 0:
			*refused++
		case ours.Length == 0 && theirs.Length > 0:
			*accepted++
		}
	}
	count(old, &v.OldRefused, &v.OldAccepted)
	count(new, &v.Refused, &v.Accepted)
	what := whatChanged(old, new)
	if what == "" {
		return
	}
	ours.Text = textFor(q, ours, old, new)
	k := changeKey{judge(ours, old, new), OpcodeName(q), what}
	c := v.groups[k]
	if c == nil {
		if v.groups == nil {
			v.groups = map[changeKey]*Change{}
		}
		c = &Change{Verdict: k.verdict, Opcode: k.opcode, What: what, Example: slices.Clone(q), At: at, Ours: ours, Old: old, New: new}
		v.groups[k] = c
	}
	c.Count++
}

var verdictOrder = map[Verdict]int{Worse: 0, Better: 1, Other: 2}

// Changes are the differences found: worse, better, other; each by number.
func (v *Versions) Changes() []*Change {
	var list []*Change
	for _, c := range v.groups {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *Change) int {
		return cmp.Or(cmp.Compare(verdictOrder[a.Verdict], verdictOrder[b.Verdict]), -cmp.Compare(a.Count, b.Count),
			cmp.Compare(a.Opcode, b.Opcode), cmp.Compare(a.What, b.What))
	})
	return list
}

// Shrink makes a change's example as short and plain as possible. The verdict, the opcode and the
// kind of the difference stay.
func (v *Versions) Shrink(c *Change) error {
	var ours, old, new [1]Answer
	var failed error
	keeps := func(w []byte) bool {
		q := [][]byte{w}
		Ours(q, ours[:])
		if OpcodeName(w) != c.Opcode || failed != nil {
			return false
		}
		if failed = cmp.Or(v.Old.Ask(q, old[:]), v.New.Ask(q, new[:])); failed != nil {
			return false
		}
		ours[0].Text = textFor(w, ours[0], old[0], new[0])
		return whatChanged(old[0], new[0]) == c.What && judge(ours[0], old[0], new[0]) == c.Verdict
	}
	w := make([]byte, decoder.MaxInsnSize)
	copy(w, c.Example)
	if !keeps(w) {
		return failed
	}
	w = shrinkWindow(w, keeps)
	keeps(w)
	c.Example, c.Ours, c.Old, c.New = w, ours[0], old[0], new[0]
	return failed
}

// ask gives a batch to both versions.
func (v *Versions) ask(b *questions) error {
	w := b.windows[:b.n]
	Ours(w, b.ours[:b.n])
	for len(b.all) < 2 {
		b.all = append(b.all, make([]Answer, cap(b.ours)))
	}
	if err := v.Old.Ask(w, b.all[0][:b.n]); err != nil {
		return err
	}
	if err := v.New.Ask(w, b.all[1][:b.n]); err != nil {
		return err
	}
	for i := range w {
		v.Add(w[i], b.at[i], b.ours[i], b.all[0][i], b.all[1][i])
	}
	return nil
}

// Fuzz compares both versions on count generated encodings, and returns their coverage.
func (v *Versions) Fuzz(seed uint64, count int, progress func(done, total int64)) (*Coverage, error) {
	return fuzz(seed, count, v.ask, progress)
}

// FuzzEnumerated compares both versions on the strings that Enumerate visits.
func (v *Versions) FuzzEnumerated(progress func(done, total int64)) (*Coverage, error) {
	return enumerated(v.ask, progress)
}

// Walk compares both versions on code at addr, as the function Walk does.
func (v *Versions) Walk(code []byte, addr uint64, seen map[string]bool, progress func(done, total int64)) error {
	_, err := walk(code, addr, seen, v.ask, progress)
	return err
}
