package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v3"
)

// given is an operand of a command line, or a flag with its value.
type given struct {
	// flag is the flag's name without dashes, "" of an operand.
	flag, value string
	// valued is whether the flag has a value, open whether the value is still missing.
	valued, open bool
	// words are as they were written.
	words []string
}

// programs are the commands whose first operand is a program: what follows it is the program's own.
var programs = []string{"exec", "uprobe"}

// arguments takes a command line apart. Flags may follow operands, until two dashes, or the first operand of a command that
// runs a program.
func arguments(cmd *cli.Command, words []string) (list []given) {
	operands := false
	for i := 0; i < len(words); i++ {
		word := words[i]
		name, dash := strings.CutPrefix(word, "-")
		switch {
		case operands || !dash || name == "":
			operands = operands || slices.Contains(programs, cmd.Name)
			list = append(list, given{value: word, words: words[i : i+1]})
			continue
		case word == "--":
			operands = true
			continue
		}
		a := given{words: words[i : i+1]}
		a.flag, a.value, a.valued = strings.Cut(strings.TrimPrefix(name, "-"), "=")
		if !a.valued && takesValue(cmd, a.flag) {
			if a.open = i+1 == len(words); !a.open {
				a.value, a.valued, a.words = words[i+1], true, words[i:i+2]
				i++
			}
		}
		list = append(list, a)
	}
	return list
}

func takesValue(cmd *cli.Command, name string) bool {
	for _, f := range cmd.Flags {
		if d, ok := f.(cli.DocGenerationFlag); ok && slices.Contains(f.Names(), name) {
			return d.TakesValue()
		}
	}
	return false
}

// programLast puts two dashes before the program that a command runs: the parser takes no flag for the command's that
// comes after them.
func programLast(app *cli.Command, args []string) []string {
	if len(args) < 2 || !slices.Contains(programs, args[1]) {
		return args
	}
	at := 2
	for _, a := range arguments(app.Command(args[1]), args[2:]) {
		if a.flag == "" {
			break
		}
		at += len(a.words)
	}
	if at == len(args) || args[at] == "--" {
		return args
	}
	return slices.Insert(slices.Clone(args), at, "--")
}
