package shard

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/mailbox"
)

// Run is the command line that has shards. The shards of one Run go together.
type Run struct {
	// Version is the program's.
	Version string `json:"version"`
	// Command is the command's name; Arguments are the words of the command line without --shard.
	Command   string   `json:"command"`
	Arguments []string `json:"arguments"`
	// Form is all that the command needs to print the results.
	Form json.RawMessage `json:"form"`
}

// without returns the words without the first --shard: a program's own arguments come after it.
func without(words []string) []string {
	i := slices.IndexFunc(words, func(w string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(w, "-"), "=")
		return strings.HasPrefix(w, "-") && name == "shard"
	})
	if i < 0 {
		return words
	}
	end := i + 1
	if !strings.Contains(words[i], "=") {
		end++
	}
	return slices.Concat(words[:i], words[min(end, len(words)):])
}

// Line is the command line of a shard, as a shell reads it.
func (r Run) Line(p Part) string {
	words := slices.Clone(r.Arguments)
	if r.Command == Jobs {
		if !p.Whole() {
			words = append(words, "SHARD="+p.String())
		}
		return mailbox.Line(words)
	}
	at := slices.Index(words, r.Command) + 1
	if !p.Whole() {
		words = slices.Insert(words, at, "--shard", p.String())
	}
	return mailbox.Line(append([]string{"kprobelab"}, words...))
}

// header is the first line of a shard's output.
type header struct {
	// Format is 1.
	Format int `json:"kprobelab_shard"`
	Run
	Shard string `json:"shard"`
	// Items counts the items of all shards; List is a checksum of their names.
	Items int    `json:"items"`
	List  string `json:"list"`
}

// line is every other line: the result of an item, or the end with the number of results.
type line struct {
	Item   *int            `json:"item,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	End    *int            `json:"end,omitempty"`
}

const format = 1

// Writer writes a shard's output.
type Writer struct {
	w           io.Writer
	part        Part
	done, items int
}

// Begin writes the header of a part of the items. words are the command line, of which the first is the command; form is all that
// the command needs to print the results. Begin returns nil for the whole list, which has no such output.
func Begin(w io.Writer, version string, words []string, part Part, items []string, form any) (*Writer, error) {
	if part.Whole() {
		return nil, nil
	}
	b, err := json.Marshal(form)
	if err != nil {
		return nil, err
	}
	run := Run{Version: version, Command: words[0], Arguments: without(words), Form: b}
	out := &Writer{w: w, part: part, items: len(items)}
	return out, out.put(header{format, run, part.String(), len(items), checksum(items)})
}

func checksum(items []string) string {
	h := sha256.New()
	for _, s := range items {
		fmt.Fprintf(h, "%d %s\n", len(s), s)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func (w *Writer) put(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.w.Write(b.Bytes())
	return err
}

// Add writes the result of the part's next item.
func (w *Writer) Add(result any) error {
	b, err := json.Marshal(result)
	if err != nil {
		return err
	}
	if len(b) > bounded.ShardLine-100 { // the line has the item's number, too
		return fmt.Errorf("a result of %d bytes is too long for the output of a shard", len(b))
	}
	item := w.part.I - 1 + w.done*w.part.N
	w.done++
	return w.put(line{Item: &item, Result: b})
}

// End writes the end, if every item of the part has its result.
func (w *Writer) End() error {
	if want := w.part.count(w.items); w.done != want {
		return fmt.Errorf("BUG: shard %s has %d results of %d", w.part, w.done, want)
	}
	return w.put(line{End: &w.done})
}

// Says tells how much of the whole the part is; items is the word for the items.
func (w *Writer) Says(items string) string {
	mine := w.part.count(w.items)
	if mine == 0 {
		return fmt.Sprintf("shard %s has nothing to do (%s in all: %d)", w.part, items, w.items)
	}
	return fmt.Sprintf("shard %s: %d of %d %s", w.part, mine, w.items, items)
}

// All writes the results of all items of the part, and the end.
func All[T any](w *Writer, results []T) error {
	for _, r := range results {
		if err := w.Add(r); err != nil {
			return err
		}
	}
	return w.End()
}
