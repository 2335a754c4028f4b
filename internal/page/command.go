package page

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kprobelab"
	"kprobelab/internal/callsyntax"
)

// commandQuestion describes the page: a byte of a function or of code, or, with calls, a machine.
type commandQuestion struct {
	codeQuestion
	identity
	Name   string `json:"name"`
	Offset int    `json:"offset"`
	Probes string `json:"probes"`
	Calls  string `json:"calls"`
	// Careless: the machine writes the jump carelessly.
	Careless bool `json:"careless"`
}

// Command is a line for a shell. Note names the differences from the page, "" for none.
type Command struct {
	Line string `json:"line"`
	Note string `json:"note,omitempty"`
}

// command writes the line of the command line that answers the same.
func (p *Page) command(q commandQuestion, _ []byte) (*Command, error) {
	image := q.Image
	if image == kprobelab.GuestKernel {
		image = ""
	}
	var profile []string
	if q.Release != "" {
		if _, err := rules(q.Release); err != nil {
			return nil, err
		}
		profile = []string{"--profile", q.Release}
	}
	if q.Calls != "" {
		return q.machine(profile, image)
	}
	point := fmt.Sprintf("%s+%#x", q.Name, q.Offset)
	words := slices.Concat([]string{"kprobelab", "explain"}, profile)
	if q.Name == "" {
		code, err := q.bytes()
		if err != nil {
			return nil, err
		}
		return &Command{Line: shell(append(words, "--hex", fmt.Sprintf("%x", code), point))}, nil
	}
	if image == "" {
		image = "-"
	}
	return &Command{Line: shell(append(words, image, point))}, nil
}

// machine writes the run of a machine.
func (q *commandQuestion) machine(profile []string, image string) (*Command, error) {
	s := Scenario{Release: q.Release, Probes: q.Probes, Calls: q.Calls}
	probes, err := s.probes()
	if err != nil {
		return nil, err
	}
	words := slices.Concat([]string{"kprobelab", "run", "--steps"}, profile)
	var notes []string
	posts, kprobes := 0, 0
	for _, pr := range probes {
		f := strings.Fields(pr.text)
		if pr.to != "" || f[0] == "jprobe" {
			return nil, fmt.Errorf("the command line has no probe such as %q, only the page", pr.text)
		}
		words = append(words, "--"+f[0], f[1])
		if f[0] == "kprobe" {
			kprobes++
		}
		if pr.post {
			posts++
		}
	}
	if kprobes > 0 && posts == 0 {
		words = slices.Insert(words, 3, "--no-post")
	}
	if posts > 0 && posts < kprobes {
		notes = append(notes, "all kprobes have post handlers there")
	}
	calls := lines(q.Calls)
	switch {
	case len(calls) == 0:
		return nil, errNoCalls
	case len(calls) == 1:
		list, err := callsyntax.Parse(calls[0])
		if err != nil {
			return nil, err
		}
		for _, one := range list {
			words = append(words, "--call", one.String())
		}
	default:
		words = append(words, "--cpus", fmt.Sprint(len(calls)))
		for _, line := range calls {
			words = append(words, "--task", line)
		}
		notes = append(notes, "its scheduler decides who runs when: --seed changes that")
	}
	if q.Careless {
		notes = append(notes, "the jump is written with care there")
	}
	if image != "" {
		words = append(words, image)
	}
	return &Command{shell(words), strings.Join(notes, "; ")}, nil
}

// plainWord has no characters that a shell reads otherwise.
var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// shell writes words as a line for a shell.
func shell(words []string) string {
	line := slices.Clone(words)
	for i, w := range line {
		if !plainWord.MatchString(w) {
			line[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(line, " ")
}
