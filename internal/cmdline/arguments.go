package cmdline

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
)

// Argument is an operand of a command line, or a flag with its value.
type Argument struct {
	// Flag is the flag's name without dashes, "" of an operand.
	Flag, Value string
	// Valued is whether the flag has a value, Open whether the value is still missing.
	Valued, Open bool
	// Words are as they were written.
	Words []string
}

// Arguments takes the words after a command's name apart. Flags may follow operands, until two dashes; with ofProgram,
// until the first operand, which is a program with arguments of its own.
func Arguments(cmd *cli.Command, words []string, ofProgram bool) (list []Argument) {
	operands := false
	for i := 0; i < len(words); i++ {
		word := words[i]
		name, dash := strings.CutPrefix(word, "-")
		switch {
		case operands || !dash || name == "":
			operands = operands || ofProgram
			list = append(list, Argument{Value: word, Words: words[i : i+1]})
			continue
		case word == "--":
			operands = true
			continue
		}
		a := Argument{Words: words[i : i+1]}
		a.Flag, a.Value, a.Valued = strings.Cut(strings.TrimPrefix(name, "-"), "=")
		if !a.Valued && takesValue(cmd, a.Flag) {
			if a.Open = i+1 == len(words); !a.Open {
				a.Value, a.Valued, a.Words = words[i+1], true, words[i:i+2]
				i++
			}
		}
		list = append(list, a)
	}
	return list
}

// arguments takes the words of one of the program's own commands apart.
func (a *App) arguments(cmd *cli.Command, words []string) []Argument {
	return Arguments(cmd, words, slices.Contains(a.Programs, cmd.Name))
}

// programLast puts two dashes before the program that a command runs: the parser takes no flag for the command's that
// comes after them.
func (a *App) programLast(args []string) []string {
	if len(args) < 2 || !slices.Contains(a.Programs, args[1]) {
		return args
	}
	at := 2
	for _, arg := range a.arguments(a.Command.Command(args[1]), args[2:]) {
		if arg.Flag == "" {
			break
		}
		at += len(arg.Words)
	}
	if at == len(args) || args[at] == "--" {
		return args
	}
	return slices.Insert(slices.Clone(args), at, "--")
}

// Permute puts the options of a command of Permuted before its operands, and two dashes between
// them: the parser takes an operand's minus for none, and knows no values that follow a
// letter at once.
func (a *App) Permute(args []string) ([]string, error) {
	if len(args) < 2 || !slices.Contains(a.Permuted, args[1]) {
		return args, nil
	}
	cmd := a.Command.Command(args[1])
	var options, operands []string
	for rest := args[2:]; len(rest) > 0; rest = rest[1:] {
		switch word := rest[0]; {
		case word == "--":
			operands = append(operands, rest[1:]...)
			rest = rest[:1]
		case word == "-" || !strings.HasPrefix(word, "-"):
			operands = append(operands, word)
		case strings.HasPrefix(word, "--"):
			name, value, has := strings.Cut(word[2:], "=")
			if name = longName(cmd, name); has {
				name += "=" + value
			}
			options = append(options, "--"+name)
			if has || !takesValue(cmd, name) {
				continue
			}
			if len(rest) == 1 {
				return nil, a.missingValue(cmd, "--"+name)
			}
			options, rest = append(options, rest[1]), rest[1:]
		default:
			letters, n, err := a.cluster(cmd, word[1:], rest[1:])
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
func (a *App) cluster(cmd *cli.Command, letters string, more []string) (options []string, n int, err error) {
	for i := range len(letters) {
		name := letters[i : i+1]
		switch {
		case name != "h" && !hasFlag(cmd, name):
			return nil, 0, Usagef("-%s is no option of %s; two dashes (--) end the options; try %s %s --help", name, cmd.Name, a.Name, cmd.Name)
		case !takesValue(cmd, name):
			options = append(options, "-"+name)
		case i+1 < len(letters):
			return append(options, "-"+name, letters[i+1:]), 0, nil
		case len(more) > 0:
			return append(options, "-"+name, more[0]), 1, nil
		default:
			return nil, 0, a.missingValue(cmd, "-"+name)
		}
	}
	return options, 0, nil
}

func (a *App) missingValue(cmd *cli.Command, option string) error {
	return Usagef("%s needs a value; try %s %s --help", option, a.Name, cmd.Name)
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
