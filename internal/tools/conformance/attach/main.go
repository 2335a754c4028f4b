// Package attach draws scripts of bpftrace's whose probes attach or not, and compares what the
// real bpftrace said of them on a booted kernel with what is said here on a dump of it: what is
// printed, the exit code, and so the number of probes.
//
// A bpftrace of another version has other words: with -verdicts each script says what becomes of a probe
// that is missing, and what is compared is whether it is accepted.
//
// With -draw it writes scripts and commands to a folder, unless -answers has their answers already.
// Without -draw it compares. Its exit code is 1 if something differs.
package attach

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"kprobelab/internal/tools/conformance/verb"
	"kprobelab/kimage"
)

// one is one command line of the tool.
type one struct {
	// Args are its arguments. Kind names the kind of the draw.
	Args []string `json:"args"`
	Kind string   `json:"kind"`
}

// said holds the result of a command line: the exit code, and the output.
type said struct {
	code     int
	out, err string
}

// Run runs the verb attach.
func Run(args []string) error {
	f := flag.NewFlagSet("attach", flag.ExitOnError)
	dump := f.String("dump", "", "the dump of the booted kernel")
	folder := f.String("folder", "", "the folder of scripts and commands")
	draw := f.Bool("draw", false, "draw them")
	n := f.Int("n", 500, "so many")
	seed := f.Uint64("seed", 1, "decides what is drawn")
	answers := f.String("answers", "", "what the tool said in the boot")
	lab := f.String("kprobelab", "bin/kprobelab", "this project's program")
	verdicts := f.Bool("verdicts", false, "compare alone whether a script is accepted: the words of another version differ")
	if err := f.Parse(args); err != nil {
		return err
	}
	var err error
	same := true
	if *draw {
		err = write(*dump, *folder, *n, *seed, *verdicts, *answers)
	} else {
		same, err = compare(*dump, *folder, *answers, *lab, *verdicts)
	}
	return verb.Differ(!same, err)
}

// commands is the file that has the drawn command lines.
const commands = "commands.json"

// write draws commands and writes those without an answer yet for the shell in the boot, too.
func write(dump, folder string, n int, seed uint64, verdicts bool, answers string) error {
	answered, err := theirs(answers)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	img, err := kimage.Open(dump, nil)
	if err != nil {
		return err
	}
	d := newDrawer(img, seed)
	d.told = verdicts
	var list []one
	var shell strings.Builder
	for i := range n {
		c, script := d.command(i)
		if script != "" {
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.bt", i)), []byte(script), 0o644); err != nil {
				return err
			}
		}
		list = append(list, c)
		if _, ok := answered[i]; ok {
			continue
		}
		fmt.Fprintf(&shell, "one %d", i)
		for _, a := range c.Args {
			fmt.Fprintf(&shell, " '%s'", strings.ReplaceAll(a, "'", `'\''`))
		}
		shell.WriteByte('\n')
	}
	b, err := json.MarshalIndent(list, "", " ")
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(folder, commands), b, 0o644), os.WriteFile(filepath.Join(folder, "commands.sh"), []byte(shell.String()), 0o644))
}

// The shell in the boot puts a frame around what the tool prints: this line, standard output, a line,
// standard error, the end. Where the boot ended early there is no end.
var opening = regexp.MustCompile(`(?m)^=== (\d+) (\d+)\n`)

const (
	between = "=== err\n"
	end     = "=== end\n"
)

// theirs are the tool's answers by the commands' numbers.
func theirs(file string) (map[int]said, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	list := map[int]said{}
	parts := strings.Split(string(b), end)
	for _, part := range parts[:len(parts)-1] {
		at := opening.FindAllStringSubmatchIndex(part, -1)
		if len(at) == 0 {
			continue
		}
		m := at[len(at)-1]
		var i int
		var s said
		fmt.Sscan(part[m[2]:m[3]], &i)
		fmt.Sscan(part[m[4]:m[5]], &s.code)
		s.out, s.err, _ = strings.Cut(part[m[1]:], between)
		list[i] = s
	}
	return list, nil
}

