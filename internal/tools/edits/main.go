// Command edits asks whether the explorer's library notices a change of the subsystem's own code: a
// wait that is left out, a flag that is set late, a list that is not sorted. For each edit of
// edits.txt it builds the program with the edit (go build -overlay) and explores the library; the
// tree is left as it is. An edit that nothing notices has to have a reason.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"kprobelab/internal/explore"
	"kprobelab/profile"
)

//go:embed edits.txt
var list string

// edit replaces text of a file.
type edit struct {
	name, file, old, new string
	// spare is the reason why no check has to notice the edit, "" if one has to.
	spare string
}

// parse reads the list: "edit NAME", "file PATH", lines after "-" and "+", and perhaps
// "spare REASON".
func parse(text string) (edits []edit, err error) {
	for n, line := range strings.Split(text, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		if word == "edit" {
			edits = append(edits, edit{name: rest})
			continue
		}
		if line == "" || word == "#" {
			continue
		}
		if len(edits) == 0 {
			return nil, fmt.Errorf("line %d: no edit has begun", n+1)
		}
		e := &edits[len(edits)-1]
		switch word {
		case "file":
			e.file = rest
		case "-":
			e.old += rest + "\n"
		case "+":
			e.new += rest + "\n"
		case "spare":
			e.spare = rest
		default:
			return nil, fmt.Errorf("line %d: %q begins no line", n+1, word)
		}
	}
	return edits, nil
}

func main() {
	try := flag.Bool("try", false, "explore the library with this program's own code")
	kernels := flag.String("kernels", "6.12,5.8", "the `PROFILES`")
	bound := flag.Int("bound", 1, "up to `N` switches")
	only := flag.String("only", "", "the edits whose name has this `TEXT`")
	flag.Parse()
	var err error
	if *try {
		err = explored(strings.Split(*kernels, ","), *bound, flag.Args())
	} else {
		err = all(*only, *kernels, *bound)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// explored writes how each scenario ends; with ends that were written before it tells the first that
// is another.
func explored(kernels []string, bound int, before []string) error {
	for _, kernel := range kernels {
		for _, name := range explore.Library() {
			c, err := profile.Find(kernel)
			if err != nil {
				return err
			}
			p, err := explore.FromLibrary(name)
			if err != nil {
				return err
			}
			if strings.HasPrefix(name, "four-") {
				continue
			}
			res, err := p.Explore(context.Background(), explore.Options{Profile: c, Bound: bound})
			if err != nil {
				return err
			}
			end := fmt.Sprintf("%s on %s: %s", name, kernel, res.Verdict)
			switch {
			case len(before) == 0:
				fmt.Println(end)
			case before[0] != end:
				return errors.New(end)
			default:
				before = before[1:]
			}
		}
	}
	return nil
}

// all makes each edit, and tells which are not noticed.
func all(only, kernels string, bound int) error {
	edits, err := parse(list)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "edits")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	args := []string{"-try", "-kernels", kernels, "-bound", fmt.Sprint(bound)}
	none := edit{file: edits[0].file, old: edits[0].old, new: edits[0].old}
	ends, err := none.run(dir, args...)
	if err != nil {
		return err
	}
	args = append(append(args, "--"), strings.Split(ends, "\n")...)
	red, spare, missed := 0, 0, 0
	for _, e := range edits {
		if !strings.Contains(e.name, only) {
			continue
		}
		said, err := e.run(dir, args...)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		switch {
		case said != "":
			red++
		case e.spare != "":
			said, spare = "spare: "+e.spare, spare+1
		default:
			said, missed = "NOTHING NOTICES IT", missed+1
		}
		fmt.Printf("%-50s %s\n", e.name, said)
	}
	fmt.Printf("%d edits are noticed, %d are spare\n", red, spare)
	if missed > 0 {
		return fmt.Errorf("%d are not noticed", missed)
	}
	return nil
}

// run builds the program with the edit, and gives what that writes.
func (e *edit) run(dir string, args ...string) (string, error) {
	path, err := filepath.Abs(e.file)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), e.old); n != 1 {
		return "", fmt.Errorf("%s has the old text %d times", e.file, n)
	}
	changed := filepath.Join(dir, "changed.go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(text), e.old, e.new, 1)), 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "edited")
	build := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", bin, "./internal/tools/edits")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("it does not build: %s", out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, bin, args...).Output()
	var failed *exec.ExitError
	switch {
	case err == nil:
		return strings.TrimSpace(string(out)), nil
	case ctx.Err() != nil:
		return "it does not end", nil
	case errors.As(err, &failed):
		return strings.TrimSpace(string(out)), nil
	}
	return "", err
}
