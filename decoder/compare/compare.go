package compare

import (
	"cmp"
	"fmt"
	"slices"

	"kprobelab/decoder"
)

// Difference is a kind of disagreement: one decoder, one opcode, one thing
// that differs.
type Difference struct {
	Decoder string
	// Opcode names the encoding and opcode, "vex0f38 5c tdpfp16ps".
	Opcode string
	// What differs: "length", "class", "target", "mnemonic", "operands",
	// "accepted" (they, and we do not), "refused" (they, and we do not).
	What string
	// Cause is a known one's name, or "".
	Cause string
	Count int
	// Example is the first, at At where it came from a file.
	Example []byte
	At      uint64
	Ours    Answer
	Theirs  Answer
}

// Bytes returns the example without the bytes after it.
func (d *Difference) Bytes() []byte {
	n := max(1, d.Ours.Length, d.Theirs.Length)
	if d.Ours.Length == 0 && d.Theirs.Length == 0 {
		n = len(d.Example)
	}
	return d.Example[:min(n, len(d.Example))]
}

// Comparison collects differences between our decoder and others.
type Comparison struct {
	// Instructions counts the questions; our decoder accepts Accepted of them as instructions.
	Instructions, Accepted int
	groups                 map[groupKey]*Difference
	tallies                map[string]*Tally
	known                  map[string]*Known
	pairs                  map[[2]string]*Pair
}

// Tally counts one decoder's answers. It counts distinct questions, as Add does.
type Tally struct {
	// Asked counts all questions, Same the answers equal to ours.
	Asked, Same int
	// Refused counts the questions that it refuses and we accept, Accepted the opposite. Both
	// counts the questions that both refuse.
	Refused, Accepted, Both int
	// Known is the decoder's version, nil if it is unknown.
	Known *Known
}

// Tally returns the counts of the decoder of that name.
func (c *Comparison) Tally(name string) Tally {
	if t := c.tallies[name]; t != nil {
		return *t
	}
	return Tally{}
}

func (c *Comparison) tally(name string) *Tally {
	t := c.tallies[name]
	if t == nil {
		if c.tallies == nil {
			c.tallies = map[string]*Tally{}
		}
		t = &Tally{Known: c.known[name]}
		c.tallies[name] = t
	}
	return t
}

// recognize finds out which version each of the decoders is, for the causes.
func (c *Comparison) recognize(others []Decoder) error {
	if c.known == nil {
		c.known = map[string]*Known{}
	}
	for _, o := range others {
		if _, ok := c.known[o.Name()]; ok {
			continue
		}
		k, err := Recognize(o)
		if err != nil {
			return err
		}
		c.known[o.Name()] = k
	}
	return nil
}

type groupKey struct {
	decoder, opcode, what, cause string
}

// whatDiffers is "" for answers that agree.
func whatDiffers(ours, theirs Answer) string {
	switch {
	case ours.Length == 0 && theirs.Length == 0:
		return ""
	case ours.Length == 0:
		return "accepted"
	case theirs.Length == 0:
		return "refused"
	case ours.Length != theirs.Length:
		return "length"
	case !sameClass(ours.Class, theirs.Class):
		return "class"
	case theirs.HasTarget && (!ours.HasTarget || ours.Target != theirs.Target):
		return "target"
	case ours.Text == "" || theirs.Text == "":
		return ""
	}
	return whatTextDiffers(ours.Text, theirs.Text)
}

// sameClass compares two classes; an answer without a class agrees with every class.
func sameClass(a, b *decoder.Class) bool {
	switch {
	case a == nil || b == nil || *a == *b:
		return true
	case *a == indirect:
		a, b = b, a
	}
	return *b == indirect && (*a == decoder.ClassIndirectCall || *a == decoder.ClassIndirectJmp)
}

// Add compares two decoders' answers.
func (c *Comparison) Add(name string, q []byte, at uint64, ours, theirs Answer) {
	t := c.tally(name)
	t.Asked++
	if theirs.Text != "" && theirs.Length == ours.Length {
		ours.Text = decoder.Text(q, 0)
	}
	what := ""
	// Nearly always they are the same, which has to be cheap.
	if ours.Length != theirs.Length || ours.Class != theirs.Class || ours.HasTarget != theirs.HasTarget || ours.Target != theirs.Target || theirs.Text != "" {
		what = whatDiffers(ours, theirs)
	}
	switch {
	case ours.Length == 0 && theirs.Length == 0:
		t.Both++
	case what == "":
		t.Same++
	case what == "refused":
		t.Refused++
	case what == "accepted":
		t.Accepted++
	}
	if what != "" {
		c.add(groupKey{name, OpcodeName(q), what, Cause(t.Known, q, ours, theirs)}, q, at, ours, theirs)
	}
}

func (c *Comparison) add(k groupKey, q []byte, at uint64, ours, theirs Answer) {
	d := c.groups[k]
	if d == nil {
		if c.groups == nil {
			c.groups = map[groupKey]*Difference{}
		}
		d = &Difference{Decoder: k.decoder, Opcode: k.opcode, What: k.what, Cause: k.cause, Example: slices.Clone(q), At: at, Ours: ours, Theirs: theirs}
		c.groups[k] = d
	}
	d.Count++
}

// Differences lists the differences found, the unexplained ones first, then by number.
func (c *Comparison) Differences() []*Difference {
	var list []*Difference
	for _, d := range c.groups {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b *Difference) int {
		return cmp.Or(boolCompare(a.Cause != "", b.Cause != ""), -cmp.Compare(a.Count, b.Count),
			cmp.Compare(a.Decoder, b.Decoder), cmp.Compare(a.Opcode, b.Opcode), cmp.Compare(a.What, b.What))
	})
	return list
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// OpcodeName names the opcode of a question; differences are grouped by it.
func OpcodeName(q []byte) string {
	i, err := decoder.Decode(q)
	if err == nil {
		name := fmt.Sprintf("%v %02x %s", i.Encoding, i.Opcode, i.Mnemonic())
		if usesAPX(&i) && i.Encoding != decoder.EncEvex4 && i.Encoding != decoder.EncRex2 {
			name += " apx"
		}
		return name
	}
	b, _ := skipPrefixes(q)
	n := 1
	switch {
	case len(b) > 2 && b[0] == 0x0F && (b[1] == 0x38 || b[1] == 0x3A):
		n = 3
	case len(b) > 1 && b[0] == 0x0F:
		n = 2
	case len(b) > 4 && b[0] == 0x62:
		return fmt.Sprintf("evex map %d %02x", b[1]&7, b[4])
	case len(b) > 3 && (b[0] == 0xC4 || b[0] == 0x8F):
		return fmt.Sprintf("%02x map %d %02x", b[0], b[1]&0x1F, b[3])
	case len(b) > 2 && b[0] == 0xC5:
		return fmt.Sprintf("c5 %02x", b[2])
	}
	return fmt.Sprintf("% x", b[:min(n, len(b))])
}
