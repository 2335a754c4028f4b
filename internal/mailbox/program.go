package mailbox

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Environment is the environment of each program; a caller may add to it.
var Environment = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/"}

// Program is the command that runs a program: what --exec says, as a shell would cut it
// into words; there are quotes and backslashes, and nothing else that a shell knows. Its
// environment is always the same.
func Program(kind Kind, line string, input []byte) (Command, error) {
	args, err := words(line)
	if err != nil {
		return Command{}, err
	}
	if len(args) == 0 || !path.IsAbs(args[0]) {
		return Command{}, fmt.Errorf("%w: %.80q begins with no absolute path of a program, such as /bin/true", ErrCommand, line)
	}
	return Command{Kind: kind, Args: args, Env: slices.Clone(Environment), Dir: "/", Input: input}, nil
}

// Line writes words so that Program, and a shell, read them again.
func Line(words []string) string {
	list := make([]string, len(words))
	for i, w := range words {
		if list[i] = w; w == "" || strings.ContainsFunc(w, func(r rune) bool { return r > '~' || !strings.ContainsRune(plain, r) }) {
			list[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(list, " ")
}

// plain are the characters that need no quotes.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,+@%^"

// words cuts a line at blanks that are not quoted.
func words(line string) (list []string, err error) {
	var word strings.Builder
	inside, quote := false, rune(0)
	for rest := []rune(line); len(rest) > 0; rest = rest[1:] {
		c := rest[0]
		switch {
		case c == '\\' && quote != '\'' && len(rest) > 1:
			rest = rest[1:]
			inside = true
			word.WriteRune(rest[0])
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, inside = c, true
		case quote == 0 && (c == ' ' || c == '\t' || c == '\n'):
			if inside {
				list = append(list, word.String())
			}
			word.Reset()
			inside = false
		default:
			inside = true
			word.WriteRune(c)
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("%w: the quote %c is not closed in %.80q", ErrCommand, quote, line)
	}
	if inside {
		list = append(list, word.String())
	}
	return list, nil
}
