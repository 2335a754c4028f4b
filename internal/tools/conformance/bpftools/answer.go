package bpftools

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// answer is the output of a tool, and its exit code.
type answer struct {
	code     int
	out, err []string
}

func parseFile(name string) (names []string, answers map[string]*answer, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	names, answers, err = parse(f)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return names, answers, nil
}

// parse reads answers: a line "=== TOOL EXITCODE", the output, "=== err", the standard error, "=== end".
func parse(r io.Reader) (names []string, answers map[string]*answer, err error) {
	answers = map[string]*answer{}
	var a *answer
	var to *[]string
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadString('\n')
		if line == "" && err == io.EOF {
			break
		}
		if err != nil && err != io.EOF {
			return nil, nil, err
		}
		line = strings.TrimSuffix(line, "\n")
		mark, isMark := strings.CutPrefix(line, "=== ")
		name, code, isName := strings.Cut(mark, " ")
		switch {
		case isMark && mark == "err" && a != nil:
			to = &a.err
		case isMark && mark == "end" && a != nil:
			a, to = nil, nil
		case isMark && isName && a == nil:
			number, err := strconv.Atoi(code)
			if err != nil {
				return nil, nil, fmt.Errorf("line %d: %q is no exit code", n, code)
			}
			if answers[name] != nil {
				return nil, nil, fmt.Errorf("line %d: %s has answered twice", n, name)
			}
			a = &answer{code: number}
			answers[name], to = a, &a.out
			names = append(names, name)
		case to != nil:
			*to = append(*to, line)
		}
	}
	if a != nil {
		return nil, nil, fmt.Errorf("the last answer, of %s, is not whole", names[len(names)-1])
	}
	return names, answers, nil
}
