package compare

import (
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"kprobelab/decoder"
)

// ReportOptions select the form of a report. The zero value is plain text.
type ReportOptions struct {
	// Bold marks a name; nil leaves it as it is.
	Bold func(string) string
	// Strict: differences with a known cause are listed like the others.
	Strict bool
	// Shrink: the examples of differences without a cause are shrunk, the first
	// fifty.
	Shrink bool
	// Append, if it is not nil, gets each difference without a cause.
	Append func(*Difference) error
}

func (o *ReportOptions) bold(s string) string {
	if o.Bold == nil {
		return s
	}
	return o.Bold(s)
}

// shrinkAtMost bounds how many differences are shrunk; the others are shown as found.
const shrinkAtMost = 50

// Report writes the result: counts of refusals both ways for each decoder, the differences without
// a cause, the known causes, and the differences between the decoders. It returns the number of
// kinds of differences without a cause.
func (c *Comparison) Report(w io.Writer, others []Decoder, o *ReportOptions) (unexplained int, err error) {
	if o == nil {
		o = &ReportOptions{}
	}
	byName, names := map[string]Decoder{}, []string(nil)
	for _, d := range others {
		byName[d.Name()] = d
		names = append(names, d.Name())
	}
	fmt.Fprintf(w, "%d asked, %d instructions; compared with %s\n", c.Instructions, c.Accepted, strings.Join(names, ", "))
	for _, name := range names {
		fmt.Fprintf(w, "%s: %v\n", o.bold(name), c.Tally(name))
	}
	var causes []string
	counts := map[string]int{}
	for _, d := range c.Differences() {
		if d.Cause != "" && !o.Strict {
			key := d.Decoder + ": " + d.Cause
			if counts[key] == 0 {
				causes = append(causes, key)
			}
			counts[key] += d.Count
			continue
		}
		unexplained++
		if other := byName[d.Decoder]; other != nil && o.Shrink && d.Cause == "" && unexplained <= shrinkAtMost {
			d.Example = c.Shrink(other, d)
		}
		fmt.Fprintln(w, d.line(o))
		fmt.Fprintf(w, "  kprobelab decode %s\n", hex.EncodeToString(d.Bytes()))
		if o.Append != nil && d.Cause == "" {
			if err := o.Append(d); err != nil {
				return unexplained, err
			}
		}
	}
	for _, key := range causes {
		fmt.Fprintf(w, "known: %s: %d\n", key, counts[key])
	}
	for _, p := range c.Pairs() {
		if p.Differ() > 0 {
			fmt.Fprintf(w, "among themselves: %v\n", p)
		}
	}
	return unexplained, nil
}

func (d *Difference) line(o *ReportOptions) string {
	if d.Decoder == Suspect {
		return fmt.Sprintf("%s: %s: %s: %d, such as % x at %#x: kprobelab %v, three decoders or more %v: kprobelab is the suspect",
			o.bold(d.Decoder), d.Opcode, d.What, d.Count, d.Bytes(), d.At, d.Ours, d.Theirs)
	}
	return fmt.Sprintf("%s: %s: %s: %d, such as % x at %#x: kprobelab %v, %s %v",
		o.bold(d.Decoder), d.Opcode, d.What, d.Count, d.Bytes(), d.At, d.Ours, d.Decoder, d.Theirs)
}

// String is the counts in words.
func (t Tally) String() string {
	known := "no known version, so no causes"
	if t.Known != nil {
		known = t.Known.String()
	}
	return fmt.Sprintf("%s; of %d questions %d the same, %d refused that kprobelab accepts, %d accepted that kprobelab refuses, %d refused by both",
		known, t.Asked, t.Same, t.Refused, t.Accepted, t.Both)
}

// degenerateAt is the number of questions after which a decoder can be called useless.
const degenerateAt = 100

// Useless says in a sentence that a decoder refuses everything or accepts everything,
// "" if it does neither.
func (t Tally) Useless(name string) string {
	accepted := t.Asked - t.Refused - t.Both
	switch {
	case t.Asked >= degenerateAt && accepted == 0:
		return fmt.Sprintf("%s refuses all %d questions, %d of them instructions", name, t.Asked, t.Refused)
	case t.Accepted >= degenerateAt && t.Both == 0 && t.Refused == 0:
		return fmt.Sprintf("%s accepts all %d questions, %d of them no instructions", name, t.Asked, t.Accepted)
	}
	return ""
}

