package scripts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"kprobelab/internal/script/bpftrace"
	"kprobelab/internal/script/stap"
)

// language is one of the languages, with the corpus and the two that read it.
type language struct {
	corpus string
	// least is the percentage of verdicts that have to be the same.
	least int
	// draw makes a script, nil where scripts are made of the corpus.
	draw   func(r *rand.Rand) string
	ours   func(script string) verdict
	theirs func(script string) (verdict, error)
}

func languageOf(name, tool, tree string) (*language, error) {
	switch name {
	case "stap":
		return &language{
			least:  95,
			corpus: "internal/script/stap/testdata/corpus/*.stp",
			ours:   stapOurs,
			theirs: func(script string) (verdict, error) { return stapTheirs(tool, tree, script) },
		}, nil
	case "stap-types":
		return &language{
			draw:   typed,
			least:  90,
			ours:   typedOurs,
			theirs: func(script string) (verdict, error) { return typedTheirs(tool, tree, script) },
		}, nil
	case "bpftrace", "bpftrace-0.27":
		version := bpftrace.Language23
		if name != "bpftrace" {
			version = bpftrace.Language27
		}
		k, err := hostKernel()
		if err != nil {
			return nil, err
		}
		return &language{
			least:  95,
			corpus: "internal/script/bpftrace/testdata/*/*.bt",
			ours:   func(script string) verdict { return bpftraceOurs(k, script, version) },
			theirs: func(script string) (verdict, error) { return bpftraceTheirs(tool, script, version) },
		}, nil
	}
	return nil, fmt.Errorf("%s: the languages are stap, stap-types, bpftrace and bpftrace-0.27", name)
}

// patience is the time that a tool may take.
const patience = time.Minute

// errNoAnswer: the tool took longer.
var errNoAnswer = errors.New("the tool did not answer")

// asked runs a tool, with the script on its standard input.
func asked(script string, command ...string) (out, bad string, code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.WaitDelay = time.Second
	c.Stdin = strings.NewReader(script)
	var o, e bytes.Buffer
	c.Stdout, c.Stderr = &o, &e
	err = c.Run()
	if ctx.Err() != nil {
		return "", "", 0, errNoAnswer
	}
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		code, err = ended.ExitCode(), nil
	}
	return o.String(), e.String(), code, err
}

const release = "6.1.0-56-cloud-amd64"

var noise = regexp.MustCompile(`(?m)^(WARNING: Kernel function symbol table missing.*|Pass 1: parse failed.*|Tip: .*|Rerun with -v.*|Checking ".*)\n`)

func stapTheirs(program, tree, script string) (verdict, error) {
	out, bad, code, err := asked(script, program, "-r", tree, "-a", "x86_64", "-p1", "-g", "-")
	if err != nil || code == 0 {
		return verdict{true, out}, err
	}
	return verdict{false, noise.ReplaceAllString(bad, "")}, nil
}

func stapOurs(script string) verdict {
	tree, err := stap.Parse("<input>", script, &stap.Options{Release: release, Guru: true})
	var p stap.Problems
	if errors.As(err, &p) {
		return verdict{false, p.Text()}
	}
	return verdict{true, tree}
}

// arguments are the arguments that each script gets.
var arguments = []string{"3", "42"}

// ofSystem are warnings about functions and files that one of the two does not know here, with a source line that is
// marked, and of bpftrace's about the code that it makes.
var ofSystem = regexp.MustCompile(`(?m)^[^\n]*WARNING: (?:[^\n]* is not traceable |attaching to |Could not list |Addrspace is not set|Cannot take type definitions )[^\n]*\n(?:[^\n]*\n *~+\n)?`)

// limit is the one warning that is of no place in the script.
var limit = regexp.MustCompile(`(?m)^WARNING: [^\n]*RLIMIT_MEMLOCK[^\n]*\n`)

// definitions is an error of the compiler that reads a script's C definitions.
var definitions = regexp.MustCompile(`(?m)^definitions\.h:\d+:\d+: error: `)

// bpftraceTheirs asks bpftrace, which stops before it loads anything. What it says without a
// place is of the system that it runs on.
func bpftraceTheirs(program, script string, version bpftrace.Language) (verdict, error) {
	mode := "--test"
	if version == bpftrace.Language27 {
		mode = "--mode"
	}
	out, bad, code, err := asked("", append([]string{program, mode, "codegen", "-e", script}, arguments...)...)
	if err != nil {
		return verdict{}, err
	}
	text := ofSystem.ReplaceAllString(limit.ReplaceAllString(bad+out, ""), "")
	if code == 0 {
		return verdict{true, text}, nil
	}
	if !strings.Contains(text, ": ERROR: ") && !definitions.MatchString(text) {
		return verdict{true, ""}, nil
	}
	return verdict{false, text}, nil
}

func bpftraceOurs(k *bpftrace.Kernel, script string, version bpftrace.Language) verdict {
	s, err := bpftrace.Analyze("stdin", script, &bpftrace.Options{Args: arguments, Language: version}, k)
	if err == nil {
		return verdict{true, s.Warnings}
	}
	var p *bpftrace.Problems
	if !errors.As(err, &p) || !strings.Contains(p.Text(), ": ERROR: ") && !strings.Contains(p.Text(), "ERROR: definitions: ") {
		return verdict{true, ""} // or it is of the system, as above
	}
	return verdict{false, p.Text()}
}
