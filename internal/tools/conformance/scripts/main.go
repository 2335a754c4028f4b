// Package scripts compares what this project's readers of script languages say of scripts with what the
// real tools say, stap -p1 and bpftrace: of a corpus as it is, and of scripts that are made of it by
// changes at random; and stap -p2 of scripts whose types are drawn.
//
// It ends with 1 where fewer than 95 of 100 verdicts are the same, or where a script is accepted
// that the tool refuses for a reason that is not on the list in causes.go.
package scripts

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"kprobelab/internal/tools/conformance/verb"
)

// Run runs the verb scripts.
func Run(args []string) error {
	f := flag.NewFlagSet("scripts", flag.ExitOnError)
	name := f.String("language", "stap", "stap, stap-types (-p2 of scripts whose types are drawn), bpftrace or bpftrace-0.27")
	program := f.String("tool", "", "the real tool")
	tree := f.String("tree", "", "the folder for stap's -r")
	corpus := f.String("corpus", "", "a pattern of files, in place of the project's own scripts")
	n := f.Int("n", 3000, "how many changed scripts")
	seed := f.Uint64("seed", 1, "decides the changes")
	table := f.String("table", "", "write the scripts with stap's verdicts to this file")
	show := f.Int("show", 10, "print so many differences")
	if err := f.Parse(args); err != nil {
		return err
	}
	l, err := languageOf(*name, *program, *tree)
	ok := false
	if err == nil && *corpus != "" {
		l.corpus = *corpus
	}
	if err == nil {
		ok, err = l.run(*n, *seed, *table, *show)
	}
	return verb.Differ(!ok, err)
}

// verdict says whether the tool, or this program, accepts a script, and with which text.
type verdict struct {
	accepted bool
	text     string // the parse tree, or the errors
}

// word is a token, roughly: what changes are made of.
var word = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"|[$@]?[A-Za-z_][A-Za-z_0-9]*|[0-9]+|<<<|[-+*/%=<>!&|^.]=|[-+&|<>]{2}|%[({?:)}]|\s+|.`)

// change makes another script of one.
func change(r *rand.Rand, words []string, pool []string) string {
	w := slices.Clone(words)
	for range 1 + r.IntN(3) {
		if len(w) == 0 {
			break
		}
		i := r.IntN(len(w))
		switch r.IntN(7) {
		case 0:
			w = slices.Delete(w, i, i+1)
		case 1:
			w = slices.Insert(w, i, w[i])
		case 2:
			j := r.IntN(len(w))
			w[i], w[j] = w[j], w[i]
		case 3:
			w[i] = pool[r.IntN(len(pool))]
		case 4:
			w = slices.Insert(w, i, pool[r.IntN(len(pool))])
		case 5:
			if s := w[i]; len(s) > 0 {
				at := r.IntN(len(s))
				w[i] = s[:at] + s[at+1:]
			}
		case 6:
			if r.IntN(4) == 0 {
				w = w[:i]
			} else {
				w = slices.Insert(w, i, string(rune(' '+r.IntN(95))))
			}
		}
	}
	return strings.Join(w, "")
}

type one struct {
	name, script string
	ours, theirs verdict
	err          error
}

func (l *language) run(n int, seed uint64, table string, show int) (bool, error) {
	files, err := filepath.Glob(l.corpus)
	if err != nil || l.draw == nil && len(files) == 0 {
		return false, fmt.Errorf("%s: no scripts there", l.corpus)
	}
	var list []*one
	var all [][]string
	var pool []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return false, err
		}
		list = append(list, &one{name: filepath.Base(f), script: string(b)})
		all = append(all, word.FindAllString(string(b), -1))
		pool = append(pool, all[len(all)-1]...)
	}
	r := rand.New(rand.NewPCG(seed, 16))
	for i := range n {
		if l.draw != nil {
			list = append(list, &one{name: fmt.Sprintf("drawn %d", i+1), script: l.draw(r)})
			continue
		}
		words := all[r.IntN(len(all))]
		list = append(list, &one{name: fmt.Sprintf("changed %d", i+1), script: change(r, words, pool)})
	}
	l.ask(list)
	if table != "" {
		if err := write(table, list); err != nil {
			return false, err
		}
	}
	return l.report(list, len(files), show)
}

// ask has both say what they think.
func (l *language) ask(list []*one) {
	work := make(chan *one)
	var wg sync.WaitGroup
	for range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for o := range work {
				o.ours = l.ours(o.script)
				o.theirs, o.err = l.theirs(o.script)
			}
		}()
	}
	for _, o := range list {
		work <- o
	}
	close(work)
	wg.Wait()
}

func (l *language) report(list []*one, whole, show int) (bool, error) {
	same, texts, refused, first, bad, silent := 0, 0, 0, 0, 0, 0
	causes := map[string]int{}
	for i, o := range list {
		switch {
		case errors.Is(o.err, errNoAnswer):
			silent++
			continue
		case o.err != nil:
			return false, o.err
		}
		if !o.theirs.accepted {
			refused++
		}
		if o.ours.accepted == o.theirs.accepted {
			same++
			if o.ours.text == o.theirs.text {
				texts++
			} else if i < whole || show > 0 {
				show--
				fmt.Printf("--- %s: another text\n%s\n--- the tool\n%s\n--- kprobelab\n%s\n", o.name, changed(o), head(o.theirs.text), head(o.ours.text))
			}
			if firstLines(o.ours.text) == firstLines(o.theirs.text) {
				first++
			}
			continue
		}
		cause := ""
		if o.ours.accepted {
			if cause = causeOf(o.theirs.text, o.script); cause == "" {
				bad++
			}
		}
		causes[cause]++
		if show > 0 || cause == "" {
			show--
			fmt.Printf("--- %s: accepted by the tool %v, by kprobelab %v (%s)\n%s\n--- the tool\n%s\n--- kprobelab\n%s\n", o.name, o.theirs.accepted, o.ours.accepted, cause, changed(o), head(o.theirs.text), head(o.ours.text))
		}
	}
	asked := len(list) - silent
	fmt.Printf("%d scripts, %d of them refused by the tool; %d more had no answer of it in %s\n", asked, refused, silent, patience)
	fmt.Printf("the same verdict: %d (%.2f %%)\n", same, 100*float64(same)/float64(max(asked, 1)))
	fmt.Printf("the same parse tree or the same messages to the byte: %d; the same first message: %d\n", texts, first)
	for c, n := range causes {
		fmt.Printf("  %d: %s\n", n, c)
	}
	fmt.Printf("accepted here alone, without a known cause: %d\n", bad)
	return bad == 0 && asked > 0 && same*100 >= l.least*asked, nil
}

// firstLines is the first message.
func firstLines(s string) string { first, _, _ := strings.Cut(s, "\n\n"); return first }

func changed(o *one) string {
	if len(o.script) > 600 && strings.HasPrefix(o.name, "changed") {
		return "(long)"
	}
	return o.script
}

func head(s string) string {
	if len(s) > 700 {
		return s[:700] + "…"
	}
	return s
}

// write keeps scripts and verdicts for a test that has no stap.
func write(path string, list []*one) error {
	var b strings.Builder
	for _, o := range list {
		v := "refused"
		if o.theirs.accepted {
			v = "accepted"
		}
		fmt.Fprintf(&b, "-- %s --\n%s\n", v, strings.TrimRight(o.script, "\n"))
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}