// String names the two, and how often they differ.
func (p *Pair) String() string {
	return fmt.Sprintf("%s and %s differ in %d lengths, %d classes, %d targets; %d are accepted by one of the two; such as %x: %v, %v",
		p.A, p.B, p.Lengths, p.Classes, p.Targets, p.Accepted, p.Example, p.SayA, p.SayB)
}

// Report writes the changes, worse ones first, each with a shrunk example. It returns the number of
// kinds that are worse.
func (v *Versions) Report(w io.Writer, o *ReportOptions) (worse int, err error) {
	if o == nil {
		o = &ReportOptions{}
	}
	fmt.Fprintf(w, "%d asked; old %s, new %s\n", v.Asked, v.Old.Name(), v.New.Name())
	fmt.Fprintf(w, "old: %d refused that kprobelab accepts, %d accepted that kprobelab refuses\n", v.OldRefused, v.OldAccepted)
	fmt.Fprintf(w, "new: %d refused that kprobelab accepts, %d accepted that kprobelab refuses\n", v.Refused, v.Accepted)
	kinds := map[Verdict]int{}
	for n, c := range v.Changes() {
		kinds[c.Verdict]++
		if n < shrinkAtMost {
			if err := v.Shrink(c); err != nil {
				return kinds[Worse], err
			}
		}
		fmt.Fprintf(w, "%s: %s: %s: %d, such as % x at %#x: old %v, new %v, kprobelab %v\n",
			o.bold(string(c.Verdict)), c.Opcode, c.What, c.Count, c.Bytes(), c.At, c.Old, c.New, c.Ours)
		fmt.Fprintf(w, "  kprobelab decode %s\n", hex.EncodeToString(c.Bytes()))
	}
	fmt.Fprintf(w, "%d kinds worse, %d better, %d other\n", kinds[Worse], kinds[Better], kinds[Other])
	return kinds[Worse], nil
}

// String names the missing names and forms, the first twenty of each.
func (m Missing) String() string {
	return fmt.Sprintf("coverage: %d of %d names, %d of %d forms%s%s", m.Names-len(m.NoName), m.Names, m.Forms-len(m.NoForm), m.Forms,
		listed("\nnames not made: ", m.NoName), listed("\nforms not made: ", m.NoForm))
}

func listed(head string, list []string) string {
	const most = 20
	switch {
	case len(list) == 0:
		return ""
	case len(list) > most:
		return head + strings.Join(list[:most], "; ") + fmt.Sprintf("; and %d more", len(list)-most)
	}
	return head + strings.Join(list, "; ")
}

// Row is a difference as a row of the corpus: bytes, our length and class, the decoder
// after a !, its answer in the comment.
func (d *Difference) Row() string {
	i, err := decoder.Decode(d.Example)
	class := "-"
	if err == nil {
		class = i.Class.String()
	}
	name := strings.Join(strings.Fields(d.Decoder), "_")
	return fmt.Sprintf("%-30s %2d  %-13s %s\n", hex.EncodeToString(d.Bytes()), d.Ours.Length, class, "!"+name+" # "+d.Theirs.String())
}

// splitCommand splits a command line at blanks, but for those in quotes.
func splitCommand(line string) (words []string) {
	var word []rune
	quote, in := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word = append(word, r)
		case r == '\'' || r == '"':
			quote, in = r, true
		case r == ' ' || r == '\t':
			if in {
				words = append(words, string(word))
			}
			word, in = word[:0], false
		default:
			word, in = append(word, r), true
		}
	}
	if in {
		words = append(words, string(word))
	}
	return slices.Clip(words)
}

// StartCommand starts a program that speaks the line protocol, by a command line such as
// "node mine.js". Single and double quotes keep blanks. Its name is the command line.
func StartCommand(line string) (*Child, error) {
	words := splitCommand(line)
	if len(words) == 0 {
		return nil, fmt.Errorf("%q names no program", line)
	}
	return StartChild(strings.TrimSpace(line), words[0], words[1:]...)
}
