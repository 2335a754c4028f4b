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
