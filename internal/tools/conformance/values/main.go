// Package values draws scripts of bpftrace's about integers, their widths and signs, memory, maps and the order
// of what is printed, for make conformance-output; with -compare it says which of them two runs print differently.
package values

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"kprobelab/internal/tools/conformance/verb"
)

// Run runs the verb values.
func Run(args []string) error {
	f := flag.NewFlagSet("values", flag.ExitOnError)
	n := f.Int("n", 500, "how many scripts")
	seed := f.Uint64("seed", 1, "decides the scripts")
	per := f.Int("per", 5, "how many scripts a file has")
	to := f.String("to", "", "the folder that the files are written to")
	plain := f.Bool("plain", false, "nothing of a kernel: BEGIN alone")
	shared := f.Bool("shared", false, "only what bpftrace 0.23.2 and 0.27.1 mean the same by")
	compare := f.Bool("compare", false, "compare the outputs in two folders")
	if err := f.Parse(args); err != nil {
		return err
	}
	ok, err := true, error(nil)
	if *compare {
		ok, err = compareFolders(os.Stdout, f.Arg(0), f.Arg(1))
	} else {
		err = write(*to, *n, *per, *seed, kind{plain: *plain, shared: *shared})
	}
	return verb.Differ(!ok, err)
}

// marker begins what a script prints.
const marker = "== "

// kind says which scripts are drawn: BEGIN alone, or the language that two versions of the tool share.
type kind struct{ plain, shared bool }

func write(to string, n, per int, seed uint64, k kind) error {
	r := rand.New(rand.NewPCG(seed, 0))
	for first := 0; first < n; first += per {
		text := drawFile(r, first, min(per, n-first), k)
		if err := os.WriteFile(filepath.Join(to, fmt.Sprintf("v%04d.bt", first)), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// drawFile returns one script that joins n drawn scripts: each of its probes has their blocks one after the other.
func drawFile(r *rand.Rand, first, n int, k kind) string {
	blocks := map[string][]string{}
	var order []string
	for i := range n {
		d := &drawer{Rand: r, n: first + i, shared: k.shared}
		at := place{point: "BEGIN"}
		if !k.plain {
			at = pick(d, places...)
		}
		if len(blocks[at.point]) == 0 {
			order = append(order, at.point)
		}
		blocks[at.point] = append(blocks[at.point], d.script(at))
	}
	var b strings.Builder
	for _, point := range order {
		list := blocks[point]
		if point == "BEGIN" && k.plain {
			list = append(list, "exit();")
		}
		fmt.Fprintf(&b, "%s\n{\n\t%s\n}\n", point, strings.Join(list, "\n\t"))
	}
	return b.String()
}

// script is the statements of one script.
func (d *drawer) script(at place) string {
	d.known = append(d.known, at.known...)
	out := []string{fmt.Sprintf(`printf("%s%d\n");`, marker, d.n)}
	for range d.IntN(4) {
		out = append(out, d.variable())
	}
	for range 1 + d.IntN(3) {
		if own := d.own(at); len(own) > 0 && d.IntN(2) == 0 {
			out = append(out, pick(d, own...))
			continue
		}
		out = append(out, families[d.IntN(len(families))](d))
	}
	return strings.Join(out, " ")
}
