package points

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// The outcomes of a point that both list with its variables.
const (
	sameVariables  = "the same variables and types"
	otherPlaces    = "others, where its places differ for a known cause"
	otherVariables = "others, without a known cause"
)

// compareVariables has both programs list the points (-L), and compares the variables of the places that both list.
func (c *comparison) compareVariables(list []drawn, theirs, ours map[int][]place) error {
	var points []string
	for _, d := range list {
		// What .nearest found is called by the line that was asked for in one list, by its own in the other.
		if !strings.HasSuffix(d.point, ".nearest") {
			points = append(points, d.point+" ?")
		}
	}
	if len(points) == 0 {
		return nil
	}
	all := strings.Join(points, ", ")
	type answer struct {
		list map[string][]string
		err  error
	}
	here := make(chan answer, 1)
	go func() {
		list, err := listing(exec.Command(c.program, "stap", "-r", c.image, "-L", all))
		here <- answer{list, err}
	}()
	a, err := listing(exec.Command("sh", "-c", c.stap+` "$@"`, "stap", "-r", c.tree, "-a", "x86_64", "-L", all))
	if err != nil {
		return err
	}
	b := <-here
	if b.err != nil {
		return b.err
	}
	for name, vars := range a {
		other, ok := b.list[name]
		if !ok {
			continue // the comparison of places counts it
		}
		at, here := placesOf(name, theirs), placesOf(name, ours)
		if len(here) > 1 {
			// Those of several places are in any order.
			slices.Sort(vars)
			slices.Sort(other)
		}
		switch {
		case slices.Equal(vars, other):
			c.variables[sameVariables]++
		case !slices.Equal(at, here):
			c.variables[otherPlaces]++
		default:
			c.variables[otherVariables]++
			c.differs("-L %s\n  stap: %s\n  here: %s\n", name, strings.Join(vars, " "), strings.Join(other, " "))
		}
	}
	return nil
}

// placesOf are the addresses of all places with a name.
func placesOf(name string, of map[int][]place) (out []string) {
	for _, list := range of {
		for _, p := range list {
			if p.name == name {
				out = append(out, p.pc)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// listing reads what -L prints.
func listing(cmd *exec.Cmd) (map[string][]string, error) {
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	if err != nil && !strings.Contains(string(exit.Stderr), noCode) && len(out) == 0 && exit.ExitCode() != 1 {
		return nil, fmt.Errorf("%s -L: %w\n%.2000s", cmd.Args[0], err, exit.Stderr)
	}
	list := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Split(strings.TrimSpace(line), " $")
		list[cleaned(strings.TrimSuffix(words[0], "?"))] = words[1:]
	}
	return list, nil
}
