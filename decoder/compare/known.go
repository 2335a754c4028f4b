package compare

import (
	"bufio"
	"bytes"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

// Known is a version of a decoder whose differences from us are known. A decoder is
// recognized by its answers to fixed questions, never by its name: the same version
// of --with and of --cmd is the same, and a program that calls itself llvm is
// not.
type Known struct {
	// Name is the decoder, Version its release.
	Name, Version string
	// lengths has a hexadecimal digit for each of the questions.
	lengths string
	// rows are the differences by row: WHAT, a blank, and OpcodeName.
	rows map[string]bool
}

// String is such as "llvm 22.1.8".
func (k *Known) String() string { return k.Name + " " + k.Version }

func (k *Known) hasRow(q []byte, ours, theirs Answer) bool {
	if k == nil {
		return false
	}
	row := whatDiffers(ours, theirs) + " " + OpcodeName(q)
	return k.rows[row] || k.rows[strings.TrimSuffix(row, " apx")]
}

// known/VERSION.txt is a version each, known/questions.txt the questions. The files
// are written by go test ./decoder/compare -run TestKnownVersions -update.
//
//go:embed known/*.txt
var knownFiles embed.FS

var knownVersions = sync.OnceValue(func() (list []*Known) {
	names, _ := fs.Glob(knownFiles, "known/*-*.txt")
	for _, name := range names {
		text, err := knownFiles.ReadFile(name)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		list = append(list, parseKnown(name, text))
	}
	return list
})

// parseKnown reads "version NAME VERSION", "lengths DIGITS", and rows.
func parseKnown(file string, text []byte) *Known {
	k := &Known{rows: map[string]bool{}}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), " # ")
		key, rest, _ := strings.Cut(line, " ")
		switch key {
		case "", "#":
		case "version":
			k.Name, k.Version, _ = strings.Cut(rest, " ")
		case "lengths":
			k.lengths = rest
		case "refused", "accepted", "length", "class", "target":
			k.rows[strings.TrimSpace(line)] = true
		default:
			panic(fmt.Sprintf("BUG: %s: %q", file, line))
		}
	}
	return k
}

// knownQuestions returns the questions by which a decoder is recognized.
var knownQuestions = sync.OnceValue(func() (list [][]byte) {
	text, err := knownFiles.ReadFile("known/questions.txt")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	for line := range strings.Lines(string(text)) {
		if b, err := hex.DecodeString(strings.TrimSpace(line)); err == nil && len(b) > 0 {
			list = append(list, b)
		}
	}
	return list
})

// strangersAt is the number of answers in a hundred that may differ from a version's. A decoder
// with some faults, or repairs, of its own is still that version.
const strangersAt = 3

// ErrUnsteady: a decoder answers the same question differently, so no comparison is possible.
var ErrUnsteady = errors.New("its answers are of no use")

// Recognize gives a decoder the fixed questions, and returns its version, nil if that is unknown.
func Recognize(d Decoder) (*Known, error) {
	if k, ok := d.(*Kernel); ok {
		return &Known{Name: "kernel", Version: k.release}, nil
	}
	lengths, err := lengthsOf(d, knownQuestions())
	if err != nil {
		return nil, err
	}
	backwards := slices.Clone(knownQuestions())
	slices.Reverse(backwards)
	reversed, err := lengthsOf(d, backwards)
	if err != nil {
		return nil, err
	}
	digits := []byte(reversed)
	slices.Reverse(digits)
	again := string(digits)
	if n := strangers(lengths, again); n > 0 {
		return nil, fmt.Errorf("%s: asked twice, it gives other lengths for %d of %d questions: %w", d.Name(), n, len(lengths), ErrUnsteady)
	}
	var best *Known
	least := len(lengths)*strangersAt/100 + 1
	for _, k := range knownVersions() {
		if n := strangers(k.lengths, lengths); n < least {
			best, least = k, n
		}
	}
	return best, nil
}

func strangers(a, b string) (n int) {
	if len(a) != len(b) {
		return max(len(a), len(b))
	}
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// lengthsOf is the lengths that a decoder finds, a hexadecimal digit each.
func lengthsOf(d Decoder, q [][]byte) (string, error) {
	answers := make([]Answer, len(q))
	if err := d.Ask(q, answers); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, a := range answers {
		fmt.Fprintf(&b, "%x", a.Length)
	}
	return b.String(), nil
}
