package compare

import (
	"cmp"
	"slices"
)

// Suspect is the name for our own answer if it differs from the answer of at least three decoders.
const Suspect = "ours"

// agreeAtLeast is the number of decoders that have to agree against ours.
const agreeAtLeast = 3

// Pair counts how two decoders differ from each other.
type Pair struct {
	A, B string
	// Asked counts all questions. Lengths, Classes and Targets count different answers; Accepted
	// counts the questions that one of the two refuses.
	Asked, Lengths, Classes, Targets, Accepted int
	// Example is the first at which they differ, SayA and SayB their answers.
	Example    []byte
	SayA, SayB Answer
}

// Differ is the number of all differences.
func (p *Pair) Differ() int { return p.Lengths + p.Classes + p.Targets + p.Accepted }

// Pairs lists the pairs of decoders; the pair that differs most often comes first.
func (c *Comparison) Pairs() []*Pair {
	var list []*Pair
	for _, p := range c.pairs {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *Pair) int {
		return cmp.Or(-cmp.Compare(a.Differ(), b.Differ()), cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B))
	})
	return list
}

// among compares the answers of a batch with each other.
func (c *Comparison) among(others []Decoder, b *questions) {
	for x := range others {
		for y := x + 1; y < len(others); y++ {
			p := c.pair(others[x].Name(), others[y].Name())
			for i, w := range b.windows[:b.n] {
				p.add(w, b.all[x][i], b.all[y][i])
			}
		}
	}
	// The kernel's decoder has no vote: it finds lengths of bytes that are no instruction.
	voters := slices.DeleteFunc(indexes(len(others)), func(n int) bool {
		_, kernel := others[n].(*Kernel)
		return kernel
	})
	for i, w := range b.windows[:b.n] {
		if theirs, ok := b.agreed(voters, i); ok {
			c.suspect(others, b, i, w, theirs)
		}
	}
}

func indexes(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

func (c *Comparison) pair(a, b string) *Pair {
	k := [2]string{a, b}
	p := c.pairs[k]
	if p == nil {
		if c.pairs == nil {
			c.pairs = map[[2]string]*Pair{}
		}
		p = &Pair{A: a, B: b}
		c.pairs[k] = p
	}
	return p
}

func (p *Pair) add(w []byte, a, b Answer) {
	p.Asked++
	a.Text, b.Text = "", ""
	switch whatDiffers(a, b) {
	case "":
		return
	case "length":
		p.Lengths++
	case "class":
		p.Classes++
	case "target":
		if !a.HasTarget {
			return // one of the two has no target
		}
		p.Targets++
	default:
		p.Accepted++
	}
	if p.Example == nil {
		p.Example, p.SayA, p.SayB = slices.Clone(w), a, b
	}
}

// agreed is the answer that at least three of the voters share, by length; the first
// of them answers for all.
func (b *questions) agreed(voters []int, i int) (Answer, bool) {
	for x := range voters {
		length, same := b.all[voters[x]][i].Length, 0
		for _, y := range voters[x:] {
			if b.all[y][i].Length == length {
				same++
			}
		}
		if same >= agreeAtLeast {
			return b.all[voters[x]][i], true
		}
	}
	return Answer{}, false
}

// suspect notes that ours stands alone. It has a cause if every decoder that agrees
// against ours has one.
func (c *Comparison) suspect(others []Decoder, b *questions, i int, w []byte, theirs Answer) {
	ours := b.ours[i]
	if ours.Length == theirs.Length {
		return
	}
	theirs = Answer{Length: theirs.Length}
	cause := ""
	for n, o := range others {
		if b.all[n][i].Length != theirs.Length {
			continue
		}
		if cause = Cause(c.known[o.Name()], w, ours, b.all[n][i]); cause == "" {
			break
		}
	}
	c.add(groupKey{Suspect, OpcodeName(w), whatDiffers(ours, theirs), cause}, w, b.at[i], ours, theirs)
}
