package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
)

// permuted are the commands whose tools read their command line with getopt_long: options
// may follow operands, until two dashes.
var permuted = []string{"bpftrace", "stap"}

// permute puts the options of such a command before its operands, and two dashes between
// them: the parser takes an operand's minus for none, and knows no values that follow a
// letter at once.
func permute(app *cli.Command, args []string) ([]string, error) {
	if len(args) < 2 || !slices.Contains(permuted, args[1]) {
		return args, nil
	}
	cmd := app.Command(args[1])
	var options, operands []string
	for rest := args[2:]; len(rest) > 0; rest = rest[1:] {
		switch a := rest[0]; {
		case a == "--":
			operands = append(operands, rest[1:]...)
			rest = rest[:1]
		case a == "-" || !strings.HasPrefix(a, "-"):
			operands = append(operands, a)
		case strings.HasPrefix(a, "--"):
			name, value, has := strings.Cut(a[2:], "=")
			if name = longName(cmd, name); has {
				name += "=" + value
			}
			options = append(options, "--"+name)
			if has || !takesValue(cmd, name) {
				continue
			}
			if len(rest) == 1 {
				return nil, missingValue(cmd, "--"+name)
			}
			options, rest = append(options, rest[1]), rest[1:]
		default:
			letters, n, err := cluster(cmd, a[1:], rest[1:])
			if err != nil {
				return nil, err
			}
			options, rest = append(options, letters...), rest[n:]
		}
	}
	return slices.Concat(args[:2], options, []string{"--"}, operands), nil
}

// cluster takes options of one letter apart. If a letter takes a value, the value is the rest of
// the word, or the next word. n is the number of next words that were taken.
func cluster(cmd *cli.Command, letters string, more []string) (options []string, n int, err error) {
	for i := range len(letters) {
		name := letters[i : i+1]
		switch {
		case !hasFlag(cmd, name):
			return nil, 0, usagef("-%s is no option of %s; two dashes (--) end the options; try kprobelab %s --help", name, cmd.Name, cmd.Name)
		case !takesValue(cmd, name):
			options = append(options, "-"+name)
		case i+1 < len(letters):
			return append(options, "-"+name, letters[i+1:]), 0, nil
		case len(more) > 0:
			return append(options, "-"+name, more[0]), 1, nil
		default:
			return nil, 0, missingValue(cmd, "-"+name)
		}
	}
	return options, 0, nil
}

func missingValue(cmd *cli.Command, option string) error {
	return usagef("%s needs a value; try kprobelab %s --help", option, cmd.Name)
}

// longName returns the one option whose name begins so: an option of the help before a hidden one.
func longName(cmd *cli.Command, begin string) string {
	fits := map[bool][]string{}
	for _, f := range cmd.Flags {
		for _, n := range f.Names() {
			if n == begin {
				return begin
			}
			if len(n) > 1 && strings.HasPrefix(n, begin) {
				fits[hidden(f)] = append(fits[hidden(f)], n)
			}
		}
	}
	for _, list := range [...][]string{fits[false], fits[true]} {
		if len(list) == 1 {
			return list[0]
		}
		if len(list) > 1 {
			break
		}
	}
	return begin
}

func hasFlag(cmd *cli.Command, name string) bool {
	return name == "h" || slices.ContainsFunc(cmd.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
}
