package configs

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// An option is one row of options.txt.
type option struct {
	name        string
	first, last version
	group       string
	needs, with []string
}

// A version is a release without its level: 6.12 is {6, 12}.
type version [2]int

// newest stands where a row names no last release.
var newest = version{1 << 30}

//go:embed options.txt
var optionText string

// options reads the rows of a table.
func options(text string) ([]option, error) {
	var list []option
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		words = append(words, "", "", "")
		if len(words) < 5 || len(words) > 8 {
			return nil, fmt.Errorf("%q: name, releases, group, needs and options that come with it are wanted", line)
		}
		o := option{name: words[0], group: strings.Trim(words[2], "-"), needs: listed(words[3]), with: listed(words[4])}
		first, last, _ := strings.Cut(words[1], "-")
		var err error
		if o.first, err = parseVersion(first); err != nil {
			return nil, fmt.Errorf("%s: %w", o.name, err)
		}
		if o.last = newest; last != "" {
			if o.last, err = parseVersion(last); err != nil {
				return nil, fmt.Errorf("%s: %w", o.name, err)
			}
		}
		list = append(list, o)
	}
	return list, nil
}

func listed(word string) []string {
	return strings.FieldsFunc(strings.Trim(word, "-"), func(r rune) bool { return r == ',' })
}

// parseVersion reads 6.12 of 6.12, 6.12.118-1 or 6.12~rc1.
func parseVersion(text string) (version, error) {
	words := strings.FieldsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if len(words) < 2 || !strings.HasPrefix(text, words[0]+"."+words[1]) {
		return version{}, fmt.Errorf("%q is no release", text)
	}
	var v version
	for i := range v {
		n, err := strconv.Atoi(words[i])
		if err != nil {
			return version{}, fmt.Errorf("%q is no release", text)
		}
		v[i] = n
	}
	return v, nil
}

func (o *option) isIn(v version) bool {
	return slices.Compare(o.first[:], v[:]) <= 0 && slices.Compare(v[:], o.last[:]) <= 0
}

// A drawing says of each option of a release, in the table's order, whether it is set.
type drawing struct {
	release version
	options []option
	set     map[string]bool
}

// round is the number of drawings in a round. Over a round, the options take turns.
const round = 3

// draw draws n configurations of a release, in rounds: how many there are decides none of them. Over a round each
// option of a group has its turn, as far as there are turns, and every other option is set in one and not set in
// another, if what it needs is.
func draw(list []option, release version, n int, seed uint64) []drawing {
	var drawn []drawing
	for i := 0; len(drawn) < n; i++ {
		drawn = append(drawn, drawRound(list, release, i, seed)...)
	}
	return drawn[:n]
}

func drawRound(list []option, release version, number int, seed uint64) []drawing {
	const n = round
	sum := fnv.New64a()
	fmt.Fprint(sum, release)
	if number > 0 {
		fmt.Fprint(sum, number)
	}
	r := rand.New(rand.NewPCG(seed, sum.Sum64()))
	drawn := make([]drawing, n)
	for i := range drawn {
		drawn[i] = drawing{release: release, set: map[string]bool{}}
	}
	turns := map[string][]int{}
	for _, o := range list {
		if !o.isIn(release) {
			continue
		}
		mine := 1
		ways := 2
		if o.group != "" {
			same := slices.DeleteFunc(slices.Clone(list), func(p option) bool { return p.group != o.group || !p.isIn(release) })
			mine = slices.IndexFunc(same, func(p option) bool { return p.name == o.name })
			ways = len(same)
		}
		turn := turns[o.group]
		if o.group == "" || turn == nil {
			turn = permuted(r, n, ways)
			turns[o.group] = turn
		}
		for i := range drawn {
			d := &drawn[i]
			lacks := slices.ContainsFunc(o.needs, func(name string) bool { return !d.set[name] })
			d.options = append(d.options, o)
			d.set[o.name] = turn[i] == mine && !lacks
		}
	}
	return drawn
}

// permuted is n numbers below ways, each as often as another or once more, in an order that is drawn.
func permuted(r *rand.Rand, n, ways int) []int {
	order := r.Perm(ways)
	turn := make([]int, n)
	for i := range turn {
		turn[i] = order[i%ways]
	}
	r.Shuffle(n, func(i, j int) { turn[i], turn[j] = turn[j], turn[i] })
	return turn
}

// String is the drawing as a file of options, as scripts/configs has them.
func (d *drawing) String() string {
	var b strings.Builder
	for _, o := range d.options {
		if !d.set[o.name] {
			fmt.Fprintf(&b, "# CONFIG_%s is not set\n", o.name)
			continue
		}
		for _, name := range append([]string{o.name}, o.with...) {
			fmt.Fprintf(&b, "CONFIG_%s=y\n", name)
		}
	}
	return b.String()
}

// words names in one line the options that are set, then the options that are not.
func (d *drawing) words() string {
	var on, off []string
	for _, o := range d.options {
		if d.set[o.name] {
			on = append(on, o.name)
		} else {
			off = append(off, o.name)
		}
	}
	return strings.Join(on, " ") + "; not set: " + strings.Join(off, " ")
}