// allOurs are this program's answers to the commands that the tool has answered, two at a time.
func allOurs(list []one, want map[int]said, ask func(args []string) said) []said {
	got := make([]said, len(list))
	next := make(chan int)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for i := range next {
				got[i] = ask(list[i].Args)
			}
		})
	}
	for i := range list {
		if _, ok := want[i]; ok {
			next <- i
		}
	}
	close(next)
	all.Wait()
	return got
}

// ours is this program's answer.
func ours(lab, dump, folder string, args []string) said {
	c := exec.Command(lab, append([]string{"bpftrace", "-r", dump}, args...)...)
	c.Dir = folder
	var out, err bytes.Buffer
	c.Stdout, c.Stderr = &out, &err
	ended := c.Run()
	s := said{out: out.String(), err: err.String()}
	var code *exec.ExitError
	if errors.As(ended, &code) {
		s.code = code.ExitCode()
	} else if ended != nil {
		s.code, s.err = -1, ended.Error()
	}
	s.err = own.ReplaceAllString(s.err, "")
	return s
}

// own matches the line that this program adds to a script's messages.
var own = regexp.MustCompile(`(?m)^kprobelab: the script is not accepted\n`)

// compare prints what differs, and how many do.
func compare(dump, folder, answers, lab string, verdicts bool) (bool, error) {
	b, err := os.ReadFile(filepath.Join(folder, commands))
	if err != nil {
		return false, err
	}
	var list []one
	if err := json.Unmarshal(b, &list); err != nil {
		return false, err
	}
	want, err := theirs(answers)
	if err != nil {
		return false, err
	}
	for _, p := range []*string{&dump, &folder, &lab} {
		if *p, err = filepath.Abs(*p); err != nil {
			return false, err
		}
	}
	got := allOurs(list, want, func(args []string) said { return ours(lab, dump, folder, args) })
	var rules *newer
	if verdicts {
		img, err := kimage.Open(dump, nil)
		if err != nil {
			return false, err
		}
		rules = newNewer(img)
	}
	same, attached, missing, expected, lists, differ := 0, 0, 0, 0, 0, 0
	caused := map[string]int{}
	for i, c := range list {
		w, ok := want[i]
		right, cause := false, ""
		if ok && verdicts {
			_, script := commandOf(c, folder)
			switch right, cause = rules.explains(c, folder, w); {
			case !script:
				lists++
			case right:
				expected++
			default:
				fmt.Printf("%d (%s): the rules do not give the tool's exit code %d: %q\n", i, c.Kind, w.code, c.Args)
			}
		}
		switch {
		case !ok:
			missing++
		case w == got[i], verdicts && (w.code == 0) == (got[i].code == 0):
			same++
			if w.code == 0 {
				attached++
			}
		case right && cause != "":
			caused[cause]++
		default:
			differ++
			fmt.Printf("%d (%s): %q\n--- bpftrace: %d\n%s%s--- kprobelab: %d\n%s%s\n", i, c.Kind, c.Args, w.code, w.out, w.err, got[i].code, got[i].out, got[i].err)
		}
	}
	fmt.Printf("%d commands: %d the same, %d of them attach; %d differ; %d without an answer of bpftrace\n", len(list), same, attached, len(list)-same-missing, missing)
	if verdicts {
		for _, cause := range slices.Sorted(maps.Keys(caused)) {
			fmt.Printf("  %d: %s\n", caused[cause], cause)
		}
		fmt.Printf("without a cause: %d; by the newer rules alone %d of the tool's %d verdicts on scripts come out\n", differ, expected, len(list)-missing-lists)
		return differ == 0 && same > 0 && missing == 0, nil
	}
	return same == len(list), nil
}
