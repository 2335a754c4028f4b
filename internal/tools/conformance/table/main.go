// Package table puts the results of asked kernels into the documentation: it
// merges the ones of a folder into a list of results, one a line, and writes the
// list's table into a page, between the lines that begin with the markers.
//
//	table -same FILE: ends with 1 when the result in the file has differences
//	table -kept DIR -data LIST -page PAGE
//
// It must not know how a result came about.
package table

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"kprobelab/internal/bounded"
	"kprobelab/internal/tools/conformance"
	"kprobelab/internal/tools/conformance/verb"
)

// Run runs the verb table.
func Run(args []string) error {
	f := flag.NewFlagSet("table", flag.ExitOnError)
	same := f.String("same", "", "end with 1 when the result in `FILE` has differences")
	kept := f.String("kept", "", "merge the results in the folder `DIR` into the list")
	data := f.String("data", "", "the `LIST` of results, one a line")
	page := f.String("page", "", "the `PAGE` that the table is written into")
	if err := f.Parse(args); err != nil {
		return err
	}
	return run(*same, *kept, *data, *page)
}

func run(same, kept, data, page string) error {
	if same != "" {
		list, err := conformance.LoadResults(same)
		return verb.Differ(err == nil && (len(list) != 1 || list[0].Differences() > 0), err)
	}
	list, err := conformance.LoadResults(data)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if kept != "" {
		if list, err = merge(list, kept); err != nil {
			return err
		}
		if err := write(data, list); err != nil {
			return err
		}
	}
	return rewrite(page, table(list))
}

// merge replaces the results of the kernels in the folder, and adds new ones.
func merge(list []conformance.Result, kept string) ([]conformance.Result, error) {
	files, err := filepath.Glob(filepath.Join(kept, "*.json"))
	if err != nil {
		return nil, err
	}
	type key struct{ kernel, cpu string }
	at := map[key]int{}
	for i, r := range list {
		at[key{r.Kernel, r.CPU}] = i
	}
	for _, f := range files {
		results, err := conformance.LoadResults(f)
		if err != nil {
			return nil, err
		}
		for _, r := range results {
			k := key{r.Kernel, r.CPU}
			if i, ok := at[k]; ok {
				list[i] = r
				continue
			}
			at[k] = len(list)
			list = append(list, r)
		}
	}
	sortResults(list)
	return list, nil
}

func write(data string, list []conformance.Result) error {
	var b bytes.Buffer
	for i := range list {
		if err := json.NewEncoder(&b).Encode(&list[i]); err != nil {
			return err
		}
	}
	return os.WriteFile(data, b.Bytes(), 0o644)
}

// The markers are the beginnings of the lines around the table.
const (
	begin = "<!-- kernels: begin"
	end   = "<!-- kernels: end"
)

// maxPage bounds the page.
const maxPage = 4 << 20

// rewrite puts the table between the page's markers.
func rewrite(page, table string) error {
	b, err := bounded.ReadFile(page, maxPage)
	if err != nil {
		return err
	}
	from, to := bytes.Index(b, []byte(begin)), bytes.Index(b, []byte(end))
	if from < 0 || to < from {
		return fmt.Errorf("%s: no lines that begin with %q and %q", page, begin, end)
	}
	from += bytes.IndexByte(b[from:], '\n') + 1
	out := string(b[:from]) + "\n" + table + "\n" + string(b[to:])
	return os.WriteFile(page, []byte(out), 0o644)
}
